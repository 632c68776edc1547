//! The switches: what can be wrong with the node and with the way to it.

use core::mem;
use core::time::Duration;

use super::keyspace::Keyspace;
use super::{Answer, MemoryNode};
use crate::{Cause, CauseKind, Fault, Instant};

/// What is wrong at present. Nothing, by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Faults {
    pub(super) refusing: bool,
    pub(super) read_only: bool,
    pub(super) loses_requests: bool,
    pub(super) loses_replies: bool,
    pub(super) request_delay: Duration,
    pub(super) reply_delay: Duration,
    /// Until when the node does nothing; [`NEVER`] for a hang without an end.
    pub(super) hangs_until: Option<Instant>,
}

/// An instant that does not come.
pub(super) const NEVER: Instant = Instant::from_epoch(Duration::MAX);

/// # Faults
/// Each switch stays as it is set until it is set again. What was due before a switch is turned is
/// still done the old way if the node was polled, or called with that `now`, in between.
impl MemoryNode {
    /// Whether new requests find a closed port: they fail at once and certainly unexecuted. Requests
    /// under way are not affected; a crash is this and a restart.
    pub const fn refuse(&mut self, refuse: bool) {
        self.faults.refusing = refuse;
    }

    /// Whether writes are answered with `READONLY`, as by a replica. An intent that turns out to need
    /// no write is answered as ever: a compare-and-delete of a key that is not ours gets its 0.
    pub const fn set_read_only(&mut self, read_only: bool) {
        self.faults.read_only = read_only;
    }

    /// Whether new requests get lost on the way: never executed, never answered.
    pub const fn lose_requests(&mut self, lose: bool) {
        self.faults.loses_requests = lose;
    }

    /// Whether replies get lost on the way: requests are executed from now on, and never answered.
    pub const fn lose_replies(&mut self, lose: bool) {
        self.faults.loses_replies = lose;
    }

    /// How long a new request takes to arrive. One that is sent after the delay was shortened overtakes
    /// those before it, as it does in life on another connection.
    pub const fn set_request_delay(&mut self, delay: Duration) {
        self.faults.request_delay = delay;
    }

    /// How long a reply takes, from the execution of its request on. Overtaking as for requests.
    pub const fn set_reply_delay(&mut self, delay: Duration) {
        self.faults.reply_delay = delay;
    }

    /// Stops the node, as SIGSTOP stops a server: it takes requests in and carries them out, in order,
    /// when it goes on. Time goes on, and keys expire. Replies that have left it arrive.
    pub const fn hang(&mut self) {
        self.faults.hangs_until = Some(NEVER);
    }

    /// The same until `end`, as `CLIENT PAUSE` does.
    pub const fn hang_until(&mut self, end: Instant) {
        self.faults.hangs_until = Some(end);
    }

    /// Lets a node that hangs go on.
    pub fn resume(&mut self, now: Instant) {
        if let Some(end) = self.faults.hangs_until.take() {
            // Held requests are carried out at the end of the hang, not when they came.
            let end = end.min(now);
            for request in self.requests.iter_mut().take_while(|request| request.due < end) {
                request.due = end;
            }
        }
        self.catch_up(now);
    }

    /// Restarts the server without its data. Whatever was not answered yet fails with an unknown
    /// outcome, because its connection broke, and is not executed any more. A hang is over.
    pub fn restart_empty(&mut self) {
        self.keys = Keyspace::default();
        self.restart_with_data();
    }

    /// The same, but the keys have survived on the server's disk. Expired keys stay expired.
    pub fn restart_with_data(&mut self) {
        let cause = Cause::with_detail(CauseKind::Disconnected, "the server restarted");
        let answers = mem::take(&mut self.answers).into_iter().map(|answer| answer.ticket);
        let requests = mem::take(&mut self.requests).into_iter().map(|request| request.ticket);
        let result = Err(Fault::Unknown(cause));
        self.answers = answers
            .chain(requests)
            .map(|ticket| Answer { due: Instant::EPOCH, ticket, result: result.clone() })
            .collect();
        self.faults.hangs_until = None;
        self.run.end();
    }

    /// Puts the node's clock forward: keys expire by so much too early.
    pub fn jump_clock_forward(&mut self, by: Duration) {
        self.clock.jump_forward(by);
    }

    /// Puts the node's clock back: keys expire by so much too late.
    pub fn jump_clock_back(&mut self, by: Duration) {
        self.clock.jump_back(by);
    }

    /// Makes the node's clock run fast by this many parts in a million from `now` on; slow, if that is
    /// negative. It stands still at -1 000 000 and below.
    pub fn set_clock_drift(&mut self, now: Instant, parts_per_million: i32) {
        self.catch_up(now);
        self.clock.set_drift(now, parts_per_million);
    }
}
