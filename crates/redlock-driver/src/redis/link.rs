//! One node reached by address: who gets which connection, and when a connection has had its day.

mod sending;

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use redlock_core::{Cause, CauseKind, Command, Fault, Instant, Reply};
use tracing::{debug, warn};

use super::cut::Cut;
use super::demotion::{self, Demotion};
use super::fault::Damage;
use super::listener::Listener;
use super::quarantine::Guard;
use super::state::{Loss, Phase, State, Superseded};
use super::target::Target;
use super::wire::{Answer, Keeper, Wire};
use super::{Connect, dial, lock, pump, repeat};

/// One Redis server, reached by what a [`Target`] says; the connections to it are the link's own.
///
/// - Nothing is dialled before the first command. Dialling happens in a task of its own, so a caller
///   that gives up cancels nothing.
/// - While the first dial runs, or the first one after a connection that worked, commands wait for it,
///   first in, first out, each up to its deadline. If the dial fails the node is *known down*: commands
///   get an immediate [`Fault::NotExecuted`] with the cause, and the task goes on dialling with growing,
///   jittered pauses until it succeeds, or the link is closed or dropped.
/// - A command that was handed to a connection is awaited to its answer, for as long as the caller
///   likes. But when its deadline passes without one the connection is *retired*: it takes no new
///   command, and another is dialled at once. On an I/O error the connection is given up altogether.
///   A connection that was lost before it ever answered counts as a failed dial, the second time in a
///   row, so that a server that only accepts does not get one connection after another.
/// - A server that answers like a replica is dialled once more, in the background: see [`Demotion`].
/// - A delete of a token whose acquire is unanswered on a retired connection goes out on that
///   connection too, right behind the acquire; its answer there decides nothing.
/// - A delete whose connection broke, or that got no answer by its deadline, is sent once more on the
///   connection that follows, in the background.
/// - Nothing else is ever sent twice, except in another form what the server has refused in the first: a script
///   in full after `NOSCRIPT`, a script instead of a command that the server does not know. See [`Dialect`](super::dialect::Dialect).
/// - What can be unanswered is bounded: per connection, and in the number of retired connections.
pub(crate) struct Link<R: Connect> {
    runtime: R,
    target: Target,
    name: Arc<str>,
    state: Mutex<State<R::Connection>>,
    demotion: Demotion,
    listener: Arc<Listener<R>>,
    /// Given when the link is closed; dropped with the link.
    closed: Cut,
    /// Keeps acquires from a server that was started too short a time ago.
    guard: Option<Arc<Guard>>,
}

impl<R: Connect> Link<R> {
    /// A link to what `target` says. Does no I/O, and needs no running runtime. `name` is for logs and
    /// must not contain credentials: see [`node_name`](super::node_name).
    #[must_use]
    pub(crate) fn new(runtime: R, target: impl Into<Target>, name: Arc<str>) -> Self {
        let target = target.into();
        let listener = Listener::new(runtime.clone(), target.clone(), Arc::clone(&name));
        Self {
            runtime,
            target,
            name,
            listener: Arc::new(listener),
            state: Mutex::new(State::new()),
            demotion: Demotion::default(),
            closed: Cut::new(),
            guard: None,
        }
    }

    /// A link of its own to the same target, with this restart guard.
    #[must_use]
    pub(crate) fn guarded(&self, guard: Duration) -> Self {
        let link = Self::new(self.runtime.clone(), self.target.clone(), Arc::clone(&self.name));
        Self { guard: Some(Arc::new(Guard::new(guard))), ..link }
    }

