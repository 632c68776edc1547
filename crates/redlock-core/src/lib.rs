//! The heart of redlock: Redis-backed distributed leases as a sans-IO state machine.
//!
//! A distributed lock is a lease: it is held for a bounded time, and whoever holds it must stop when the
//! time is over. This crate decides when a lease is held. It has no clock, no socket, no thread, no async
//! and no Redis client; `redlock-tokio` and its siblings bring those. You need this crate directly only
//! to drive a lease from something else, or to test against it.
//!
//! # Two algorithms
//!
//! - **Single**: one logical Redis. `SET NX PX`, or one script that also takes a fencing token.
//! - **Redlock**: an odd number of independent primaries, three or more. A lease is held by a majority,
//!   for `ttl - elapsed - (ceil(ttl * drift) + 2 ms)`.
//!
//! # What is guaranteed
//!
//! From the moment [`Event::Acquired`] comes until [`LeaseMachine::valid_until`], no other client of the
//! same nodes holds the lease, **provided that** every node keeps its keys for their ttl and clocks run
//! equally fast to within the configured drift. The end is judged on the local clock and needs no answer
//! from anybody.
//!
//! # What is not
//!
//! Nothing tells a process that it was paused. Between looking at the lease and acting on it, any amount
//! of time may pass; only a [`FencingToken`] checked by the protected resource closes that gap. A node
//! that restarts without its data within a ttl, or a replica promoted before it had heard of a lock, has
//! forgotten what it granted; [`Quarantine`] is for the first of these.
//!
//! # Reading on
//!
//! [`LeaseMachine`] is the machine and says how to drive it, [`Config`] its settings, [`interpret`] the
//! reader of replies, [`MemoryNode`] a model of a server for tests.
//!
//! ```text
//!  acquire  extend  release        handle_reply  handle_timeout  handle_hint
//!        \    |    /                      |           |              |
//!         requests                      inputs      inputs         inputs
//!              \_________  LeaseMachine  _/___________/______________/
//!                               |
//!                          poll_output
//!                 Send(Command) | Event | Wait(until)
//! ```

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod config;
mod drift;
mod error;
mod fault;
mod id;
mod intent;
mod lease;
mod memory;
mod quarantine;
mod quorum;
mod reply;
pub mod script;
mod spec;
mod time;
mod token;
mod ttl;

pub use config::{Config, ConfigBuilder, ConfigError, Renewal};
pub use drift::DriftFactor;
pub use error::{
    AlreadyHeld, Error, ExtendError, FencingUnsupported, LockLost, LossReason, NodeReport, NotAcquired,
    NotAcquiredReason, NotHeld, Obstacle, Operation, Outcome, QuorumError, ReleaseOutcome,
};
pub use fault::{Cause, CauseKind, Fault};
pub use id::{CommandId, NodeId};
pub use intent::{Command, Intent};
pub use lease::{Event, LeaseMachine, LeaseState, MachineStats, Output, Patience, TimerKind};
pub use memory::{MemoryNode, Pttl};
pub use quarantine::Quarantine;
pub use quorum::quorum;
pub use reply::{Reply, ServerError, Vote, interpret};
pub use spec::LeaseSpec;
pub use time::Instant;
pub use token::{FencingToken, Token, TokenHex};
pub use ttl::Ttl;
