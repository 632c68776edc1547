//! The built program against real servers, seen from outside: its exit codes, what its command is told and sent,
//! what stays in Redis.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod support;

mod check;
mod contention;
mod exit_codes;
mod frozen;
mod loss;
mod manual;
mod orphan;
mod passing_on;
mod secrets;
mod signals;
mod startup;
mod status;
#[cfg(target_os = "linux")]
mod terminal;
