//! The clock that all processes of a machine share.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use crate::Failure;

/// The time since the machine was started: readings of different processes can be compared.
pub(crate) fn now() -> Result<Duration, Failure> {
    Ok(clock_gettime(ClockId::CLOCK_MONOTONIC)?.into())
}

/// A reading in the words of one process to another.
pub(crate) fn parse(nanos: &str) -> Result<Duration, Failure> {
    Ok(Duration::from_nanos(nanos.trim().parse()?))
}
