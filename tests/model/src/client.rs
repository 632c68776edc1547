//! A client: its machine, what it may still ask for, and what it is waiting for.

use redlock_core::{Event, LeaseMachine, LeaseState};

use crate::setup::{instant, ticks};
use crate::{Request, Setup};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) machine: LeaseMachine,
    acquires_left: u8,
    extensions_left: u8,
    /// By which tick each request must have ended.
    acquire_by: Option<u8>,
    extend_by: Option<u8>,
    release_by: Option<u8>,
}

impl Client {
    pub(crate) fn new(setup: &Setup, who: usize) -> Self {
        Self {
            machine: setup.machine(who),
            acquires_left: setup.plans[who].acquires,
            extensions_left: setup.plans[who].extensions,
            acquire_by: None,
            extend_by: None,
            release_by: None,
        }
    }

    /// What the client may ask for now.
    pub(crate) fn wishes(&self, setup: &Setup, who: usize) -> Vec<Request> {
        let plan = &setup.plans[who];
        let state = self.machine.state();
        let mut wishes = Vec::new();
        if matches!(state, LeaseState::Idle | LeaseState::Lost(_)) && self.acquires_left > 0 {
            wishes.push(Request::Acquire);
        }
        if state == LeaseState::Held && self.extend_by.is_none() && self.extensions_left > 0 {
            wishes.extend(plan.ttls.iter().map(|ttl| Request::Extend(*ttl)));
        }
        if matches!(state, LeaseState::Held | LeaseState::Lost(_)) && plan.releases {
            wishes.push(Request::Release);
        }
        if matches!(state, LeaseState::Acquiring | LeaseState::Held | LeaseState::Lost(_)) && plan.abandons {
            wishes.push(Request::Abandon);
        }
        wishes
    }

    /// Asks the machine. It may say no only where time has run out on a client that does not keep it.
    pub(crate) fn ask(&mut self, setup: &Setup, who: usize, now: u8, request: Request) {
        let plan = &setup.plans[who];
        let at = instant(now);
        match request {
            Request::Acquire => {
                self.machine.acquire(at, plan.patience(now)).unwrap();
                self.acquires_left -= 1;
                self.acquire_by = Some(now + longest_acquire(setup, who));
            }
            Request::Extend(ttl) => {
                if self.machine.extend(at, ticks(ttl)).is_ok() {
                    // It may have to wait for a renewal that has just begun.
                    let rounds = 1 + u8::from(plan.renewal.is_some());
                    self.extend_by = Some(now + rounds * setup.timeout);
                }
                self.extensions_left -= 1;
            }
            Request::Release => {
                self.machine.release(at).unwrap();
                self.release_by = Some(now + setup.timeout);
            }
            Request::Abandon => self.machine.abandon(at),
        }
    }

    /// Takes note of an event. `false` if it ends a request that was not made.
    pub(crate) fn observe(&mut self, event: &Event) -> bool {
        match event {
            Event::Acquired { .. } | Event::AcquireFailed(_) => self.acquire_by.take().is_some(),
            Event::Extended { .. } | Event::ExtendFailed(_) => self.extend_by.take().is_some(),
            Event::Released(_) | Event::ReleaseFailed(_) => self.release_by.take().is_some(),
            _ => true,
        }
    }

    /// Whether a release is under way.
    pub(crate) const fn gave_back(&self) -> bool {
        self.release_by.is_some()
    }

    /// Whether a request has outlived its time.
    pub(crate) fn is_overdue(&self, now: u8) -> bool {
        [self.acquire_by, self.extend_by, self.release_by].into_iter().flatten().any(|by| by <= now)
    }
}

/// How long an acquire takes at most: every attempt of the schedule its full time, and the longest pause
/// between two. Hints make nothing longer.
fn longest_acquire(setup: &Setup, who: usize) -> u8 {
    let plan = &setup.plans[who];
    match plan.within {
        Some(span) => span.max(setup.timeout),
        None => {
            let pause = (3 * plan.pause).div_ceil(2).max(1);
            plan.attempts * (setup.timeout + pause) - pause
        }
    }
}
