//! An exhaustive check of the real `LeaseMachine` on real `MemoryNode`s.
//!
//! Nothing of the algorithm is modelled a second time. A [`World`] holds the machines of two clients, some
//! nodes, and what is under way between them; each [`Action`] lets exactly one thing happen, and
//! `stateright` tries every order of actions that the bounds of a [`Setup`] allow. `docs/model-checking.md`
//! says what that shows, and what it cannot.

#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a model check fails by panicking"
)]

mod action;
mod check;
mod client;
mod line;
mod news;
mod options;
mod property;
mod server;
mod setup;
mod timeline;
mod world;

pub use action::{Action, Request};
pub use check::{counterexample, explore, is_long, verify, worlds_after_ticks};
pub use news::Fact;
pub use property::{BACKED, ONE_HOLDER};
pub use setup::{Clocks, Grain, Order, Plan, Sabotage, Setup, TICK, Timers, Trouble};
pub use world::World;
