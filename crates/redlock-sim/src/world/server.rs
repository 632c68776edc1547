//! A server: a real model node, and what the simulator has to know around it.

use std::time::Duration;

use redlock_core::{Fault, Instant, MemoryNode, Pttl, Reply};

use super::agenda::Request;
use crate::clock::{MS, true_span};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Well,
    Frozen,
    ReadOnly,
    /// Crashed; it will come back with its data.
    Down,
    /// Crashed; it will come back without. Until then nobody can see that the data is gone, and by then
    /// every key would have expired.
    Away,
}

#[derive(Debug)]
pub(crate) struct Server {
    node: MemoryNode,
    drift_ppm: i32,
    pub(crate) condition: Condition,
    /// Names the trouble that it is in, or was last in.
    pub(crate) trouble: u64,
    /// Requests that the node has, with their tickets. Hardly ever more than one.
    requests: Vec<(u64, Request)>,
    tickets: u64,
}

/// True time as the model node counts it.
pub(crate) const fn instant(at: u64) -> Instant {
    Instant::from_epoch(Duration::from_nanos(at))
}

impl Server {
    /// A server whose clock is off by so much at the beginning and then goes fast by its drift.
    pub(crate) fn new(drift_ppm: i32, offset_ms: u64) -> Self {
        let mut node = MemoryNode::new();
        node.jump_clock_forward(Duration::from_nanos(offset_ms * MS));
        node.set_clock_drift(Instant::EPOCH, drift_ppm);
        Self { node, drift_ppm, condition: Condition::Well, trouble: 0, requests: Vec::new(), tickets: 0 }
    }

    /// Takes a request in. What the server does at once comes out of [`next_answer`](Self::next_answer).
    ///
    /// # Errors
    /// The request, if it is refused.
    pub(crate) fn take(&mut self, now: u64, request: Request) -> Result<(), Box<(Request, Fault)>> {
        self.tickets += 1;
        match self.node.submit(instant(now), self.tickets, &request.command) {
            Ok(()) => {
                self.requests.push((self.tickets, request));
                Ok(())
            }
            Err(fault) => Err(Box::new((request, fault))),
        }
    }

    /// The next command that was carried out, or that is certain not to be any more.
    pub(crate) fn next_answer(&mut self, now: u64) -> Option<(Request, Result<Reply, Fault>)> {
        loop {
            let (ticket, result) = self.node.poll(instant(now))?;
            if let Some(place) = self.requests.iter().position(|(other, _)| *other == ticket) {
                return Some((self.requests.swap_remove(place).1, result));
            }
        }
    }

    pub(crate) const fn freeze(&mut self) {
        self.condition = Condition::Frozen;
        self.node.hang();
    }

    pub(crate) const fn make_read_only(&mut self) {
        self.condition = Condition::ReadOnly;
        self.node.set_read_only(true);
    }

    /// The process ends: whatever it was doing fails, and nobody listens.
    pub(crate) fn crash(&mut self, keeps_data: bool) {
        self.condition = if keeps_data { Condition::Down } else { Condition::Away };
        self.node.restart_with_data();
        self.node.refuse(true);
    }

    /// Whatever is wrong with the server is over.
    pub(crate) fn recover(&mut self, now: u64) {
        match self.condition {
            Condition::Well => {}
            Condition::Frozen => self.node.resume(instant(now)),
            Condition::ReadOnly => self.node.set_read_only(false),
            Condition::Down => self.node.refuse(false),
            Condition::Away => {
                self.node.restart_empty();
                self.node.refuse(false);
            }
        }
        self.condition = Condition::Well;
    }

    /// Restarts without the data, at once.
    pub(crate) fn forget(&mut self) {
        self.node.restart_empty();
    }

    pub(crate) fn jump(&mut self, by: u64) {
        self.node.jump_clock_forward(Duration::from_nanos(by));
    }

    pub(crate) const fn restarts(&self) -> u64 {
        self.node.restarts()
    }

    /// How long it has been running, by its own clock.
    pub(crate) fn uptime(&self, now: u64) -> Duration {
        self.node.uptime(instant(now))
    }

    /// The value of a key.
    pub(crate) fn value(&self, now: u64, key: &str) -> Option<&str> {
        self.node.get(instant(now), key)
    }

    /// What `PTTL` says of a key, on the server's own clock.
    pub(crate) fn pttl(&self, now: u64, key: &str) -> Pttl {
        self.node.pttl(instant(now), key)
    }

    /// Until what true time a key will be there, if nobody touches it.
    pub(crate) fn stays_until(&self, now: u64, key: &str) -> Option<u64> {
        match self.pttl(now, key) {
            Pttl::NoKey => None,
            Pttl::NoExpiry => Some(u64::MAX),
            Pttl::Expires(left) => Some(now + true_span(left, self.drift_ppm)),
        }
    }
}
