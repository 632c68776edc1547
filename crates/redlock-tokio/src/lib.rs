//! Redis-backed distributed leases on tokio.
//!
//! A distributed lock is a lease: it is held for a bounded time, and whoever holds it must stop when that
//! is over. This crate takes, keeps, watches, extends and releases leases on one logical Redis (with
//! fencing tokens) or on a majority of independent primaries (the Redlock algorithm).
//!
//! ```no_run
//! use std::time::Duration;
//! use redlock_tokio::{Config, Manager};
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
//! three are the driver's types for the [`Tokio`] runtime: their methods are listed on
//! [`redlock_driver::Manager`](struct@redlock_driver::Manager) and its siblings, and are the same on every
//! runtime.
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

pub use redlock_driver::{
    AioConnection, AlreadyHeld, Cause, CauseKind, Config, ConfigBuilder, ConfigError, Error, Fault, FencingToken,
    FencingUnsupported, Instant, IntoNode, LockLost, LossReason, Node, NodeId, NodeReport, NotAcquired,
    NotAcquiredReason, NotHeld, Obstacle, Operation, Outcome, QuorumError, Stats, Token, TokenHex, Ttl,
};
pub use runtime::Tokio;

/// A set of nodes and the settings for leases on them, on tokio. See [`redlock_driver::Manager`].
pub type Manager = redlock_driver::Manager<Tokio>;

/// The reusable description of a lease, on tokio. See [`redlock_driver::Lock`].
pub type Lock = redlock_driver::Lock<Tokio>;

/// A lease that was acquired, on tokio. See [`redlock_driver::Lease`].
pub type Lease = redlock_driver::Lease<Tokio>;

/// Ends when its lease is lost, on tokio. See [`redlock_driver::Lost`].
pub type Lost = redlock_driver::Lost<Tokio>;

/// A node in memory, for tests and demos. See [`redlock_driver::MemoryServer`].
pub type MemoryServer = redlock_driver::MemoryServer;
