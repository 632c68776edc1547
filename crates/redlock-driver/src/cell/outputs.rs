//! Acting on what the machine of a lease wants.

use std::sync::{Arc, MutexGuard};

use redlock_core::{
    Command, CommandId, Event, Fault, Instant, LeaseMachine, LeaseState, NodeId, Output, Reply,
};

use super::{Cell, Inner};
use crate::courtesy::Wait;
use crate::hints::Hints;
use crate::node::Answer;
use crate::recipient::{Passage, Recipient};
use crate::redis::Words;
use crate::timekeeper::{Place, Timed};
use crate::turns::Turn;
use crate::{Runtime, errands, trace};

/// What there is for the task that runs errands.
pub(crate) struct Look {
    /// To be sent, in this order.
    pub(crate) commands: Vec<(CommandId, Answer)>,
    /// Where to watch for the key to go: nowhere but in a pause.
    pub(crate) watched: Vec<NodeId>,
    /// The lease is being asked for, so there may be another pause.
    pub(crate) asking: bool,
    /// No errand is left.
    pub(crate) done: bool,
}

impl<R: Runtime> Cell<R> {
    /// Feeds the lease under one lock and one reading of the clock, which is read under the lock: else two
    /// threads could bring the machine their readings in the wrong order. Then acts on what the machine wants.
    pub(super) fn feed<T>(self: &Arc<Self>, input: impl FnOnce(&mut Inner<R>, Instant) -> T) -> T {
        self.feed_locked(self.lock(), input).0
    }

    /// The same, but not when nothing is left to do.
    pub(super) fn feed_unless_over(self: &Arc<Self>, input: impl FnOnce(&mut Inner<R>, Instant)) {
        let inner = self.lock();
        if !inner.over {
            self.feed_locked(inner, input);
        }
    }

    fn feed_locked<'a, T>(
        self: &'a Arc<Self>,
        mut inner: MutexGuard<'a, Inner<R>>,
        input: impl FnOnce(&mut Inner<R>, Instant) -> T,
    ) -> (T, bool) {
        let now = self.runtime().now();
        let fed = input(&mut inner, now);
        inner.now = now;
        (fed, self.act_on(inner))
    }

    /// Tells the events and sends the commands that the machine has ready. Whoever comes while another is at
    /// it leaves it to that one, so that the commands go out in their order. True if a caller was told something.
    pub(super) fn act_on<'a>(self: &'a Arc<Self>, mut inner: MutexGuard<'a, Inner<R>>) -> bool {
        let mut told = false;
        if inner.acting {
            return told;
        }
        if inner.machine.has_output() {
            inner.acting = true;
            let acting = Acting(self);
            let mut words = Words::for_nodes(self.common.nodes.len());
            loop {
                match inner.machine.poll_output() {
                    Output::Send(command) => inner = self.send(inner, command, &mut words),
                    Output::Event(event) => inner = self.tell(inner, &event, &mut told),
                    Output::Wait(_) => break,
                }
            }
            inner.acting = false;
            std::mem::forget(acting);
        }
        self.leave(inner);
        told
    }

    /// Gives a command to a connection that takes it at once, or makes it an errand.
    fn send<'a>(
        self: &'a Arc<Self>,
        mut inner: MutexGuard<'a, Inner<R>>,
        command: Command,
        words: &mut Words,
    ) -> MutexGuard<'a, Inner<R>> {
        let now = inner.now;
        inner.unanswered.add(command.clone(), now);
        // Behind what has yet to be sent to a node, everything waits for it: no delete is to come before its
        // set.
        let behind = inner.slow.iter().any(|slow| slow.node == command.node);
        // Whoever is next in line asks as soon as the lease is over.
        words.followed = inner.is_over() && inner.turn.as_ref().is_some_and(Turn::is_awaited);
        let node = self.common.nodes.get(command.node.index()).filter(|_| !behind);
        drop(inner);
        let to: Arc<dyn Recipient> = Arc::<Self>::clone(self);
        let passage = node.and_then(|node| node.hand_over(now, &command, &to, words));
        let mut inner = self.lock();
        match passage {
            Some(passage) => inner.unanswered.handed_over(command.id, passage),
            None => inner.slow.push(command),
        }
        inner
    }

    /// Tells whoever waits for this event.
    fn tell<'a>(
        self: &'a Arc<Self>,
        mut inner: MutexGuard<'a, Inner<R>>,
        event: &Event,
        told: &mut bool,
    ) -> MutexGuard<'a, Inner<R>> {
        inner.paused |= matches!(event, Event::AttemptFailed { .. });
        self.common.counters.count(event);
        let telling = inner.waiting.tell(event);
        let traced = trace::is_on();
        if telling.is_none() && !traced {
            return inner;
        }
        drop(inner);
        if traced {
            trace::event(self, event);
        }
        if let Some(telling) = telling {
            telling.deliver();
            *told = true;
        }
        self.lock()
    }

    /// After the outputs: arranges for what is to come.
    fn leave(self: &Arc<Self>, mut inner: MutexGuard<'_, Inner<R>>) {
        let (state, now) = (inner.machine.state(), inner.now);
        inner.presence.follow(self.spec.resource(), state, now);
        if inner.over || inner.machine.is_settled() {
            return self.end(inner);
        }
        let errands = inner.has_errands();
        let starts = errands && !inner.errands;
        inner.errands |= errands;
        let alarm = inner.alarm();
        let turn = inner.turn_to_pass();
        let hints = if state == LeaseState::Acquiring { None } else { inner.hints.take() };
        drop(inner);
        // What runs wakers is done outside the lock.
        if let (Some(at), Some(place)) = (alarm, self.place.get()) {
            self.timekeeper.set(*place, at);
        }
        if starts {
            self.timekeeper.has_errands(Arc::<Self>::clone(self));
        } else if errands {
            self.wake();
        }
        drop((turn, hints));
    }
}

