//! One node reached by address: who gets which connection, and when a connection has had its day.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{Either, select};
use redlock_core::{Cause, CauseKind, Command, Fault, Instant, Intent, Reply};
use tracing::{debug, warn};

use super::cut::Cut;
use super::fault::Damage;
use super::queue::{Handed, Queue, too_late};
use super::wire::{Answer, Ticket, Wire};
use super::{Connect, Connection, backoff, dial, lock, timing};

/// One Redis server, reached through a [`redis::Client`]; the connections to it are the link's own.
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
/// - A delete of a token whose acquire is unanswered on a retired connection goes out on that
///   connection too, right behind the acquire; its answer there decides nothing.
/// - Nothing is ever sent twice, except a script in full after `NOSCRIPT`.
/// - What can be unanswered is bounded: per connection, and in the number of retired connections.
pub struct Link<R: Connect> {
    runtime: R,
    client: redis::Client,
    name: Arc<str>,
    state: Mutex<State<R::Connection>>,
    /// Given when the link is closed; dropped with the link.
    closed: Cut,
}

impl<R: Connect> Link<R> {
    /// A link to the server that `client` names. Does no I/O, and needs no running runtime. `name` is
    /// for logs and must not contain credentials: see [`node_name`](super::node_name).
    #[must_use]
    pub fn new(runtime: R, client: redis::Client, name: Arc<str>) -> Self {
        let state = Mutex::new(State {
            phase: Phase::Idle,
            retired: VecDeque::new(),
            generation: 0,
            failures: 0,
            last_number: 0,
        });
        Self { runtime, client, name, state, closed: Cut::new() }
    }

