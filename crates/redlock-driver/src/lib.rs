//! The runtime-independent half of redlock: what drives a lease, and the handles that users hold.
//!
//! You want this crate directly only to bring a runtime of your own; otherwise use `redlock-tokio` or a
//! sibling, which are this crate plus a [`Runtime`].
//!
//! ```text
//!  Manager ── Lock ── Lease            what the user holds
//!     │                 │ requests
//!     │              Cell ── Timekeeper   one machine, fed by the handle, by nodes that answer, and by
//!     │                 │                 the one task that keeps the time for all leases
//!     │                 │ commands, answers
//!   Node ───────────────┘              a URL, a client, sentinels, a connection, a server in memory
//! ```
//!
//! The decisions are all [`redlock_core`]'s; this crate carries them out. It has no runtime, no macro and
//! no `cfg` for one: what a runtime must bring is [`Runtime`] (a clock, a timer, a way to run a task) and
//! [`Connect`] (how to dial Redis).
//!
//! # Features
//!
//! - `aio`: nodes behind connections of the `redis` crate's `aio` module, which compiles only together with
//!   one of its runtime features.
//! - `smol-io`: timers and dialling for async-std, smol and their like.
//! - `rustls`: checks, before anything is dialled over TLS, that rustls has a crypto provider.
//! - `conformance`: checks that a runtime does what a lease needs.

#![forbid(unsafe_code)]

#[cfg(feature = "aio")]
mod aio;
mod cell;
mod clock;
mod common;
#[cfg(feature = "conformance")]
pub mod conformance;
mod courtesy;
mod errands;
mod guarded_memory;
mod hints;
mod lease;
mod leases;
mod lock;
mod lost;
mod manager;
mod memory;
mod method_tables;
mod node;
mod recipient;
mod redis;
mod run_error;
mod runtime;
mod sentinel;
#[cfg(feature = "smol-io")]
pub mod smol_io;
mod stats;
mod timekeeper;
pub mod topology;
mod trace;
mod transport;
mod turns;
mod unanswered;

#[cfg(feature = "aio")]
pub use aio::dial_settings;
pub use clock::SuspendAwareClock;
pub use lease::Lease;
pub use lock::Lock;
pub use lost::Lost;
pub use manager::Manager;
pub use redis::{Connect, Connection, MAX_UNANSWERED, Pushes};
pub use redlock_core::{Command, CommandId, Intent, Reply, ServerError};
pub use runtime::{NotRunning, Runtime, contained};
pub use shared_api::*;
pub use transport::Transport;

/// What does not depend on the runtime, for adapters to re-export whole.
pub mod shared_api {
    pub use redlock_core::{
        AlreadyHeld, Cause, CauseKind, Config, ConfigBuilder, ConfigError, Error, Fault, FencingToken,
        FencingUnsupported, Instant, LockLost, LossReason, MemoryNode, NodeId, NodeReport, NotAcquired,
        NotAcquiredReason, NotHeld, Obstacle, Operation, Outcome, Pttl, QuorumError, Renewal, Token,
        TokenHex, Ttl,
    };

    pub use crate::memory::MemoryServer;
    pub use crate::node::{IntoNode, Node};
    #[cfg(feature = "aio")]
    pub use crate::redis::AioConnection;
    pub use crate::run_error::RunError;
    pub use crate::sentinel::{Address, SentinelNode};
    pub use crate::stats::Stats;
    pub use crate::topology;
}
