//! What the fuzz targets do with their input, as ordinary functions: a fuzzer calls them millions of times,
//! and the tests here call them once with each file of the corpus.
//!
//! Each panics when something does not hold that must hold for every input. None needs a sanitizer: there is
//! no unsafe code to watch, and what is checked is meaning.
//!
//! See `docs/fuzzing.md`.

#![forbid(unsafe_code)]

mod bytes;
mod lease_events;
mod reply_bytes;
mod sim_scenario;

#[cfg(test)]
mod corpus;

pub use lease_events::lease_events;
pub use reply_bytes::reply_bytes;
pub use sim_scenario::sim_scenario;
