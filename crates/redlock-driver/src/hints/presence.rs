//! What a lease leaves to be remembered for the next one on its resource.

use std::sync::Arc;

use redlock_core::{Instant, LeaseState};

use crate::courtesy::{Courtesy, Wait};

/// Follows a lease from the first attempt to its end, and has the manager remember how it was to wait for it.
#[derive(Debug)]
pub(crate) struct Presence {
    courtesy: Arc<Courtesy>,
    stage: Stage,
    wait: Wait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Asking,
    Holding,
    Over,
}

impl Presence {
    /// Before the first attempt, but perhaps after a rest in which others were seen.
    pub(crate) const fn new(courtesy: Arc<Courtesy>, wait: Wait) -> Self {
        Self { courtesy, stage: Stage::Asking, wait }
    }

    /// It has to wait, and this was seen of others meanwhile.
    pub(crate) const fn waits(&mut self, wait: Wait) {
        self.wait = wait;
    }

    /// The lease is in this state now.
    pub(crate) fn follow(&mut self, resource: &Arc<str>, state: LeaseState, now: Instant) {
        match (state, self.stage) {
            (LeaseState::Acquiring, _) | (LeaseState::Held, Stage::Holding) | (_, Stage::Over) => {}
            (LeaseState::Held, Stage::Asking) => {
                self.courtesy.won(resource, now, self.wait);
                self.stage = Stage::Holding;
            }
            (_, stage) => {
                if stage == Stage::Holding {
                    self.courtesy.over(resource, now);
                }
                self.stage = Stage::Over;
            }
        }
    }
}
