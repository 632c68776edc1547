//! The task that makes a connection: it dials until one is there, and hands the waiting commands over.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::select;
use redlock_core::{Cause, CauseKind, Command, Fault};
use tracing::{debug, warn};

use super::link::Link;
use super::queue::{Handed, Waiting, too_late};
use super::state::{Loss, Phase, is_delete};
use super::wire::{Answer, Ticket, Wire};
use super::{Connect, Connection, backoff, fault, lock, repeat, timing};

/// Starts to dial for `link`, whose state is one of dialling already, after `pause`. If no runtime is
/// running the link ends up as if it had never dialled, and commands that wait learn that.
pub(super) fn start<R: Connect>(link: &Arc<Link<R>>, generation: u64, pause: Option<Duration>) {
    // Made before the task runs: a runtime that stops may drop it unpolled.
    let unfinished = Unfinished { link: Arc::downgrade(link), generation };
    let runtime = link.runtime().clone();
    let client = link.client().clone();
    let closed = link.closed().signal();
    let task = async move {
        let dial = dial(&unfinished.link, runtime, client, generation, pause);
        // A link that is closed or gone needs no connection.
        let _ = select(pin!(dial), pin!(closed)).await;
    };
    if let Err(error) = link.runtime().spawn(task) {
        warn!(node = %link.name(), %error, "not connecting");
    }
}

async fn dial<R: Connect>(
    link: &Weak<Link<R>>,
    runtime: R,
    client: redis::Client,
    generation: u64,
    pause: Option<Duration>,
) {
    if let Some(pause) = pause {
        timing::pause(&runtime, pause).await;
    }
    let password = client.get_connection_info().redis_settings().password();
    loop {
        let deadline = runtime.now().saturating_add(CONNECT_TIMEOUT);
        let dialled = timing::by(&runtime, deadline, runtime.connect(&client)).await;
        let Some(link) = link.upgrade() else { return };
        let cause = match dialled {
            Some(Ok(connection)) => return connected(&link, generation, connection).await,
            Some(Err(error)) => fault::of_connect(&error, password),
            None => Cause::with_detail(CauseKind::Unreachable, "no connection in time"),
        };
        let Some(pause) = failed(&link, generation, &cause) else { return };
        drop(link);
        timing::pause(&runtime, pause).await;
    }
}

/// Puts a connection to use: sends the deletes that are owed, hands the waiting commands over in their order,
/// then lets new ones at it.
async fn connected<R: Connect>(link: &Arc<Link<R>>, generation: u64, connection: R::Connection) {
    debug!(node = %link.name(), generation, "connected");
    let wire = Arc::new(Wire::new(connection, generation));
    let mut handed_over = 0_u32;
    loop {
        match next(link, &wire) {
            Next::Owed(ticket, delete) => repeat::send(link, ticket, delete),
            Next::Waiting(waiting) => hand_over(link, &wire, waiting),
            Next::InUse => break,
            Next::Unwanted => return wire.cut(Cause::new(CauseKind::Closed)),
        }
        handed_over += 1;
        if handed_over.is_multiple_of(BATCH) {
            breathe().await;
        }
    }
    if let Some(cause) = wire.was_cut() {
        // It broke under the first commands, when it was not yet anybody's to replace.
        link.replace(&wire, Loss::Broken(cause.clone()));
    }
}

enum Next<C: Connection> {
    /// A delete that an earlier connection left undone.
    Owed(Ticket<C>, Command),
    /// A command that waits.
    Waiting(Waiting<C>),
    /// There is none left, and the connection is in use.
    InUse,
    /// The link was closed, or has another connection.
    Unwanted,
}

fn next<R: Connect>(link: &Link<R>, wire: &Arc<Wire<R::Connection>>) -> Next<R::Connection> {
    let now = link.runtime().now();
    let mut state = lock(link.state());
    if state.generation != wire.generation() || matches!(state.phase, Phase::Closed) {
        return Next::Unwanted;
    }
    while let Some(delete) = state.owed.pop(now) {
        // What is turned away here finds the connection broken already.
        if let Ok(ticket) = wire.admit(&delete) {
            return Next::Owed(ticket, delete);
        }
    }
    let waiting = match &mut state.phase {
        Phase::Dialling(queue) => queue.pop(),
        Phase::Down(_) => None,
        Phase::Idle | Phase::Up(_) | Phase::Closed => return Next::Unwanted,
    };
    waiting.map_or_else(
        || {
            state.phase = Phase::Up(Arc::clone(wire));
            Next::InUse
        },
        Next::Waiting,
    )
}

fn hand_over<R: Connect>(link: &Link<R>, wire: &Arc<Wire<R::Connection>>, waiting: Waiting<R::Connection>) {
    let Waiting { command, fate, .. } = waiting;
    if fate.is_canceled() {
        return;
    }
    let at = link.runtime().now();
    let handed = if at >= command.deadline && !is_delete(&command.intent) {
        Err(too_late())
    } else {
        wire.admit(&command).map(|ticket| {
            let mut call: Pin<Box<dyn Future<Output = Answer> + Send>> = Box::pin(ticket.carry_out(command));
            // The first poll gives the command its place in the connection's order. Whoever waits polls
            // from there on, so nobody need be woken before that.
            if let Poll::Ready(answer) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                call = Box::pin(std::future::ready(answer));
            }
            Handed { wire: Arc::clone(wire), at, call }
        })
    };
    // Whoever waited may be gone; then the command is forgotten.
    let _ = fate.send(handed);
}

/// Lets the runtime run something else.
async fn breathe() {
    let mut breathed = false;
    poll_fn(|context| {
        if std::mem::replace(&mut breathed, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Notes that the node is down, and yields how long to wait; `None` if nobody wants it any more.
fn failed<R: Connect>(link: &Link<R>, generation: u64, cause: &Cause) -> Option<Duration> {
    let (before, failures) = {
        let mut state = lock(link.state());
        if state.generation != generation || !matches!(state.phase, Phase::Dialling(_) | Phase::Down(_)) {
            return None;
        }
        state.failures = state.failures.saturating_add(1);
        (std::mem::replace(&mut state.phase, Phase::Down(cause.clone())), state.failures)
    };
    let pause = backoff::pause(failures);
    if let Phase::Dialling(queue) = before {
        warn!(node = %link.name(), generation, %cause, "node is down");
        queue.fail(&Fault::NotExecuted(cause.clone()));
    } else {
        debug!(node = %link.name(), generation, %cause, failures, ?pause, "node is still down");
    }
    Some(pause)
}

/// Takes the link back to "never dialled" when the task ends without having got anywhere: its runtime
/// stopped, or what connects panicked. A later command then dials anew.
struct Unfinished<R: Connect> {
    link: Weak<Link<R>>,
    generation: u64,
}

impl<R: Connect> Drop for Unfinished<R> {
    fn drop(&mut self) {
        let Some(link) = self.link.upgrade() else { return };
        let phase = {
            let mut state = lock(link.state());
            if state.generation != self.generation
                || !matches!(state.phase, Phase::Dialling(_) | Phase::Down(_))
            {
                return;
            }
            std::mem::replace(&mut state.phase, Phase::Idle)
        };
        // With the queue go the other ends of what its commands wait for.
        drop(phase);
    }
}

/// How long one dial may take, handshake included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How many commands are handed over in one go. Tokio lets a task do only so much (128 steps) before
/// its channels turn it away, and a command that is turned away would lose its place.
const BATCH: u32 = 32;
