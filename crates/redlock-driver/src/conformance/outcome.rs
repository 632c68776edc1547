//! How one try of a check went.

use std::fmt::{Arguments, Display};

/// The end of one try.
pub(super) type Outcome<T = ()> = Result<T, Failure>;

/// What was seen and should not have been.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) seen: String,
    /// Whether seeing it once is enough. What a machine under load may do to any runtime is not.
    pub(super) certain: bool,
}

impl Failure {
    pub(super) fn certain(seen: impl Display) -> Self {
        Self { seen: seen.to_string(), certain: true }
    }

    pub(super) fn likely(seen: impl Display) -> Self {
        Self { seen: seen.to_string(), certain: false }
    }
}

/// Fails for good unless it `holds`.
pub(super) fn must(holds: bool, otherwise: Arguments<'_>) -> Outcome {
    if holds { Ok(()) } else { Err(Failure::certain(otherwise)) }
}

/// Fails unless it `holds`; the machine may be at fault.
pub(super) fn should(holds: bool, otherwise: Arguments<'_>) -> Outcome {
    if holds { Ok(()) } else { Err(Failure::likely(otherwise)) }
}

/// Says in which of a check's steps an error came.
pub(super) trait During<T> {
    /// Fails, for the time being, with what was going on and the error.
    fn during(self, step: &str) -> Outcome<T>;
}

impl<T, E: Display> During<T> for Result<T, E> {
    fn during(self, step: &str) -> Outcome<T> {
        self.map_err(|error| Failure::likely(format_args!("{step}: {error}")))
    }
}
