//! What a step prints.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::Instant;

use super::Failure;

/// One step, with the time since it began.
#[derive(Debug)]
pub(super) struct Stage {
    started: Instant,
}

impl Stage {
    /// Prints the step's title, and what is about to be done.
    pub(super) fn open(title: &str, about: &[&str]) -> Self {
        println!("\n{title}");
        about.iter().for_each(|line| println!("   {line}"));
        Self { started: Instant::now() }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Something happened, now.
    pub(super) fn now(&self, who: &str, what: impl Display) {
        println!("{:>7} ms  {who:<10}{what}", self.elapsed().as_millis());
    }

    /// A line that goes on from the one before.
    pub(super) fn more(&self, what: impl Display) {
        println!("{:22}{what}", "");
    }
}

/// Prints a claim, if it holds.
pub(super) fn check(holds: bool, claim: &str) -> Result<(), Failure> {
    if !holds {
        return Err(format!("this should hold, and does not: {claim}").into());
    }
    println!("   => {claim}");
    Ok(())
}

/// Milliseconds, with what matters of their fraction.
pub(super) fn human(span: Duration) -> String {
    let millis = span.as_secs_f64() * 1_000.0;
    if millis < 10.0 { format!("{millis:.1} ms") } else { format!("{millis:.0} ms") }
}