/// Lets others act on the outputs if whoever does it panics.
struct Acting<'a, R: Runtime>(&'a Cell<R>);

impl<R: Runtime> Drop for Acting<'_, R> {
    fn drop(&mut self) {
        // Not to be waited for: it might be us who has it.
        if let Ok(mut inner) = self.0.inner.try_lock() {
            inner.acting = false;
        }
    }
}

impl<R> Inner<R> {
    /// When the timekeeper is to ring, if that is before what was said last.
    fn alarm(&mut self) -> Option<Instant> {
        let machine = self.machine.next_timeout().map(|(at, _)| at);
        let next = machine.into_iter().chain(self.unanswered.next_deadline()).min()?;
        if self.alarm.is_some_and(|alarm| alarm <= next) {
            return None;
        }
        self.alarm = Some(next);
        Some(next)
    }

    /// Whether there is something to do for the task that runs errands.
    fn has_errands(&self) -> bool {
        let waits = self.machine.state() == LeaseState::Acquiring;
        !self.slow.is_empty() || (waits && self.paused) || (self.errands && !waits)
    }

    /// The turn, if the lease is over and the deletes are on their way, so that whoever is next comes behind
    /// them.
    fn turn_to_pass(&mut self) -> Option<Turn> {
        if self.is_over() && self.slow.is_empty() { self.turn.take() } else { None }
    }

    fn is_over(&self) -> bool {
        !matches!(self.machine.state(), LeaseState::Acquiring | LeaseState::Held)
    }
}

/// The side of the connections.
impl<R: Runtime> Recipient for Cell<R> {
    fn answered(self: Arc<Self>, id: CommandId, mut reply: Result<Reply, Fault>) -> bool {
        if tracing::enabled!(tracing::Level::TRACE) {
            let asked = self.lock().unanswered.get(id).cloned();
            if let Some(asked) = asked {
                trace::answer(&self, &asked, &reply);
            }
        }
        let ((), told) = self.feed_locked(self.lock(), |inner, now| {
            inner.unanswered.answered(id, &mut reply);
            inner.machine.handle_reply(now, id, reply);
        });
        told
    }

