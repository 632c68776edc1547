//! Tests of redlock against real servers: the [`harness`] that provides and harms
//! them, and the [`suite`](mod@suite) that every adapter runs.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod harness;
pub mod suite;
