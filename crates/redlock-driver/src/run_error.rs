//! What can come of scoped work besides its value.

use redlock_core::{Error, LockLost};
use thiserror::Error as ThisError;

/// Why [`Lock::run`](crate::Lock::run) has no plain result. Becomes an [`Error`] with `?`.
#[derive(Clone, Debug, PartialEq, ThisError)]
#[non_exhaustive]
pub enum RunError<T> {
    /// The work did not run, or not to its end: the lease was not acquired, or lost meanwhile.
    #[error(transparent)]
    Lease(#[from] Error),
    /// The work ran to its end, but when the lease was given back it turned out to have been lost before:
    /// somebody else may have held it in the meantime.
    #[error("found out at the end of the work: {lost}")]
    LostMeanwhile {
        /// How the lease was lost.
        lost: LockLost,
        /// What the work returned, its own error included.
        done: T,
    },
}

impl<T> From<RunError<T>> for Error {
    fn from(error: RunError<T>) -> Self {
        match error {
            RunError::Lease(error) => error,
            RunError::LostMeanwhile { lost, .. } => lost.into(),
        }
    }
}
