//! The task that makes a connection: it dials until one is there, and hands the waiting commands over.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::select;
use redlock_core::{Cause, CauseKind, Command, Fault, Instant};
use tracing::{debug, warn};

use super::link::Link;
use super::quarantine;
use super::queue::{Handed, Waiting, too_late};
use super::sentinel::Place;
use super::state::{Loss, Phase, is_delete};
use super::target::Target;
use super::wire::{Ticket, Wire};
use super::{Connect, Connection, backoff, fault, lock, repeat, timing, watch};

/// Starts to dial for `link`, whose state is one of dialling already, after `pause`. If no runtime is
/// running the link ends up as if it had never dialled, and commands that wait learn that.
pub(super) fn start<R: Connect>(link: &Arc<Link<R>>, generation: u64, pause: Option<Duration>) {
    // Made before the task runs: a runtime that stops may drop it unpolled.
    let unfinished = Unfinished { link: Arc::downgrade(link), generation };
    let runtime = link.runtime().clone();
    let target = link.target().clone();
    let closed = link.closed().signal();
    let task = async move {
        let dial = dial(&unfinished.link, runtime, target, generation, pause);
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
    target: Target,
    generation: u64,
    pause: Option<Duration>,
) {
    if let Some(pause) = pause {
        timing::pause(&runtime, pause).await;
    }
    loop {
        let deadline = runtime.now().saturating_add(CONNECT_TIMEOUT);
        let dialled = timing::by(&runtime, deadline, connect(link, &runtime, &target, generation, deadline));
        let dialled = dialled.await;
        let Some(upgraded) = link.upgrade() else { return };
        let cause = match dialled {
            Some(Ok((connection, place))) => {
                connected(&upgraded, generation, connection.clone());
                watch::start(&upgraded, generation, place);
                drop(upgraded);
                return quarantine::look_again(link, runtime, generation, connection).await;
            }
            Some(Err(cause)) => cause,
            None => no_connection(),
        };
        let Some(pause) = failed(&upgraded, generation, &cause) else { return };
        drop(upgraded);
        timing::pause(&runtime, pause).await;
    }
}

/// Starts to dial once, after `pause`, for a link whose connection of this generation stays in use
/// meanwhile. That one is superseded if this succeeds.
pub(super) fn again<R: Connect>(link: &Arc<Link<R>>, generation: u64, pause: Option<Duration>) {
    let again = Again { link: Arc::downgrade(link) };
    let runtime = link.runtime().clone();
    let target = link.target().clone();
    let closed = link.closed().signal();
    let task = async move {
        let follow = async {
            let link = Weak::clone(&again.link);
            let dialled = dial_again(&link, &runtime, &target, generation, pause).await;
            drop(again);
            if let Some((generation, connection)) = dialled {
                quarantine::look_again(&link, runtime, generation, connection).await;
            }
        };
        let _ = select(pin!(follow), pin!(closed)).await;
    };
    if let Err(error) = link.runtime().spawn(task) {
        debug!(node = %link.name(), %error, "not dialling again");
    }
}

async fn dial_again<R: Connect>(
    link: &Weak<Link<R>>,
    runtime: &R,
    target: &Target,
    generation: u64,
    pause: Option<Duration>,
) -> Option<(u64, R::Connection)> {
    if let Some(pause) = pause {
        timing::pause(runtime, pause).await;
    }
    let deadline = runtime.now().saturating_add(CONNECT_TIMEOUT);
    let dialled = timing::by(runtime, deadline, connect(link, runtime, target, generation, deadline)).await;
    let link = link.upgrade()?;
    match dialled.unwrap_or_else(|| Err(no_connection())) {
        Ok((connection, place)) => {
            let generation = link.supersede(generation, connection.clone())?;
            watch::start(&link, generation, place);
            Some((generation, connection))
        }
        Err(cause) => {
            debug!(node = %link.name(), generation, %cause, "nothing to change to");
            None
        }
    }
}

/// Makes one connection to what `target` says, and has the restart guard look at the server there, if the
/// link has one.
async fn connect<R: Connect>(
    link: &Weak<Link<R>>,
    runtime: &R,
    target: &Target,
    generation: u64,
    deadline: Instant,
) -> Result<(R::Connection, Option<Place>), Cause> {
    let (connection, place) = target.connect(runtime, deadline).await?;
    let guard = link.upgrade().and_then(|link| link.guard().cloned());
    if let Some(guard) = guard {
        let looked = guard.look(runtime, generation, &connection).await;
        looked.map_err(|error| fault::of_connect(&error, None))?;
    }
    Ok((connection, place))
}

/// Puts a connection to use: sends the deletes that are owed, hands the waiting commands over in their order,
/// then lets new ones at it.
fn connected<R: Connect>(link: &Arc<Link<R>>, generation: u64, connection: R::Connection) {
    debug!(node = %link.name(), generation, "connected");
    let habit = Arc::clone(&lock(link.state()).habit);
    let wire = Arc::new(Wire::new(connection, generation, habit, link.keeper()));
    link.put_to_use(&wire);
    loop {
        match next(link, &wire) {
            Next::Owed(ticket, delete) => repeat::send(link, ticket, &delete),
            Next::Waiting(waiting) => hand_over(link, &wire, waiting),
            Next::InUse => break,
            Next::Unwanted => return wire.cut(Cause::new(CauseKind::Closed)),
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
        link.check(at, &command).and_then(|()| wire.admit(&command)).map(|ticket| {
            ticket.start();
            Handed { at, ticket }
        })
    };
    // Whoever waited may be gone; then the command is forgotten.
    let _ = fate.send(handed);
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

/// Allows the next such dial when the task of this one ends, in whatever way.
struct Again<R: Connect> {
    link: Weak<Link<R>>,
}

impl<R: Connect> Drop for Again<R> {
    fn drop(&mut self) {
        if let Some(link) = self.link.upgrade() {
            link.demotion().ended();
        }
    }
}

pub(super) fn no_connection() -> Cause {
    Cause::with_detail(CauseKind::Unreachable, "no connection in time")
}

/// How long one dial may take, handshake and questions to sentinels included.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