    /// The name that the link was made with.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
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
    pub fn send(
        self: &Arc<Self>,
        command: &Command,
    ) -> impl Future<Output = Result<Reply, Fault>> + Send + 'static + use<R> {
        let link = Arc::clone(self);
        let command = command.clone();
        async move { link.carry_out(command).await }
    }

    /// Closes all connections for good. Commands under way end as unknown, those that wait and those to
    /// come as not executed.
    pub fn close(&self) {
        let closed = Cause::new(CauseKind::Closed);
        self.closed.give(closed.clone());
        let (phase, retired) = {
            let mut state = lock(&self.state);
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

    pub(super) const fn runtime(&self) -> &R {
        &self.runtime
    }

    pub(super) const fn client(&self) -> &redis::Client {
        &self.client
    }

    pub(super) const fn closed(&self) -> &Cut {
        &self.closed
    }

    pub(super) const fn state(&self) -> &Mutex<State<R::Connection>> {
        &self.state
    }

    async fn carry_out(self: Arc<Self>, command: Command) -> Result<Reply, Fault> {
        let deadline = command.deadline;
        let patience = deadline.saturating_since(self.runtime.now());
        if patience.is_zero() && !is_delete(&command) {
            return Err(Fault::NotExecuted(Cause::new(CauseKind::Timeout)));
        }
        // Runs after the command's ticket is gone, however this future ends.
        let _prune = Prune(&self);
        match self.place(&command) {
            Placed::On(ticket) => {
                let wire = Arc::clone(ticket.wire());
                // A delete that comes too late is sent all the same, but proves nothing.
                let until = (!patience.is_zero()).then_some(deadline);
                self.attend(&wire, until, pin!(ticket.carry_out(command))).await
            }
            Placed::Waits(number, fate) => {
                let Handed { wire, at, call } = self.wait(number, fate, deadline).await?;
                // The wait for the connection is no fault of the connection: it has as long as if it had
                // been there from the start.
                self.attend(&wire, Some(at.saturating_add(patience)), call).await
            }
            Placed::Nowhere(fault) => Err(fault),
        }
    }

    /// Finds the command its place, and sends a delete along behind unanswered acquires of its token.
    fn place(self: &Arc<Self>, command: &Command) -> Placed<R::Connection> {
        let (behind, placed, dial) = {
            let mut state = lock(&self.state);
            let behind = state.behind(command);
            state.last_number += 1;
            let number = state.last_number;
            let (placed, dial) = match &mut state.phase {
                Phase::Up(wire) => (wire.admit(command).map(Placed::On), None),
                Phase::Dialling(queue) => {
                    (queue.push(number, command).map(|fate| Placed::Waits(number, fate)), None)
                }
                Phase::Down(cause) => (Err(Fault::NotExecuted(cause.clone())), None),
                Phase::Closed => (Err(Fault::NotExecuted(Cause::new(CauseKind::Closed))), None),
                Phase::Idle => {
                    let mut queue = Queue::new();
                    let waits = queue.push(number, command).map(|fate| Placed::Waits(number, fate));
                    (waits, Some(state.dial(Phase::Dialling(queue))))
                }
            };
            (behind, placed.unwrap_or_else(Placed::Nowhere), dial)
        };
        for ticket in behind {
            self.send_behind(ticket, command);
        }
        if let Some(generation) = dial {
            dial::start(self, generation, None);
        }
        placed
    }

    /// Carries a delete out on a retired connection, in the background and with patience.
    fn send_behind(self: &Arc<Self>, ticket: Ticket<R::Connection>, command: &Command) {
        debug!(node = %self.name, generation = ticket.wire().generation(), "delete follows an unanswered acquire");
        let runtime = self.runtime.clone();
        let link = Arc::downgrade(self);
        let until = command.deadline.saturating_add(PATIENCE);
        let command = command.clone();
        let task = async move {
            // Whatever the answer is, the one on the current connection counts.
            let _ = timing::by(&runtime, until, ticket.carry_out(command)).await;
            if let Some(link) = link.upgrade() {
                link.prune();
            }
        };
        if let Err(error) = self.runtime.spawn(task) {
            debug!(node = %self.name, %error, "a delete behind an unanswered acquire was not sent");
        }
    }

    /// Waits in the queue until the command's fate is known, or its deadline strikes.
    async fn wait(
        self: &Arc<Self>,
        number: u64,
        mut fate: oneshot::Receiver<Result<Handed<R::Connection>, Fault>>,
        deadline: Instant,
    ) -> Result<Handed<R::Connection>, Fault> {
        let place = QueuePlace { link: self, number };
        let decided = match timing::by(&self.runtime, deadline, &mut fate).await {
            Some(decided) => decided,
            None if place.withdraw() => return Err(too_late()),
            // Somebody else took it out just before us and is about to say what became of it.
            None => fate.await,
        };
        decided.unwrap_or_else(|_| Err(Fault::NotExecuted(no_runtime())))
    }

    /// Stays with a command on a connection until it is answered, and draws the consequences for the
    /// connection, of which an answer is expected `until` then.
    async fn attend(
        self: &Arc<Self>,
        wire: &Arc<Wire<R::Connection>>,
        until: Option<Instant>,
        mut call: impl Future<Output = Answer> + Unpin,
    ) -> Result<Reply, Fault> {
        let answer = match until {
            None => call.await,
            Some(until) => match select(&mut call, pin!(timing::reach(&self.runtime, until))).await {
                Either::Left((answer, _)) => answer,
                Either::Right(((), _)) => {
                    self.replace(wire, Loss::Stalled);
                    call.await
                }
            },
        };
        match answer.damage {
            Damage::None => {}
            Damage::Stalled => self.replace(wire, Loss::Stalled),
            Damage::Broken => self.replace(wire, Loss::Broken(cause_of(&answer.reply))),
        }
        answer.reply
    }

    /// Takes a connection out of use and dials another, unless that has happened already.
    fn replace(self: &Arc<Self>, wire: &Arc<Wire<R::Connection>>, loss: Loss) {
        let mut given_up = matches!(loss, Loss::Broken(_)).then(|| Arc::clone(wire));
        let dial = {
            let mut state = lock(&self.state);
            let current = matches!(&state.phase, Phase::Up(up) if up.generation() == wire.generation());
            current.then(|| {
                if given_up.is_none() {
                    given_up = state.retire(wire);
                }
                state.redial(wire.has_answered(), &loss)
            })
        };
        if let Some(given_up) = given_up {
            given_up.cut(loss.cause());
        }
        if let Some((generation, pause)) = dial {
            let node = &self.name;
            match &loss {
                Loss::Broken(cause) => {
                    debug!(%node, generation = wire.generation(), %cause, "connection lost")
                }
                Loss::Stalled => {
                    warn!(%node, generation = wire.generation(), "no answer in time, connection retired")
                }
            }
            if pause.is_some() {
                warn!(%node, cause = %loss.verdict(), "node is down");
            }
            dial::start(self, generation, pause);
        }
    }

    /// Lets go of retired connections that owe no answer.
    fn prune(&self) {
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

/// What a link knows about its connections. Guarded by a lock that is held for a few steps only, in
/// which no foreign code runs.
pub(super) struct State<C> {
    pub(super) phase: Phase<C>,
    /// Replaced, but owing an answer. The oldest first.
    pub(super) retired: VecDeque<Arc<Wire<C>>>,
    /// Of the last dialling task; the connection that it makes has the same.
    pub(super) generation: u64,
    /// Failed dials, and connections that never answered, since the last answer.
    pub(super) failures: u32,
    last_number: u64,
}

pub(super) enum Phase<C> {
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
    /// Enters the phase of a dial that is about to start; yields its generation.
    fn dial(&mut self, phase: Phase<C>) -> u64 {
        self.phase = phase;
        self.generation += 1;
        self.generation
    }

    /// What follows the loss of the connection: a dial at once, for which commands wait; or, if this is
    /// not the first connection in a row that never answered, one after a pause.
    fn redial(&mut self, had_answered: bool, loss: &Loss) -> (u64, Option<Duration>) {
        self.failures = if had_answered { 0 } else { self.failures.saturating_add(1) };
        if self.failures <= 1 {
            return (self.dial(Phase::Dialling(Queue::new())), None);
        }
        (self.dial(Phase::Down(loss.verdict())), Some(backoff::pause(self.failures)))
    }

    /// Places for a delete on retired connections where an acquire of its token is unanswered.
    fn behind(&self, command: &Command) -> Vec<Ticket<C>> {
        if !is_delete(command) {
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
    fn retire(&mut self, wire: &Arc<Wire<C>>) -> Option<Arc<Wire<C>>> {
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

/// Where a command ended up.
enum Placed<C: Connection> {
    On(Ticket<C>),
    Waits(u64, oneshot::Receiver<Result<Handed<C>, Fault>>),
    Nowhere(Fault),
}

/// Why a connection is taken out of use.
enum Loss {
    /// A deadline passed without an answer.
    Stalled,
    /// It failed.
    Broken(Cause),
}

impl Loss {
    /// The cause for the commands under way on a connection that is given up.
    fn cause(&self) -> Cause {
        match self {
            Self::Stalled => Cause::with_detail(CauseKind::Disconnected, "given up without an answer"),
            Self::Broken(cause) => cause.clone(),
        }
    }

    /// The cause for the commands that are turned away afterwards.
    fn verdict(&self) -> Cause {
        match self {
            Self::Stalled => {
                Cause::with_detail(CauseKind::Unreachable, "accepts connections but does not answer")
            }
            Self::Broken(cause) => Cause::with_detail(CauseKind::Unreachable, cause.to_string()),
        }
    }
}

/// A place in the queue, given up when dropped.
struct QueuePlace<'a, R: Connect> {
    link: &'a Link<R>,
    number: u64,
}

impl<R: Connect> QueuePlace<'_, R> {
    /// Whether the command was still in the queue. It is not any more.
    fn withdraw(&self) -> bool {
        let withdrawn = match &mut lock(&self.link.state).phase {
            Phase::Dialling(queue) => queue.withdraw(self.number),
            _ => None,
        };
        withdrawn.is_some()
    }
}

impl<R: Connect> Drop for QueuePlace<'_, R> {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// Prunes when dropped, that is after the ticket of the command that it stands beside.
struct Prune<'a, R: Connect>(&'a Link<R>);

impl<R: Connect> Drop for Prune<'_, R> {
    fn drop(&mut self) {
        self.0.prune();
    }
}

const fn is_delete(command: &Command) -> bool {
    matches!(command.intent, Intent::CompareAndDelete { .. })
}

fn cause_of(reply: &Result<Reply, Fault>) -> Cause {
    match reply {
        Err(fault) => fault.cause().clone(),
        Ok(_) => Cause::new(CauseKind::Disconnected),
    }
}

fn no_runtime() -> Cause {
    Cause::with_detail(CauseKind::Unreachable, "no async runtime is running, or it stopped while connecting")
}

/// How many replaced connections may be kept for the answers that they owe.
const MOST_RETIRED: usize = 4;

/// How long after its deadline a delete on a retired connection is waited for. The server may come
/// back late; but a connection is not kept for ever for the sake of a clean-up.
const PATIENCE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