    fn given_back(self: Arc<Self>, command: Command) {
        {
            let mut inner = self.lock();
            inner.unanswered.given_back(command.id);
            inner.slow.push(command);
        }
        self.wake();
    }
}

/// The timekeeper's side.
impl<R: Runtime> Timed for Cell<R> {
    fn has_place(&self, place: Place) {
        // It is taken in once.
        let _ = self.place.set(place);
    }

    /// Where errands are run it is for that task to look at the clock, behind the answers that it may have.
    fn ring(self: Arc<Self>) {
        let errands = {
            let mut inner = self.lock();
            inner.alarm = None;
            inner.rung = inner.errands;
            inner.errands
        };
        if errands {
            self.wake();
        } else {
            self.tell_time();
        }
    }

    fn run_errands(self: Arc<Self>) {
        errands::start(&self);
    }

    fn abandon(self: Arc<Self>) {
        Self::abandon(&self);
    }

    fn orphan(self: Arc<Self>) {
        Self::orphan(&self);
    }
}

impl<R: Runtime> Cell<R> {
    /// What has become due is done.
    fn tell_time(self: &Arc<Self>) {
        let mut overdue = Vec::new();
        loop {
            // Before the machine gives them up.
            for (passage, command) in overdue.drain(..) {
                self.is_overdue(passage, &command);
            }
            self.feed_unless_over(|inner, now| {
                overdue = inner.unanswered.overdue(now);
                if overdue.is_empty() && inner.machine.next_timeout().is_some_and(|(at, _)| at <= now) {
                    inner.machine.handle_timeout(now);
                }
            });
            if overdue.is_empty() {
                return;
            }
        }
    }

    fn is_overdue(&self, passage: Passage, command: &Command) {
        let Some(node) = self.common.nodes.get(command.node.index()) else { return };
        if node.overdue(passage, command) {
            self.lock().unanswered.repeated(command.id, passage);
        }
    }
}

/// The side of the task that runs errands.
impl<R: Runtime> Cell<R> {
    /// What is to be done. `idle` says that nothing is under way, `wait` what was seen of others while the lease
    /// had to wait.
    pub(crate) fn look(self: &Arc<Self>, idle: bool, wait: Option<Wait>) -> Look {
        let rung = std::mem::take(&mut self.lock().rung);
        if rung {
            self.tell_time();
        }
        let mut inner = self.lock();
        if let Some(wait) = wait {
            inner.presence.waits(wait);
        }
        inner.paused = false;
        let slow = std::mem::take(&mut inner.slow);
        let asking = inner.machine.state() == LeaseState::Acquiring;
        let watched = inner.machine.watched().collect();
        let done = inner.over || (idle && slow.is_empty() && !asking);
        inner.errands = !done;
        drop(inner);
        let send = |command: Command| {
            let answer = self.common.nodes.get(command.node.index())?.send(&command);
            Some((command.id, answer))
        };
        Look { commands: slow.into_iter().filter_map(send).collect(), watched, asking, done }
    }

    /// The key may have gone at a node; `wait` is what was seen of others meanwhile.
    pub(crate) fn hinted(self: &Arc<Self>, node: NodeId, wait: Wait) {
        self.feed(|inner, now| {
            inner.presence.waits(wait);
            inner.machine.handle_hint(now, node);
        });
    }

    /// What there is to be seen of others who want the same.
    pub(crate) fn hints(&self) -> Hints<R> {
        let token = self.machine(LeaseMachine::token);
        Hints::new(self.runtime().clone(), Arc::clone(&self.common.nodes), &self.spec, token)
    }

    /// What was seen of them before the first attempt.
    pub(crate) fn take_hints(&self) -> Option<Box<Hints<R>>> {
        self.lock().hints.take()
    }

    /// Passes the turn on, if it is time for that.
    pub(crate) fn pass_the_turn(&self) {
        let turn = self.lock().turn_to_pass();
        drop(turn);
    }
}
