//! The task that makes a connection: it dials until one is there, and hands the waiting commands over.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::{Either, select};
use redlock_core::{Cause, CauseKind, Fault, Intent};
use tracing::{debug, warn};

use super::link::{Link, Phase};
use super::queue::{Handed, Waiting, too_late};
use super::wire::{Answer, Wire};
use super::{Connect, backoff, fault, lock, timing};

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
            Some(Ok(connection)) => return connected(&link, generation, connection),
            Some(Err(error)) => fault::of_connect(&error, password),
            None => Cause::with_detail(CauseKind::Unreachable, "no connection in time"),
        };
        let Some(pause) = failed(&link, generation, &cause) else { return };
        drop(link);
        timing::pause(&runtime, pause).await;
    }
}

/// Hands the waiting commands over in their order, then lets new ones at the connection.
fn connected<R: Connect>(link: &Link<R>, generation: u64, connection: R::Connection) {
    debug!(node = %link.name(), generation, "connected");
    let wire = Arc::new(Wire::new(connection, generation));
    loop {
        let waiting = {
            let mut state = lock(link.state());
            let current = state.generation == generation;
            match &mut state.phase {
                Phase::Dialling(queue) if current => match queue.pop() {
                    Some(waiting) => waiting,
                    None => {
                        state.phase = Phase::Up(wire);
                        return;
                    }
                },
                Phase::Down(_) if current => {
                    state.phase = Phase::Up(wire);
                    return;
                }
                _ => return,
            }
        };
        hand_over(link, &wire, waiting);
    }
}

fn hand_over<R: Connect>(link: &Link<R>, wire: &Arc<Wire<R::Connection>>, waiting: Waiting<R::Connection>) {
    let Waiting { command, fate, .. } = waiting;
    if fate.is_canceled() {
        return;
    }
    let at = link.runtime().now();
    let handed = if at >= command.deadline && !matches!(command.intent, Intent::CompareAndDelete { .. }) {
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
