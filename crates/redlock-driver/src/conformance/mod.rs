//! Checks that a runtime does what a lease needs of it.
//!
//! Whoever brings a [`Runtime`] of their own can have it checked by one line in a test. The adapters of
//! this workspace are checked with the same line.
//!
//! ```no_run
//! # #[derive(Clone, Default)] struct MyRuntime;
//! # impl redlock_driver::Runtime for MyRuntime {
//! #     fn now(&self) -> redlock_driver::Instant { redlock_driver::Instant::EPOCH }
//! #     fn sleep_until(&self, _: redlock_driver::Instant) -> impl Future<Output = ()> + Send + 'static { async {} }
//! #     fn spawn(&self, _: impl Future<Output = ()> + Send + 'static) -> Result<(), redlock_driver::NotRunning> { Ok(()) }
//! # }
//! # fn my_block_on<T>(_: impl Future<Output = T>) -> T { unreachable!() }
//! use redlock_driver::conformance;
//!
//! fn conforms() {
//!     my_block_on(conformance::check(MyRuntime::default())).unwrap();
//! }
//! ```
//!
//! [`check`] runs some forty checks, one after the other, in about two seconds, or in next to no time on
//! a clock that goes forward by itself, as tokio's paused one does. The first that fails ends the run
//! with a [`Violation`]: it names the check, says what was seen, and what the runtime must do instead.
//! [`checks`] lists them, so that each can be run alone.
//!
//! - `clock::*`, `sleep::*` and `task::*` are about the methods of [`Runtime`], one promise each.
//! - `lease::*` drive leases on nodes in memory ([`MemoryServer`](crate::MemoryServer)), with this
//!   runtime underneath: how the methods go together.
//! - `connect::*` are about dialling and calling a Redis server: see [`check_connect`].
//! - `transport::*` are about a [`Transport`] that takes the place of both: see [`check_transport`].
//!
//! # What it takes
//!
//! The future must be polled by the runtime that is checked, such as by its `block_on`. No check panics.
//! A runtime that panics while it is called is in violation, and so is one on which a check gets nowhere
//! for ten seconds of real time. Only when it blocks the thread for good can nothing be told.
//!
//! # How exact time must be
//!
//! No sleep may end more than [`EARLY`] before its deadline. Nothing may be later than [`LATE`]; but a
//! machine that has too much to do is late and no fault of the runtime, so a check that fails only for
//! that is repeated, and counts when it fails three times in a row. [`Report::repeated`] names those.

mod connect;
mod key;
mod lease;
mod outcome;
mod report;
mod run;
mod runtime;
#[cfg(test)]
mod tests;
mod time;
mod transport;
mod watchdog;

pub use report::{Report, Violation};
pub use run::Check;
pub use time::{EARLY, LATE};

use crate::{Connect, Runtime, Transport};

/// Runs every one of [`checks`], in their order.
///
/// # Errors
/// The first [`Violation`]. Later checks build on earlier ones, so nothing could be learnt from them.
///
/// # Cancel safety
/// May be dropped at any point; tasks that a check has spawned then end by themselves.
pub async fn check<R: Runtime>(runtime: R) -> Result<Report, Violation> {
    run::run_all(checks(), run::LIMIT, runtime).await
}

/// Runs every one of [`connect_checks`], in their order, against the Redis server at `url`.
///
/// It takes about a second of real time, and so none of a paused clock. The server must be one that a test
/// may use, of version 6 or later, with a user that may call `CLIENT`. All keys begin with
/// `{redlock:conformance}:`, and none is left behind for longer than a minute.
///
/// # Errors
/// The first [`Violation`]: also when there is no server at `url`.
///
/// # Cancel safety
/// As for [`check`].
pub async fn check_connect<R: Connect>(runtime: R, url: &str) -> Result<Report, Violation> {
    run::run_all(connect_checks(url), run::LIMIT, runtime).await
}

/// Runs every one of [`transport_checks`], in their order, at whatever node `transport` sends to.
///
/// That node must be one that a test may use. All keys begin with `{redlock:conformance}:`, and none is
/// left behind for longer than a minute, except for one fencing counter.
///
/// The order of commands is not checked: a lease is safe without it.
///
/// # Errors
/// The first [`Violation`].
///
/// # Cancel safety
/// As for [`check`].
pub async fn check_transport<R: Runtime, T: Transport>(
    runtime: R,
    transport: T,
) -> Result<Report, Violation> {
    run::run_all(transport_checks(transport), run::LIMIT, runtime).await
}

/// What [`check`] checks, in its order.
#[must_use]
pub fn checks<R: Runtime>() -> Vec<Check<R>> {
    let mut checks = runtime::checks();
    checks.extend(lease::checks());
    checks
}

/// What [`check_connect`] checks, in its order.
#[must_use]
pub fn connect_checks<R: Connect>(url: &str) -> Vec<Check<R>> {
    connect::checks(url)
}

/// What [`check_transport`] checks, in its order.
#[must_use]
pub fn transport_checks<R: Runtime, T: Transport>(transport: T) -> Vec<Check<R>> {
    transport::checks(transport)
}
