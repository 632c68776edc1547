//! The runtime-independent half of redlock: one drive loop, and the handles that users hold.
//!
//! You want this crate directly only to bring a runtime of your own; otherwise use `redlock-tokio` or a
//! sibling, which are this crate plus a [`Runtime`].
//!
//! ```text
//!  Manager ── Lock ── Lease            what the user holds
//!     │                 │ requests
//!     │              Cell              one machine, shared by handle and task
//!     │                 │
//!     │              drive             one task per lease: machine → nodes → machine
//!     │                 │ Transport
//!   Node ───────────────┘              a URL, a client, a connection, a server in memory
//! ```
//!
//! The decisions are all [`redlock_core`]'s; this crate carries them out. It has no runtime, no macro and
//! no `cfg` for one: what a runtime must bring is [`Runtime`] (a clock, a timer, a way to run a task) and
//! [`Connect`] (how to dial Redis).

#![forbid(unsafe_code)]

mod cell;
mod clock;
mod drive;
mod lease;
mod lock;
mod lost;
mod manager;
mod memory;
mod node;
mod redis;
mod runtime;
mod stats;
mod tasks;
mod trace;
mod transport;

pub use clock::SuspendAwareClock;
pub use lease::Lease;
pub use lock::Lock;
pub use lost::Lost;
pub use manager::Manager;
pub use memory::MemoryServer;
pub use node::{IntoNode, Node};
#[cfg(feature = "aio")]
pub use redis::AioConnection;
pub use redis::{Connect, Connection};
pub use redlock_core::{
    AlreadyHeld, Cause, CauseKind, Config, ConfigBuilder, ConfigError, Error, Fault, FencingToken,
    FencingUnsupported, Instant, LockLost, LossReason, MemoryNode, NodeId, NodeReport, NotAcquired, NotAcquiredReason,
    NotHeld, Obstacle, Operation, Outcome, Pttl, QuorumError, Token, TokenHex, Ttl,
};
pub use runtime::{NotRunning, Runtime};
pub use stats::Stats;
pub use transport::Transport;
