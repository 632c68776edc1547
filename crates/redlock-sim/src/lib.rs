//! A deterministic simulator: the real lease machines and the real model nodes of `redlock-core` in a
//! simulated world of drifting clocks, a bad network, failing servers and careless users.
//!
//! One scenario is one life of such a world in virtual time. Everything in it is decided by a seed, or
//! by the bytes that a fuzzer makes up, so it can be run again step by step. First comes the safety
//! phase, in which things go wrong; then the healing phase, in which nothing does any more and
//! everything must come to rest. The [invariants](Violation::invariant) are judged all the way, by
//! observers that share no code with the machine.
//!
//! ```
//! use redlock_sim::{Mode, Scenario, run};
//!
//! let summary = run(Scenario::from_seed(1, Mode::Sound)).unwrap();
//! assert_eq!(summary.scenarios(), 1);
//! ```
//!
//! A [`Mode`] other than [`Mode::Sound`] breaks one assumption that leases rest on. The simulator must
//! then find two holders: a checker that cannot fail proves nothing.

#![forbid(unsafe_code)]

mod batch;
mod choices;
mod clock;
mod invariant;
mod mode;
mod options;
mod scenario;
mod summary;
mod tamper;
mod trace;
mod violation;
mod world;

pub use batch::{Batch, Findings};
pub use mode::Mode;
pub use scenario::{Scenario, run, run_traced};
pub use summary::{Mark, Summary};
pub use trace::Trace;
pub use violation::Violation;
