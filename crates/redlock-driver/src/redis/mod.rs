//! Everything that names a type of the `redis` crate: how a command is written, what a value or an
//! error means, and what keeps connections to a node alive.
//!
//! ```text
//!   Command ──lower──▶ Cmd ──▶ Connection ──▶ Value ──reply──▶ Reply
//!                                   │
//!                                   └──────▶ RedisError ──fault──▶ Fault
//!
//!   Link    one node, dialled and redialled by us        ┐ each Wire is one connection and what is
//!   Shared  one node behind a connection handed to us    ┘ unanswered on it
//!   Listener  beside a link: hears from the server that a key has changed
//!   Target  what a link dials: a server, or the primary that sentinels name
//! ```

mod address;
mod backlog;
mod backoff;
mod connection;
mod cut;
mod demotion;
mod dial;
mod dialect;
mod fault;
mod hand_over;
mod line;
mod link;
mod listener;
mod lower;
mod phrasing;
mod pump;
mod pushes;
mod quarantine;
mod queue;
mod repeat;
mod reply;
mod sentinel;
mod shared;
mod slot;
mod state;
mod target;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod timing;
mod watch;
mod wire;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use address::{node_name, parse_url, usable};
#[cfg(feature = "aio")]
pub use connection::AioConnection;
pub use connection::{Connect, Connection, MAX_UNANSWERED};
pub(crate) use link::Link;
pub(crate) use phrasing::Words;
pub use pushes::Pushes;
pub(crate) use repeat::doubt;
pub(crate) use sentinel::Sentinels;
pub(crate) use shared::Shared;
pub(crate) use slot::hash_slot;
pub(crate) use target::Target;

/// Locks, also after a panic elsewhere: none of the guarded values is ever left half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
