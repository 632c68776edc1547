//! Standard output, and the runtime that most subcommands need.

use std::future::Future;
use std::io::{self, Write as _};

use tokio::runtime::Builder;

use crate::exit::Failure;

/// Writes to standard output. False when nobody reads it any more.
pub(crate) fn print(text: &str) -> bool {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_ok()
}

/// Runs a future to its end on a runtime with one thread.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::internal("no runtime", error))?;
    let ended = runtime.block_on(future);
    // A name server that does not answer must not hold up the end.
    runtime.shutdown_background();
    ended
}
