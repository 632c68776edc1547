//! Acting on what the machine of a lease wants.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::task::Waker;
use std::time::Duration;

use redlock_core::{
    Command, CommandId, Event, Fault, Instant, LeaseMachine, LeaseState, NodeId, Output, Reply,
};

use super::waiting::Telling;
use super::{Cell, Inner};
use crate::courtesy::Wait;
use crate::hints::Hints;
use crate::node::Answer;
use crate::recipient::{Passage, Recipient};
use crate::redis::Words;
use crate::stats::Counters;
use crate::{Runtime, trace};

/// No sleep is longer than this. A timer may stand still while the machine is suspended and the clock
/// does not; then the loss of a lease is noticed at most this long after waking up. Who asks the lease
/// itself gets the right answer at once.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// What there is to do for the task of a lease.
pub(crate) struct Look {
    /// To be sent by the task, in this order.
    pub(crate) commands: Vec<(CommandId, Answer)>,
    /// When to look again, if nothing happens before.
    pub(crate) alarm: Option<Instant>,
    /// Where to watch for the key to go: nowhere but in a pause.
    pub(crate) watched: Vec<NodeId>,
    /// The lease is being asked for, so there may be another pause.
    pub(crate) asking: bool,
    /// Nothing is left to do.
    pub(crate) ended: bool,
}

impl<R: Runtime> Cell<R> {
    /// Feeds the lease under one lock and one reading of the clock, which is read under the lock: else two
    /// threads could bring the machine their readings in the wrong order. Then acts on what the machine wants.
    pub(super) fn feed<T>(self: &Arc<Self>, input: impl FnOnce(&mut Inner, Instant) -> T) -> T {
        let mut inner = self.lock();
        let now = self.runtime.now();
        let fed = input(&mut inner, now);
        self.act_on(inner, now);
        fed
    }

    /// Acts on what the machine wants.
    pub(crate) fn act(self: &Arc<Self>) {
        self.feed(|_, _| ());
    }

    /// Tells the events and sends the commands that the machine has ready. Whoever comes while another is at
    /// it leaves it to that one, so that the commands go out in their order.
    fn act_on<'a>(self: &'a Arc<Self>, mut inner: MutexGuard<'a, Inner>, mut now: Instant) {
        if inner.acting {
            return;
        }
        if !inner.machine.has_output() {
            let needs_the_task = inner.needs_the_task();
            drop(inner);
            if needs_the_task {
                self.wake();
            }
            return;
        }
        let mut outputs = Outputs::default();
        inner.acting = true;
        let acting = Acting(self);
        loop {
            inner.drain(now, &self.counters, &mut outputs);
            drop(inner);
            let Outputs { commands, events, tellings } = &mut outputs;
            for event in events.drain(..) {
                trace::event(self, &event);
            }
            for telling in tellings.drain(..) {
                telling.deliver();
            }
            self.hand_over(now, commands);
            inner = self.lock();
            if !inner.machine.has_output() {
                break;
            }
            now = self.runtime.now();
        }
        inner.acting = false;
        std::mem::forget(acting);
        let state = inner.machine.state();
        inner.presence.follow(self.spec.resource(), state, now);
        let needs_the_task = inner.needs_the_task();
        let turn = inner.turn_to_pass();
        drop(inner);
        if needs_the_task {
            self.wake();
        }
        // It wakes whoever is next.
        drop(turn);
    }

    /// Gives commands to connections that take them at once, and the others to the task.
    fn hand_over(self: &Arc<Self>, now: Instant, commands: &mut Vec<Command>) {
        if commands.is_empty() {
            return;
        }
        let to: Arc<dyn Recipient> = Arc::<Self>::clone(self);
        // Behind what the task has yet to send, everything waits for it: no delete is to come before its set.
        let mut slow = !self.lock().slow.is_empty();
        let mut kept = (commands.len() > 1).then(Words::default);
        for command in commands.drain(..) {
            let node = self.nodes.get(command.node.index()).filter(|_| !slow);
            match node.and_then(|node| node.hand_over(now, &command, &to, kept.as_mut())) {
                Some(passage) => self.lock().unanswered.handed_over(command.id, passage),
                None => {
                    slow = slow || node.is_none();
                    self.lock().slow.push(command);
                }
            }
        }
    }
}

/// What the machine wants, taken out of its queue.
#[derive(Default)]
struct Outputs {
    commands: Vec<Command>,
    /// For `tracing`, if anybody listens.
    events: Vec<Event>,
    tellings: Vec<Telling>,
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

impl Inner {
    /// Empties the machine's queue.
    fn drain(&mut self, now: Instant, counters: &Counters, outputs: &mut Outputs) {
        let traced = trace::is_on();
        loop {
            match self.machine.poll_output() {
                Output::Send(command) => {
                    self.unanswered.add(command.clone(), now);
                    outputs.commands.push(command);
                }
                Output::Event(event) => {
                    self.paused |= matches!(event, Event::AttemptFailed { .. });
                    counters.count(&event);
                    outputs.tellings.extend(self.waiting.tell(&event));
                    if traced {
                        outputs.events.push(event);
                    }
                }
                Output::Wait(_) => return,
            }
        }
    }

