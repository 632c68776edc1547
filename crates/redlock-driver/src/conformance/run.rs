//! One check: its name, what it demands, and how it is run.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::time::Duration;

use futures_util::FutureExt as _;

use super::outcome::{Failure, Outcome};
use super::{Report, Violation, watchdog};
use crate::Runtime;

/// One thing that a runtime must do.
pub struct Check<R> {
    name: &'static str,
    demand: &'static str,
    run: Box<dyn Fn(R) -> Try + Send + Sync>,
}

type Try = Pin<Box<dyn Future<Output = Outcome> + Send>>;

impl<R: Runtime> Check<R> {
    pub(super) fn new<F>(
        name: &'static str,
        demand: &'static str,
        run: impl Fn(R) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        Self { name, demand, run: Box::new(move |runtime| Box::pin(run(runtime))) }
    }

    /// The name, which no other check has. The same for all runtimes.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What the runtime must do, in words.
    #[must_use]
    pub const fn demand(&self) -> &'static str {
        self.demand
    }

    /// Runs this check alone. It may rely on what those before it in the list have found.
    ///
    /// # Errors
    /// A [`Violation`] that bears the check's name.
    ///
    /// # Cancel safety
    /// As for [`check`](super::check).
    pub async fn run(&self, runtime: R) -> Result<(), Violation> {
        self.run_within(LIMIT, runtime).await.map(|_| ())
    }

    /// Yields whether the check was repeated.
    pub(super) async fn run_within(&self, limit: Duration, runtime: R) -> Result<bool, Violation> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.try_once(limit, runtime.clone()).await {
                Ok(()) => return Ok(tries > 1),
                Err(failure) if failure.certain || tries == TRIES => {
                    return Err(Violation { check: self.name, seen: failure.seen, demand: self.demand });
                }
                Err(_) => {}
            }
        }
    }

    async fn try_once(&self, limit: Duration, runtime: R) -> Outcome {
        // Nothing that a check shares outlives it, so that nobody sees what a panic left behind.
        let outcome = AssertUnwindSafe(async { (self.run)(runtime).await }).catch_unwind();
        match watchdog::within(limit, outcome).await {
            Some(Ok(outcome)) => outcome,
            Some(Err(payload)) => Err(Failure::certain(format_args!("panicked: {}", text_of(&*payload)))),
            None => Err(Failure::certain(format_args!("nothing more happened, and {limit:?} were over"))),
        }
    }
}

/// Runs these checks, each of which may take so much real time, up to the first that fails.
pub(super) async fn run_all<R: Runtime>(
    checks: Vec<Check<R>>,
    limit: Duration,
    runtime: R,
) -> Result<Report, Violation> {
    let mut report = Report::default();
    for check in checks {
        let repeated = check.run_within(limit, runtime.clone()).await?;
        report.enter(check.name, repeated);
    }
    Ok(report)
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("with no text")
}

impl<R> fmt::Debug for Check<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("name", &self.name)
            .field("demand", &self.demand)
            .finish_non_exhaustive()
    }
}

/// How much real time one try of a check may take. None needs a tenth of it.
pub(super) const LIMIT: Duration = Duration::from_secs(10);

/// How often a check is tried that fails in a way that a busy machine may have caused.
const TRIES: u32 = 3;
