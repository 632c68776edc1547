//! Since when the server has been running.

use core::time::Duration;

use super::clock::{Reading, between};

/// One run of the server, from a start to a stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Run {
    restarts: u64,
    since: Since,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Since {
    /// Nobody knows when it was started.
    #[default]
    Ever,
    /// It was restarted, and has done nothing since.
    Now,
    Reading(Reading),
}

impl Run {
    /// The next run, which begins when somebody next tells the time.
    pub(super) const fn end(&mut self) {
        self.restarts += 1;
        self.since = Since::Now;
    }

    pub(super) fn begin(&mut self, now: Reading) {
        if self.since == Since::Now {
            self.since = Since::Reading(now);
        }
    }

    pub(super) const fn restarts(&self) -> u64 {
        self.restarts
    }

    pub(super) fn uptime(&self, now: Reading) -> Duration {
        match self.since {
            Since::Ever => Duration::MAX,
            Since::Now => Duration::ZERO,
            Since::Reading(since) => between(since, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_begins_when_the_time_is_told() {
        let mut run = Run::default();
        run.begin(5);
        assert_eq!((run.restarts(), run.uptime(7)), (0, Duration::MAX));
        run.end();
        assert_eq!((run.restarts(), run.uptime(100)), (1, Duration::ZERO));
        run.begin(100);
        run.begin(200);
        assert_eq!(run.uptime(350), Duration::from_nanos(250));
    }
}
