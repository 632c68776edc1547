//! What a link knows about its connections, and how losing one changes that.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use redlock_core::{Cause, CauseKind, Command, Intent};

use super::dialect::Habit;
use super::queue::Queue;
use super::repeat::Owed;
use super::wire::{Keeper, Ticket, Wire};
use super::{Connection, backoff};

/// What a link knows about its connections. Guarded by a lock that is held for a few steps only, in
/// which no foreign code runs.
pub(crate) struct State<C: Connection> {
    pub(crate) phase: Phase<C>,
    /// Replaced, but owing an answer. The oldest first.
    pub(crate) retired: VecDeque<Arc<Wire<C>>>,
    /// Deletes for the next connection.
    pub(crate) owed: Owed,
    /// What the connections so far have taught about the server.
    pub(crate) habit: Arc<Habit>,
    /// Of the last dialling task; the connection that it makes has the same.
    pub(crate) generation: u64,
    /// Failed dials, and connections that never answered, since the last answer.
    pub(crate) failures: u32,
    last_number: u64,
}

pub(crate) enum Phase<C: Connection> {
    /// Nobody dials.
    Idle,
    /// A task dials, and commands wait for it.
    Dialling(Queue<C>),
    /// A connection is there.
    Up(Arc<Wire<C>>),
    /// The last dial failed, for this cause. A task goes on dialling.
    Down(Cause),
    /// Closed for good.
    Closed,
}

impl<C: Connection> State<C> {
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::Idle,
            retired: VecDeque::new(),
            owed: Owed::new(),
            habit: Arc::default(),
            generation: 0,
            failures: 0,
            last_number: 0,
        }
    }

    /// A number for a place in the queue; never used again.
    pub(crate) const fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Enters the phase of a dial that is about to start; yields its generation.
    pub(crate) fn dial(&mut self, phase: Phase<C>) -> u64 {
        self.phase = phase;
        self.generation += 1;
        self.generation
    }

    /// What follows the loss of the connection: a dial at once, for which commands wait; or, if this is
    /// not the first connection in a row that never answered, one after a pause.
    pub(crate) fn redial(&mut self, had_answered: bool, loss: &Loss) -> (u64, Option<Duration>) {
        self.failures = if had_answered { 0 } else { self.failures.saturating_add(1) };
        if self.failures <= 1 {
            return (self.dial(Phase::Dialling(Queue::new())), None);
        }
        (self.dial(Phase::Down(loss.verdict())), Some(backoff::pause(self.failures)))
    }

    /// Whether the connection that takes new commands is of this generation.
    pub(crate) fn is_in_use(&self, generation: u64) -> bool {
        matches!(&self.phase, Phase::Up(current) if current.generation() == generation)
    }

    /// The connection that takes new commands, if it is of this generation.
    pub(crate) fn in_use(&self, generation: u64) -> Option<Arc<Wire<C>>> {
        match &self.phase {
            Phase::Up(current) if current.generation() == generation => Some(Arc::clone(current)),
            _ => None,
        }
    }

    /// Puts a connection in the place of the one of this generation; or gives it back, when that other one
    /// is not in use any more.
    pub(crate) fn supersede(
        &mut self,
        generation: u64,
        connection: C,
        keeper: Weak<dyn Keeper<C>>,
    ) -> Result<Superseded<C>, C> {
        let Some(before) = self.in_use(generation) else { return Err(connection) };
        let wire = Arc::new(Wire::new(connection, self.generation + 1, Arc::clone(&self.habit), keeper));
        self.dial(Phase::Up(Arc::clone(&wire)));
        let given_up = self.retire(&before);
        Ok(Superseded { wire, before, given_up })
    }

    /// Places for a delete on retired connections where an acquire of its token is unanswered.
    pub(crate) fn behind(&self, command: &Command) -> Vec<Ticket<C>> {
        if !is_delete(&command.intent) {
            return Vec::new();
        }
        let token = command.intent.token();
        self.retired
            .iter()
            .filter(|wire| wire.acquiring(token))
            .filter_map(|wire| wire.admit(command).ok())
            .collect()
    }

    /// Keeps a connection that owes answers. If that makes one too many, one without acquires has to
    /// go, else the oldest.
    pub(crate) fn retire(&mut self, wire: &Arc<Wire<C>>) -> Option<Arc<Wire<C>>> {
        wire.retire();
        if wire.is_idle() {
            return None;
        }
        self.retired.push_back(Arc::clone(wire));
        if self.retired.len() <= MOST_RETIRED {
            return None;
        }
        let least = self.retired.iter().position(|wire| !wire.has_acquires()).unwrap_or(0);
        self.retired.remove(least)
    }
}

/// What is left of a connection that another has taken the place of.
pub(crate) struct Superseded<C> {
    /// The new connection.
    pub(crate) wire: Arc<Wire<C>>,
    /// That connection: retired if it owes an answer, and otherwise in the caller's hands alone.
    pub(crate) before: Arc<Wire<C>>,
    /// One that had to go to make room for it.
    pub(crate) given_up: Option<Arc<Wire<C>>>,
}

/// Why a connection is taken out of use.
pub(crate) enum Loss {
    /// A deadline passed without an answer.
    Stalled,
    /// It failed.
    Broken(Cause),
    /// It leads to a server that is the primary no more.
    Moved,
}

impl Loss {
    /// The cause for the commands that are turned away afterwards.
    pub(crate) fn verdict(&self) -> Cause {
        match self {
            Self::Stalled => {
                Cause::with_detail(CauseKind::Unreachable, "accepts connections but does not answer")
            }
            Self::Moved => Cause::with_detail(CauseKind::Unreachable, "the primary is changing"),
            Self::Broken(cause) => Cause::with_detail(CauseKind::Unreachable, cause.to_string()),
        }
    }
}

/// Whether this is a clean-up, which is let through where other commands are not.
pub(crate) const fn is_delete(intent: &Intent) -> bool {
    matches!(intent, Intent::CompareAndDelete { .. })
}

/// How many replaced connections may be kept for the answers that they owe.
pub(crate) const MOST_RETIRED: usize = 4;
