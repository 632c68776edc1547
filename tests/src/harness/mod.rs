//! Real `redis-server` processes, and a network in front of them that can be broken on purpose.
//!
//! | what a test needs | what it calls |
//! | --- | --- |
//! | nodes that it leaves in peace | [`shared_primaries`], with key names from [`unique`] |
//! | nodes to freeze, kill, restart, pause or reconfigure | [`own_servers`] |
//! | one node with options | [`may_own_servers`], then [`Server::builder`] |
//! | a primary with a replica and a sentinel | [`Watched`] |
//! | a cluster of three shards | [`Cluster`] |
//! | a network fault | a [`Relay`] in front of a node |
//! | an error or an answer that a real server hardly ever gives | a [`FakeServer`] |
//! | a server that has some compare commands, and not others | a [`Speaker`] |
//! | what the server under test has of them | [`Dialect::of`] |
//! | faults by chance, and the same ones again | [`Random`] |
//! | a server whose clock can be set | [`ServerBuilder::clock`] |
//! | an address where nobody listens | [`unused_address`] |
//! | to wait for something, or to measure | [`wait_until`], [`Stopwatch`] |
//! | to say what a fault came to | [`report()`] |
//!
//! Everything here blocks the calling thread, for a round trip or for as long as a fault lasts, and panics
//! with the reason when it cannot do what it was asked. There is no async runtime underneath, so that the
//! same harness serves the tests of every adapter. An async test may call it directly, with one thing in
//! mind: on a runtime with a single thread, nothing else runs in the meantime.
//!
//! No server outlives the test process, however that ends: see [`Server`].
//!
//! ```no_run
//! use std::time::Duration;
//! use redlock_tests::harness::{Relay, own_servers, unique, wait_until};
//!
//! # fn some_test() {
//! let Some(nodes) = own_servers(3) else { return };
//! let relay = Relay::start(nodes[2].address());
//! let key = unique("late-set");
//!
//! nodes[0].set(&key, "somebody else");
//! nodes[1].freeze();
//! relay.hold_requests(true);
//! // ... acquire over nodes[0].url(), nodes[1].url() and relay.url(): it fails ...
//! nodes[1].thaw();
//! relay.hold_requests(false);
//! wait_until("our keys are gone", Duration::from_secs(1), || nodes[1..].iter().all(|n| n.get(&key).is_none()));
//! # }
//! ```
//!
//! # Environment
//! - `REDLOCK_REDIS_SERVER`: the server program, when it is not the `redis-server` on the `PATH`. It must be
//!   the server itself, or a script that replaces itself by it with `exec`.
//! - `REDLOCK_REDIS_ADDRS`: `host:port,host:port,...` of primaries that are already running. Tests of shared
//!   nodes use them, and tests that would harm their nodes do not run.
//! - `REDLOCK_SKIPPED_FILE`: where the names of the tests that did not run are appended, a line each.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test harness fails by panicking"
)]

mod clock;
mod cluster;
mod dialect;
mod fake;
mod nodes;
mod ports;
mod primary;
mod random;
mod relay;
mod report;
mod sentinel;
mod server;

pub use clock::{Stopwatch, wait_until};
pub use cluster::Cluster;
pub use dialect::{Dialect, Speaker};
pub use fake::{FakeServer, Played};
pub use nodes::{may_own_servers, own_servers, servers, shared_primaries, unique};
pub use ports::unused_address;
pub use primary::{Primary, url_encoded};
pub use random::Random;
pub use relay::{Cut, Relay};
pub use report::report;
pub use sentinel::Watched;
pub use server::{Server, ServerBuilder};
