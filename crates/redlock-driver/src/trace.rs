//! What the driver tells `tracing`. Tokens and credentials never go there.

use redlock_core::{Command, Event, Fault, Instant, NotAcquiredReason, ReleaseOutcome, Reply};
use tracing::level_filters::LevelFilter;
use tracing::{debug, info, trace, warn};

use crate::Runtime;
use crate::cell::Cell;
use crate::unanswered::Unanswered;

/// A node has answered, or will not.
pub(crate) fn answer<R: Runtime>(cell: &Cell<R>, asked: &Unanswered, reply: &Result<Reply, Fault>) {
    if !tracing::enabled!(tracing::Level::TRACE) {
        return;
    }
    let Command { id, node, intent, .. } = &asked.command;
    let node = cell.spec().nodes().get(node.index()).map_or("", |name| &**name);
    let outcome = match reply {
        Ok(Reply::Error(error)) => error.code(),
        Ok(_) => "answered",
        Err(Fault::NotExecuted(_)) => "not executed",
        Err(Fault::Unknown(_)) => "unknown",
    };
    let elapsed = cell.runtime().now().saturating_since(asked.sent);
    let (resource, round, command) = (&**cell.spec().resource(), intent.name(), id.get());
    trace!(resource, node, round, command, outcome, ?elapsed);
}

/// Whether anybody may be listening. What exactly they listen to, only an event tells.
pub(crate) fn is_on() -> bool {
    LevelFilter::current() != LevelFilter::OFF
}

/// Something happened to the lease.
pub(crate) fn event<R: Runtime>(cell: &Cell<R>, event: &Event) {
    let resource = &**cell.spec().resource();
    let valid_for = |until: &Instant| until.saturating_since(cell.runtime().now());
    match event {
        Event::Acquired { valid_until, fencing, attempt } => {
            let fencing = fencing.map(redlock_core::FencingToken::get);
            debug!(resource, attempt, fencing, valid_for = ?valid_for(valid_until), "acquired");
        }
        Event::AcquireFailed(cause) if cause.is_taken() || cause.reason == NotAcquiredReason::Cancelled => {
            debug!(resource, %cause, "not acquired");
        }
        Event::AcquireFailed(cause) => info!(resource, %cause, "not acquired"),
        Event::AttemptFailed { attempt, cause, .. } => debug!(resource, attempt, %cause, "attempt failed"),
        Event::Extended { valid_until } => debug!(resource, valid_for = ?valid_for(valid_until), "extended"),
        Event::ExtendFailed(cause) => {
            let cause: redlock_core::Error = cause.clone().into();
            warn!(resource, %cause, "not extended");
        }
        Event::Renewed { valid_until } => debug!(resource, valid_for = ?valid_for(valid_until), "renewed"),
        Event::RenewFailed { failures, cause, .. } => warn!(resource, failures, %cause, "renewal failed"),
        Event::Lost { reason: redlock_core::LossReason::Closed } => debug!(resource, "given up"),
        Event::Lost { reason } => warn!(resource, %reason, "lost"),
        Event::Released(ReleaseOutcome::Released) => debug!(resource, "released"),
        Event::Released(ReleaseOutcome::AlreadyExpired) => warn!(resource, "already expired at release"),
        Event::ReleaseFailed(cause) => warn!(resource, %cause, "not known to be released"),
        _ => {}
    }
}

/// Nothing is left to do for the lease.
pub(crate) fn settled<R: Runtime>(cell: &Cell<R>) {
    let stats = cell.machine(redlock_core::LeaseMachine::stats);
    trace!(resource = &**cell.spec().resource(), ?stats, "settled");
}