    /// The name that the link was made with.
    #[must_use]
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Sends one command, when the future is first polled, and waits for the answer.
    ///
    /// The future may take longer than `command.deadline`: an answer that comes late still says what
    /// was left behind. Dropping it forgets the command, which may be carried out all the same.
    ///
    /// # Errors
    /// [`Fault::NotExecuted`] if the command was never handed to a connection: the node is known down,
    /// the deadline passed while a dial was running, too much is unanswered, the link is closed, or no
    /// runtime is running. [`Fault::Unknown`] if the connection was lost before the answer came.
    pub(crate) fn send(
        self: &Arc<Self>,
        command: &Command,
    ) -> impl Future<Output = Result<Reply, Fault>> + Send + 'static + use<R> {
        let link = Arc::clone(self);
        let command = command.clone();
        async move { link.carry_out(command).await }
    }

    /// Closes all connections for good. Commands under way end as unknown, those that wait and those to
    /// come as not executed.
    pub(crate) fn close(&self) {
        let closed = Cause::new(CauseKind::Closed);
        self.closed.give();
        self.listener.close();
        let (phase, retired) = {
            let mut state = lock(&self.state);
            state.owed.clear();
            (std::mem::replace(&mut state.phase, Phase::Closed), std::mem::take(&mut state.retired))
        };
        match phase {
            Phase::Dialling(queue) => queue.fail(&Fault::NotExecuted(closed.clone())),
            Phase::Up(wire) => wire.cut(closed.clone()),
            Phase::Idle | Phase::Down(_) | Phase::Closed => {}
        }
        for wire in retired {
            wire.cut(closed.clone());
        }
    }

    /// Dials one connection more, for a question that is to stand in no lease's way. Takes as long as it
    /// takes.
    pub(crate) fn dial(
        &self,
    ) -> impl Future<Output = Result<R::Connection, Cause>> + Send + 'static + use<R> {
        let (runtime, target) = (self.runtime.clone(), self.target.clone());
        async move {
            let deadline = runtime.now().saturating_add(dial::CONNECT_TIMEOUT);
            target.connect(&runtime, deadline).await.map(|(connection, _)| connection)
        }
    }

    pub(super) const fn runtime(&self) -> &R {
        &self.runtime
    }

    pub(super) const fn target(&self) -> &Target {
        &self.target
    }

    /// What hears from the same server.
    pub(crate) const fn listener(&self) -> &Arc<Listener<R>> {
        &self.listener
    }

    pub(super) const fn demotion(&self) -> &Demotion {
        &self.demotion
    }

    pub(super) const fn closed(&self) -> &Cut {
        &self.closed
    }

    pub(super) const fn guard(&self) -> Option<&Arc<Guard>> {
        self.guard.as_ref()
    }

    /// Whether the restart guard lets a command through to the connection that was looked at last.
    pub(super) fn check(&self, now: Instant, command: &Command) -> Result<(), Fault> {
        self.guard.as_ref().map_or(Ok(()), |guard| guard.check(now, &command.intent))
    }

    pub(super) const fn state(&self) -> &Mutex<State<R::Connection>> {
        &self.state
    }

    /// What an answer says about the connection, and about what is left to do for the command.
    pub(super) fn judge(
        self: &Arc<Self>,
        wire: &Arc<Wire<R::Connection>>,
        command: &Command,
        answer: &Answer,
        repeated: bool,
    ) {
        match answer.damage {
            Damage::None => {}
            Damage::Stalled => self.replace(wire, Loss::Stalled),
            Damage::Broken => self.replace(wire, Loss::Broken(cause_of(&answer.reply))),
        }
        if !repeated && matches!(answer.reply, Err(Fault::Unknown(_))) && wire.was_cut().is_some() {
            repeat::again(self, wire.generation(), command);
        }
        match &answer.reply {
            Ok(Reply::Error(error)) if demotion::is_replicas(error) => demotion::look_elsewhere(self, wire),
            Ok(reply) => self.demotion.heard(reply),
            Err(_) => {}
        }
    }

    /// Takes a connection out of use and dials another, unless that has happened already.
    pub(super) fn replace(self: &Arc<Self>, wire: &Arc<Wire<R::Connection>>, loss: Loss) {
        if let Loss::Broken(cause) = &loss {
            // Before looking whether it is in use: whoever puts it to use looks at this afterwards.
            wire.cut(cause.clone());
        }
        let (given_up, generation, pause) = {
            let mut state = lock(&self.state);
            if state.in_use(wire.generation()).is_none() {
                return;
            }
            let given_up = match loss {
                Loss::Broken(_) => None,
                Loss::Stalled | Loss::Moved => state.retire(wire),
            };
            let (generation, pause) = state.redial(wire.has_answered(), &loss);
            (given_up, generation, pause)
        };
        wire.finish();
        if let Some(given_up) = given_up {
            given_up.cut(without_an_answer());
        }
        self.report(wire.generation(), &loss, pause.is_some());
        // The next server may be another, and what this one would have told is lost in any case.
        self.listener.leave();
        dial::start(self, generation, pause);
    }

    /// The connection that new commands go to, if it is of this generation.
    pub(super) fn in_use(&self, generation: u64) -> Option<Arc<Wire<R::Connection>>> {
        lock(&self.state).in_use(generation)
    }

    /// Puts a connection in the place of the one of this generation, if that is still in use; it is kept for
    /// the answers that it owes. Yields the generation of the new one.
    pub(super) fn supersede(self: &Arc<Self>, generation: u64, connection: R::Connection) -> Option<u64> {
        // Whatever is left over is dropped outside the lock: dropping a connection may run foreign code.
        let outcome = lock(&self.state).supersede(generation, connection, self.keeper());
        let Superseded { wire, before, given_up } = outcome.ok()?;
        let generation = wire.generation();
        self.put_to_use(&wire);
        before.finish();
        if let Some(given_up) = given_up {
            given_up.cut(without_an_answer());
        }
        debug!(node = %self.name, generation = before.generation(), "connection superseded");
        self.listener.leave();
        Some(generation)
    }

    /// What a connection of this link tells.
    pub(super) fn keeper(self: &Arc<Self>) -> Weak<dyn Keeper<R::Connection>> {
        let link: Weak<Self> = Arc::downgrade(self);
        link
    }

    /// Starts the task of a new connection.
    pub(super) fn put_to_use(&self, wire: &Arc<Wire<R::Connection>>) {
        if let Err(error) = pump::start(&self.runtime, wire) {
            debug!(node = %self.name, %error, "nobody takes the answers in");
        }
    }

    fn report(&self, generation: u64, loss: &Loss, down: bool) {
        let node = &self.name;
        match loss {
            Loss::Broken(cause) => debug!(%node, generation, %cause, "connection lost"),
            Loss::Stalled => warn!(%node, generation, "no answer in time, connection retired"),
            Loss::Moved => warn!(%node, generation, "the sentinels name another primary"),
        }
        if down {
            warn!(%node, cause = %loss.verdict(), "node is down");
        }
    }

    /// Lets go of retired connections that owe no answer.
    pub(super) fn prune(&self) {
        let mut gone = Vec::new();
        lock(&self.state).retired.retain(|wire| {
            let idle = wire.is_idle();
            if idle {
                gone.push(Arc::clone(wire));
            }
            !idle
        });
        // Dropped here, outside the lock: dropping a connection may run foreign code.
        drop(gone);
    }
}

impl<R: Connect> fmt::Debug for Link<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("name", &self.name).finish_non_exhaustive()
    }
}

fn cause_of(reply: &Result<Reply, Fault>) -> Cause {
    match reply {
        Err(fault) => fault.cause().clone(),
        Ok(_) => Cause::new(CauseKind::Disconnected),
    }
}

fn without_an_answer() -> Cause {
    Cause::with_detail(CauseKind::Disconnected, "given up without an answer")
}

#[cfg(test)]
mod guard_tests;
#[cfg(test)]
mod tests;
