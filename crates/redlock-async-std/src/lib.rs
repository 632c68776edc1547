//! Redis-backed distributed leases on async-std.
//!
//! **async-std is discontinued** (RUSTSEC-2025-0052), and the `redis` crate has had no support for it since
//! 1.0. This crate is for programs that still run on it: it opens the sockets itself, on the reactor that
//! async-std shares with smol. No tokio runtime is needed or started. `redlock-smol` has the same API and is
//! where to move on to.
//!
//! A distributed lock is a lease: it is held for a bounded time, and whoever holds it must stop when that
//! is over. This crate takes, keeps, watches, extends and releases leases on one logical Redis (with
//! fencing tokens) or on a majority of independent primaries (the Redlock algorithm).
//!
//! ```no_run
//! use std::time::Duration;
//! use redlock_async_std::{Config, Manager};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let manager = Manager::redlock(
//!     ["redis://127.0.0.1:6381", "redis://127.0.0.1:6382", "redis://127.0.0.1:6383"],
//!     Config::builder().ttl(Duration::from_secs(10)).build()?,
//! )?;
//! let lock = manager.lock("orders:42").auto_renew(Duration::from_secs(3));
//!
//! let lease = lock.acquire().await?;
//! lease.run(async { /* work that is dropped if the lease is lost */ }).await?;
//! lease.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where to look
//!
//! [`Manager`] makes [`Lock`]s, a lock is asked for a [`Lease`], and [`Config`] has the settings. The
//! first three are the driver's types for the [`AsyncStd`] runtime, the same on
//! every runtime; their pages here list their methods.
//!
//! # What is guaranteed, and what is not
//!
//! A lease that is reported as held was granted by a quorum, and its validity, which counts from before
//! the first command was sent, is not over. Until then no other client of the same nodes holds it,
//! provided that nodes keep their data and clocks run equally fast to within the drift factor. A paused
//! process cannot know that it was paused: where two holders would do harm, let the protected resource
//! check [`Lease::fencing_token`](redlock_driver::Lease::fencing_token).

#![forbid(unsafe_code)]

mod runtime;

#[doc(inline)]
pub use redlock_driver::shared_api::*;
pub use runtime::AsyncStd;

/// A set of nodes and the settings for leases on them, on async-std. This is
/// [`redlock_driver::Manager`], with these methods:
#[doc = redlock_driver::manager_methods!()]
pub type Manager = redlock_driver::Manager<AsyncStd>;

/// The reusable description of a lease, on async-std. This is
/// [`redlock_driver::Lock`], with these methods:
#[doc = redlock_driver::lock_methods!()]
pub type Lock = redlock_driver::Lock<AsyncStd>;

/// A lease that was acquired, on async-std. This is
/// [`redlock_driver::Lease`], with these methods:
#[doc = redlock_driver::lease_methods!()]
pub type Lease = redlock_driver::Lease<AsyncStd>;

/// Ends when its lease is lost, on async-std. See [`redlock_driver::Lost`].
pub type Lost = redlock_driver::Lost<AsyncStd>;

/// Compiles the program in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
