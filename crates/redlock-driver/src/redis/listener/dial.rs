//! The task behind a listener's connection: it makes it, and closes it when nobody needs it.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::select;
use redis::{RedisError, Value, cmd};
use redlock_core::{Cause, CauseKind, Instant};
use tracing::debug;

use super::super::target::Target;
use super::super::{Connect, Connection as _, Pushes, dial, fault, lock, timing};
use super::Listener;
use super::state::Phase;

/// Starts to dial for a listener whose phase is that of dialling already.
pub(super) fn start<R: Connect>(listener: &Arc<Listener<R>>, generation: u64) {
    // Made before the task runs: a runtime that stops may drop it unpolled.
    let unfinished = Unfinished { listener: Arc::downgrade(listener), generation };
    let over = match &lock(&listener.state).phase {
        Phase::Dialling { over } => over.signal(),
        // Closed in this moment.
        _ => return,
    };
    let (runtime, target) = (listener.runtime.clone(), listener.target.clone());
    let task = async move {
        let live = live(&unfinished.listener, runtime, target, generation);
        let _ = select(pin!(live), pin!(over)).await;
    };
    if let Err(error) = listener.runtime.spawn(task) {
        debug!(node = %listener.name, %error, "not listening");
    }
}

async fn live<R: Connect>(weak: &Weak<Listener<R>>, runtime: R, target: Target, generation: u64) {
    let deadline = runtime.now().saturating_add(dial::CONNECT_TIMEOUT);
    let ear = Weak::clone(weak);
    let pushes = Pushes::new(move |message| {
        if let Some(listener) = ear.upgrade() {
            listener.heard(generation, &message);
        }
    });
    let connected = timing::by(&runtime, deadline, connect(&runtime, &target, deadline, &pushes)).await;
    {
        let Some(listener) = weak.upgrade() else { return };
        match connected.unwrap_or_else(|| Err(dial::no_connection())) {
            Ok(connection) => {
                let now = runtime.now();
                if listener.change(|state| state.connected(generation, now, connection)).is_none() {
                    return;
                }
                debug!(node = %listener.name, generation, "listening");
            }
            Err(cause) => return listener.lost(generation, &cause),
        }
    }
    while let Some(listener) = weak.upgrade() {
        let Some(until) = listener.needed_until(generation) else { return };
        drop(listener);
        timing::reach(&runtime, until).await;
    }
}

/// A connection on which the server tells of changes to what was read.
async fn connect<R: Connect>(
    runtime: &R,
    target: &Target,
    deadline: Instant,
    pushes: &Pushes,
) -> Result<R::Connection, Cause> {
    let connection = target.connect_listening(runtime, deadline, pushes).await?;
    let answer = connection.call(cmd("CLIENT").arg("TRACKING").arg("ON").to_owned()).await;
    match answer.and_then(Value::extract_error) {
        Ok(Value::Okay) => Ok(connection),
        Ok(_) => Err(Cause::new(CauseKind::UnexpectedReply)),
        Err(error) => Err(fault::of_connect(&error as &RedisError, None)),
    }
}

impl<R: Connect> Listener<R> {
    /// Until when the connection of this generation is kept at least; it is closed, if nobody has used it for
    /// long enough.
    fn needed_until(&self, generation: u64) -> Option<Instant> {
        let now = self.runtime.now();
        let mut until = None;
        self.change(|state| {
            if state.generation != generation || !matches!(state.phase, Phase::Up { .. }) {
                return None;
            }
            let end = if state.is_watched() { now } else { state.used }.saturating_add(IDLE);
            until = (now < end).then_some(end);
            until.is_none().then_some(Phase::Idle)
        });
        until
    }
}

/// Takes the end of a task that got nowhere for a failure: its runtime stopped, or what connects panicked.
struct Unfinished<R: Connect> {
    listener: Weak<Listener<R>>,
    generation: u64,
}

impl<R: Connect> Drop for Unfinished<R> {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.upgrade() {
            listener.lost(self.generation, &Cause::with_detail(CauseKind::Unreachable, "nothing dials"));
        }
    }
}

/// How long a connection is kept that nobody needs.
pub(super) const IDLE: Duration = Duration::from_secs(60);
