//! A model of one Redis server, for tests, demonstrations, the simulator and the model check.

mod clock;
mod commands;
mod faults;
mod inspect;
mod keyspace;
mod run;

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use self::clock::NodeClock;
use self::faults::{Faults, NEVER};
pub use self::inspect::Pttl;
use self::keyspace::Keyspace;
use self::run::Run;
use crate::{Cause, CauseKind, Command, Fault, Instant, Intent, Reply};

/// One Redis server as a value: it carries the four intents out as Redis 7 does, on keys in memory, and
/// has a switch for each way in which a server or the network lets a lease down.
///
/// Sans-IO like the rest of this crate. [`execute`](Self::execute) answers at once. To have the faults
/// take part, [`submit`](Self::submit) a command and [`poll`](Self::poll) for answers, again at
/// [`next_timeout`](Self::next_timeout). What falls due in between is done as of the time at which it
/// fell due, however late the poll. `now` should not go back from call to call.
///
/// Where it is not Redis:
/// - a key is gone the very moment its ttl is over. Redis counts whole milliseconds and drops the key
///   up to one later;
/// - keys and values are text, and an error out of a script does not name the script and line.
///
/// `Debug` shows keys and values, tokens among them.
///
/// ```
/// use core::time::Duration;
/// use redlock_core::{Command, CommandId, Instant, Intent, MemoryNode, NodeId, Reply, Token, Ttl};
///
/// let at = |millis| Instant::from_epoch(Duration::from_millis(millis));
/// let token = Token::from_bytes([7; 20]);
/// let intent = Intent::SetNxPx { token, ttl: Ttl::from_millis(1_000).unwrap() };
///
/// let mut node = MemoryNode::new();
/// assert_eq!(node.execute(at(0), "lock", &intent), Reply::Ok);
/// assert_eq!(node.execute(at(999), "lock", &intent), Reply::Nil);
/// assert_eq!(node.get(at(1_000), "lock"), None); // expired
///
/// // A node that hangs carries out later what it was sent, whoever has given up by then.
/// node.hang();
/// let command =
///     Command { id: CommandId::new(0), node: NodeId::new(0), deadline: at(1_500), key: "lock".into(), intent };
/// node.submit(at(1_000), 1, &command).unwrap();
/// assert_eq!(node.poll(at(4_000)), None);
/// node.resume(at(5_000));
/// assert_eq!(node.poll(at(5_000)), Some((1, Ok(Reply::Ok))));
/// assert_eq!(node.get(at(5_000), "lock"), Some(token.to_hex().as_str()));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemoryNode {
    keys: Keyspace,
    clock: NodeClock,
    faults: Faults,
    run: Run,
    /// What is to be carried out, in the order of arrival.
    requests: VecDeque<Request>,
    /// What is on its way back, in the order of arrival.
    answers: VecDeque<Answer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Request {
    due: Instant,
    ticket: u64,
    key: Arc<str>,
    intent: Intent,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Answer {
    due: Instant,
    ticket: u64,
    result: Result<Reply, Fault>,
}

impl MemoryNode {
    /// How many requests can be under way: submitted, and neither lost nor answered. Further ones are
    /// refused.
    pub const MAX_PENDING: usize = 1024;

    /// A server without keys and without faults, whose clock agrees with the driver's.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Carries `intent` out on `key` now, past delays, hangs, losses and refusals. A read-only node is
    /// read-only here too.
    pub fn execute(&mut self, now: Instant, key: &str, intent: &Intent) -> Reply {
        self.catch_up(now);
        self.carry_out(now, key, intent)
    }

    /// Sends a command to the node. Its answer will come out of [`poll`](Self::poll) under this
    /// `ticket`, or never: the command's own deadline is not looked at. Tickets are the caller's;
    /// those under way should differ.
    ///
    /// # Errors
    /// [`Fault::NotExecuted`] when the node [refuses](Self::refuse) requests, or has
    /// [`MAX_PENDING`](Self::MAX_PENDING) of them.
    pub fn submit(&mut self, now: Instant, ticket: u64, command: &Command) -> Result<(), Fault> {
        self.catch_up(now);
        if self.faults.refusing {
            let cause = Cause::with_detail(CauseKind::Unreachable, "connection refused");
            return Err(Fault::NotExecuted(cause));
        }
        if self.faults.loses_requests {
            return Ok(());
        }
        if self.requests.len() + self.answers.len() >= Self::MAX_PENDING {
            return Err(Fault::NotExecuted(Cause::new(CauseKind::Overloaded)));
        }
        let due = now.saturating_add(self.faults.request_delay);
        let place = self.requests.partition_point(|request| request.due <= due);
        let (key, intent) = (Arc::clone(&command.key), command.intent.clone());
        self.requests.insert(place, Request { due, ticket, key, intent });
        Ok(())
    }

    /// Does what is due, and hands out the next answer that has arrived by `now`. Call it until there
    /// is none left.
    pub fn poll(&mut self, now: Instant) -> Option<(u64, Result<Reply, Fault>)> {
        self.catch_up(now);
        if self.answers.front()?.due > now {
            return None;
        }
        self.answers.pop_front().map(|answer| (answer.ticket, answer.result))
    }

    /// When there will be something to [`poll`](Self::poll) for, if nobody does anything to the node;
    /// `None` for never.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        let go_on = self.faults.hangs_until.unwrap_or(Instant::EPOCH);
        let request = self.requests.front().map(|request| request.due.max(go_on));
        let answer = self.answers.front().map(|answer| answer.due);
        request.into_iter().chain(answer).min().filter(|due| *due < NEVER)
    }

    /// Carries out every request that has arrived by `now`.
    fn catch_up(&mut self, now: Instant) {
        if self.faults.hangs_until.is_some_and(|end| end <= now) {
            self.resume(now);
        }
        while let Some(request) = self.next_request(now) {
            let reply = self.carry_out(request.due, &request.key, &request.intent);
            if !self.faults.loses_replies {
                self.answer(request, reply);
            }
        }
        self.keys.clear_expired(self.clock.read(now));
        self.run.begin(self.clock.read(now));
    }

    fn next_request(&mut self, now: Instant) -> Option<Request> {
        if self.faults.hangs_until.is_some() || self.requests.front()?.due > now {
            return None;
        }
        self.requests.pop_front()
    }

    fn answer(&mut self, request: Request, reply: Reply) {
        let due = request.due.saturating_add(self.faults.reply_delay);
        let place = self.answers.partition_point(|answer| answer.due <= due);
        self.answers.insert(place, Answer { due, ticket: request.ticket, result: Ok(reply) });
    }

    fn carry_out(&mut self, now: Instant, key: &str, intent: &Intent) -> Reply {
        let reading = self.clock.read(now);
        commands::carry_out(&mut self.keys, reading, self.faults.read_only, key, intent)
    }
}

#[cfg(test)]
mod tests;
