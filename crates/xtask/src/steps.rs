//! Steps that run one after the other, announced and timed.

use std::time::{Duration, Instant};

/// What has been done so far.
#[derive(Debug)]
pub(crate) struct Steps {
    started: Instant,
    done: Vec<(String, Duration)>,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self { started: now(), done: Vec::new() }
    }

    /// Runs a step. Its failure ends the run: the message names the step.
    pub(crate) fn run<T>(
        &mut self,
        name: &str,
        step: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        println!("\n==== {name}");
        let started = now();
        let outcome = step();
        let taken = started.elapsed();
        match outcome {
            Ok(result) => {
                println!("==== {name}: ok, {}", seconds(taken));
                self.done.push((name.to_owned(), taken));
                Ok(result)
            }
            Err(reason) => {
                println!("==== {name}: FAILED, {}", seconds(taken));
                Err(format!("step \"{name}\" failed: {reason}"))
            }
        }
    }

    /// A line for each step, and the sum.
    pub(crate) fn summary(&self) -> String {
        let total = [("total".to_owned(), self.started.elapsed())];
        let lines = self.done.iter().chain(&total);
        lines.map(|(name, taken)| format!("{:>10}  {name}\n", seconds(*taken))).collect()
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[allow(clippy::disallowed_methods, reason = "a task is timed for whoever watches it")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_summed_up_in_order() {
        let mut steps = Steps::new();
        assert_eq!(steps.run("first", || Ok(1)), Ok(1));
        assert_eq!(steps.run("second", || Ok(2)), Ok(2));
        let summary = steps.summary();
        let names: Vec<&str> = summary.lines().filter_map(|line| line.split_whitespace().last()).collect();
        assert_eq!(names, ["first", "second", "total"]);
    }

    #[test]
    fn failure_names_its_step() {
        let mut steps = Steps::new();
        let failed: Result<(), String> = steps.run("first", || Err("no luck".to_owned()));
        assert_eq!(failed, Err("step \"first\" failed: no luck".to_owned()));
        assert!(!steps.summary().contains("first"));
    }

    #[test]
    fn times_are_short() {
        assert_eq!(seconds(Duration::from_millis(61_249)), "61.2 s");
    }
}
