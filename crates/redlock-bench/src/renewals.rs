//! Renewals, as they show from outside: in how long a lease is valid, and how long its key will stay.

use std::time::Duration;

/// One look at one lease, in times since the same origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// When the client began to ask for what the lease now has.
    pub(crate) asked_for: Duration,
    /// When the server set the time that the key now has.
    pub(crate) arrived: Duration,
}

/// What was seen of many leases. Looks must be closer to each other than renewals are.
#[derive(Debug)]
pub(crate) struct Renewals {
    interval: Duration,
    /// For each lease, since its last renewal.
    last: Vec<Option<Seen>>,
    lateness: Vec<Duration>,
}

impl Renewals {
    pub(crate) fn new(leases: usize, interval: Duration) -> Self {
        Self { interval, last: vec![None; leases], lateness: Vec::new() }
    }

    pub(crate) fn look(&mut self, lease: usize, seen: Seen) {
        let Some(last) = self.last.get_mut(lease) else { return };
        let Some(before) = *last else {
            *last = Some(seen);
            return;
        };
        // One look can fall between the arrival and the client's hearing of it. It is seen by the next.
        let is_new = |now: Duration, before: Duration| now > before + self.interval / 2;
        if is_new(seen.asked_for, before.asked_for) && is_new(seen.arrived, before.arrived) {
            // A renewal is due one interval after the client began to ask for the one before.
            self.lateness.push(seen.arrived.saturating_sub(before.asked_for + self.interval));
            *last = Some(seen);
        }
    }

    pub(crate) const fn interval(&self) -> Duration {
        self.interval
    }

    /// How much later than due each renewal arrived at the server.
    pub(crate) fn lateness(&self) -> &[Duration] {
        &self.lateness
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(asked_for: u64, arrived: u64) -> Seen {
        Seen { asked_for: Duration::from_millis(asked_for), arrived: Duration::from_millis(arrived) }
    }

    #[test]
    fn a_renewal_is_late_by_when_it_arrives() {
        let mut renewals = Renewals::new(1, Duration::from_secs(10));
        renewals.look(0, seen(1_000, 1_001));
        renewals.look(0, seen(1_000, 1_002));
        renewals.look(0, seen(1_000, 11_700));
        renewals.look(0, seen(11_600, 11_700));
        renewals.look(0, seen(11_600, 11_701));
        renewals.look(0, seen(21_600, 21_601));
        assert_eq!(renewals.lateness(), [Duration::from_millis(700), Duration::from_millis(1)]);
    }
}
