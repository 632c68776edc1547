//! What the users of handles do: they take leases, extend them, give them back, lose interest half-way,
//! and sometimes ask for what they cannot have.

use std::time::Duration;

use redlock_core::{Error, Instant, LeaseState, Patience};

use super::agenda::Happening;
use super::{Step, World, words};
use crate::clock::MS;
use crate::invariant::{Broken, Wish};
use crate::options::longest_extension;
use crate::summary::Mark;

/// How many things a user does at most, so that every scenario ends soon.
const DEEDS: u32 = 24;

impl World {
    /// Every user begins at some moment.
    pub(super) fn begin_acting(&mut self, handle: usize) {
        self.stage.handles[handle].deeds = DEEDS;
        let at = self.stage.now + self.choices.between(0, self.options.habits.think.1);
        self.agenda.add(at, Happening::Acts(handle));
    }

    /// A user does the next thing.
    pub(super) fn act(&mut self, handle: usize) -> Step {
        let (low, high) = self.options.habits.think;
        if self.healing {
            if self.stage.handles[handle].machine.state() == LeaseState::Idle {
                return Ok(());
            }
            self.agenda.add(self.stage.now + high, Happening::Acts(handle));
            return self.wind_up(handle);
        }
        let deeds = &mut self.stage.handles[handle].deeds;
        if *deeds == 0 {
            return Ok(());
        }
        *deeds -= 1;
        let at = self.stage.now + self.choices.between(low, high);
        self.agenda.add(at, Happening::Acts(handle));
        if self.stage.clients[self.stage.handles[handle].client].paused {
            return Ok(());
        }
        self.do_something(handle)
    }

    fn do_something(&mut self, handle: usize) -> Step {
        let habits = &self.options.habits;
        let (abandon, rude, extend) = (habits.abandon, habits.rude, habits.extend);
        if self.choices.chance(rude) {
            return self.ask_too_much(handle);
        }
        match self.stage.handles[handle].machine.state() {
            LeaseState::Idle => self.acquire(handle),
            LeaseState::Acquiring | LeaseState::Releasing if self.choices.chance(abandon) => {
                self.abandon(handle)
            }
            LeaseState::Held if self.choices.chance(extend) => self.extend(handle),
            LeaseState::Held if self.choices.chance(abandon) => self.abandon(handle),
            LeaseState::Held if self.choices.chance(400) => self.release(handle),
            LeaseState::Lost(_) => match self.choices.below(3) {
                0 => self.release(handle),
                1 => self.acquire(handle),
                _ => self.abandon(handle),
            },
            _ => Ok(()),
        }
    }

    /// Gives back what there is.
    fn wind_up(&mut self, handle: usize) -> Step {
        match self.stage.handles[handle].machine.state() {
            LeaseState::Held | LeaseState::Lost(_) if self.choices.chance(300) => self.abandon(handle),
            LeaseState::Held | LeaseState::Lost(_) => self.release(handle),
            _ => Ok(()),
        }
    }

    pub(super) fn acquire(&mut self, handle: usize) -> Step {
        let attempts = self.stage.handles[handle].machine.spec().config().attempts().get();
        let patience = if self.choices.chance(self.options.habits.patient) {
            let span = self.choices.between(0, 3 * self.options.ttl / 2);
            Patience::Until(self.stage.shown(handle).saturating_add(Duration::from_nanos(span)))
        } else {
            Patience::Attempts(self.choices.pick(&[attempts, 1, 0]))
        };
        self.acquire_with(handle, patience)
    }

    pub(super) fn acquire_with(&mut self, handle: usize, patience: Patience) -> Step {
        let shown = self.request(handle, |shown| words::acquire(patience, shown));
        let acting = &mut self.stage.handles[handle];
        let asked = acting.machine.acquire(shown, patience).is_ok();
        self.asked(handle, Wish::Acquire(patience), asked, false)
    }

    fn extend(&mut self, handle: usize) -> Step {
        let config = self.stage.handles[handle].machine.spec().config();
        let ttl = match self.options.habits.extend_alike {
            true => config.ttl().as_duration(),
            false => Duration::from_nanos(self.choices.between(3 * MS, longest_extension(self.options.ttl))),
        };
        let shown = self.request(handle, |_| words::extend(ttl));
        let acting = &mut self.stage.handles[handle];
        match acting.machine.extend(shown, ttl) {
            Ok(()) => self.asked(handle, Wish::Extend, true, false),
            Err(Error::Config(_) | Error::ExtensionPending | Error::LockLost(_)) => {
                self.asked(handle, Wish::Extend, false, false)
            }
            Err(error) => {
                Err(Broken::new("terminal", format!("{} cannot extend: {error}", self.stage.name(handle))))
            }
        }
    }

    fn release(&mut self, handle: usize) -> Step {
        let was_held = self.stage.is_held(handle);
        let shown = self.request(handle, |_| "asks to release".to_owned());
        let acting = &mut self.stage.handles[handle];
        let asked = acting.machine.release(shown).is_ok();
        self.asked(handle, Wish::Release, asked, was_held)
    }

    fn abandon(&mut self, handle: usize) -> Step {
        let shown = self.request(handle, |_| "gives up".to_owned());
        self.stage.handles[handle].machine.abandon(shown);
        self.drained[handle].abandoned = true;
        self.drain(handle)
    }

    /// A request that the state does not allow must be refused and change nothing.
    fn ask_too_much(&mut self, handle: usize) -> Step {
        let state = self.stage.handles[handle].machine.state();
        let shown = self.request(handle, |_| "asks for what it cannot have".to_owned());
        let machine = &mut self.stage.handles[handle].machine;
        let refused = match state {
            LeaseState::Idle => {
                machine.release(shown).is_err() && machine.extend(shown, Duration::from_secs(1)).is_err()
            }
            LeaseState::Acquiring | LeaseState::Releasing => {
                machine.acquire(shown, Patience::Attempts(1)).is_err() && machine.release(shown).is_err()
            }
            // The lease may have run out by now, and then it can be asked for again.
            _ => machine.extend(shown, Duration::ZERO).is_err(),
        };
        if !refused {
            return Err(Broken::new(
                "bounds",
                format!("{} was given what {state:?} forbids", self.stage.name(handle)),
            ));
        }
        self.asked(handle, Wish::Extend, false, false)
    }

    fn request(&mut self, handle: usize, line: impl FnOnce(Instant) -> String) -> Instant {
        let shown = self.before_input(handle);
        self.trace.note(self.stage.now, || format!("{} {}", self.stage.name(handle), line(shown)));
        shown
    }

    fn asked(&mut self, handle: usize, wish: Wish, accepted: bool, was_held: bool) -> Step {
        if accepted {
            let shown = self.stage.shown(handle);
            self.oracle.asked(handle, &self.stage.handles[handle].machine, shown, wish, was_held);
        } else {
            self.summary.count(Mark::RequestRefused);
            self.drained[handle].refused = true;
        }
        self.drain(handle)
    }
}