    /// Whether the task has something to do before the time for which it has set its timer.
    fn needs_the_task(&self) -> bool {
        !self.slow.is_empty()
            || self.paused
            || (self.watching && self.machine.state() != LeaseState::Acquiring)
            || self.machine.is_settled()
            || self.armed.is_some_and(|armed| self.alarm(armed).is_some_and(|alarm| alarm < armed))
    }

    /// When the task has to look, if that is before `latest`.
    fn alarm(&self, latest: Instant) -> Option<Instant> {
        let machine = self.machine.next_timeout().map(|(at, _)| at.min(latest));
        machine.into_iter().chain(self.unanswered.next_deadline()).min()
    }

    /// The turn, if the lease is over and the deletes are on their way, so that whoever is next comes behind
    /// them.
    fn turn_to_pass(&mut self) -> Option<crate::turns::Turn> {
        let over = !matches!(self.machine.state(), LeaseState::Acquiring | LeaseState::Held);
        if over && self.slow.is_empty() { self.turn.take() } else { None }
    }
}

/// The side of the connections.
impl<R: Runtime> Recipient for Cell<R> {
    fn answered(self: Arc<Self>, id: CommandId, mut reply: Result<Reply, Fault>) {
        if tracing::enabled!(tracing::Level::TRACE) {
            let asked = self.lock().unanswered.get(id).cloned();
            if let Some(asked) = asked {
                trace::answer(&self, &asked, &reply);
            }
        }
        self.feed(|inner, now| {
            inner.unanswered.answered(id, &mut reply);
            inner.machine.handle_reply(now, id, reply);
        });
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

/// The task's side.
impl<R: Runtime> Cell<R> {
    /// What has become due is done; what is left for the task, it is told. `armed` is for when its timer is
    /// set, `wait` what it has seen of others while it had to wait.
    pub(crate) fn look(self: &Arc<Self>, armed: Option<Instant>, wait: Option<Wait>) -> Look {
        let mut overdue = Vec::new();
        let (slow, look) = loop {
            // Before the machine gives them up.
            for (passage, command) in overdue.drain(..) {
                self.is_overdue(passage, &command);
            }
            let looked = self.feed(|inner, now| {
                overdue = inner.unanswered.overdue(now);
                if !overdue.is_empty() {
                    return None;
                }
                if let Some(wait) = wait {
                    inner.presence.waits(wait);
                }
                if inner.machine.next_timeout().is_some_and(|(at, _)| at <= now) {
                    inner.machine.handle_timeout(now);
                }
                // Whoever acts on the outputs already has the task woken if that leaves something to it.
                (inner.acting || !inner.machine.has_output()).then(|| {
                    let alarm = inner.alarm(now.saturating_add(LONGEST_SLEEP));
                    inner.armed = armed.into_iter().chain(alarm).min();
                    inner.paused = false;
                    inner.watching = wait.is_some();
                    let look = Look {
                        commands: Vec::new(),
                        alarm,
                        watched: inner.machine.watched().collect(),
                        asking: inner.machine.state() == LeaseState::Acquiring,
                        ended: inner.machine.is_settled() || self.is_stopped(),
                    };
                    (std::mem::take(&mut inner.slow), look)
                })
            });
            if let Some(looked) = looked {
                break looked;
            }
        };
        let send = |command: Command| {
            let answer = self.nodes.get(command.node.index())?.send(&command);
            Some((command.id, answer))
        };
        Look { commands: slow.into_iter().filter_map(send).collect(), ..look }
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
        Hints::new(self.runtime.clone(), Arc::clone(&self.nodes), &self.spec, token)
    }

    fn is_overdue(&self, passage: Passage, command: &Command) {
        let Some(node) = self.nodes.get(command.node.index()) else { return };
        if node.overdue(passage, command) {
            self.lock().unanswered.repeated(command.id, passage);
        }
    }

    /// Passes the turn on, if it is time for that.
    pub(crate) fn pass_the_turn(&self) {
        let turn = self.lock().turn_to_pass();
        drop(turn);
    }

    /// Whether something was requested since the last call; if not, `waker` is woken when it is.
    pub(crate) fn take_request(&self, waker: &Waker) -> bool {
        self.waker.register(waker);
        self.requested.swap(false, Ordering::AcqRel)
    }
}
