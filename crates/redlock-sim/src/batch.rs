//! Many seeds, on all cores.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::{Mode, Scenario, Summary, Violation, run};

/// How many seeds a thread takes at a time.
const PORTION: u64 = 64;

/// A range of seeds to run.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    /// The first seed.
    pub from: u64,
    /// How many.
    pub seeds: u64,
    /// Which assumption is broken, if any.
    pub mode: Mode,
}

/// What came of a batch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Findings {
    /// What happened in all scenarios that ran to their end.
    pub summary: Summary,
    /// The violation with the lowest seed. Seeds beyond it may not have been run.
    pub violation: Option<Violation>,
}

impl Batch {
    /// Runs all seeds up to the first violation. The outcome does not depend on the number of threads.
    #[must_use]
    pub fn run(&self) -> Findings {
        let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let findings = Mutex::new(Findings { summary: Summary::default(), violation: None });
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let begin = next.fetch_add(PORTION, Ordering::Relaxed);
                        if begin >= self.seeds {
                            break;
                        }
                        let portion = self.run_portion(begin, self.seeds.min(begin + PORTION));
                        stop.fetch_or(portion.violation.is_some(), Ordering::Relaxed);
                        findings.lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(portion);
                    }
                });
            }
        });
        findings.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn run_portion(&self, begin: u64, end: u64) -> Findings {
        let mut summary = Summary::default();
        for offset in begin..end {
            match run(Scenario::from_seed(self.from.wrapping_add(offset), self.mode)) {
                Ok(one) => summary.add(&one),
                Err(violation) => return Findings { summary, violation: Some(violation) },
            }
        }
        Findings { summary, violation: None }
    }
}

impl Findings {
    fn add(&mut self, other: Self) {
        self.summary.add(&other.summary);
        let found = self.violation.take().into_iter().chain(other.violation);
        self.violation = found.min_by_key(|violation| violation.seed);
    }
}
