//! When the machine wants to be woken next.

use super::{LeaseMachine, Phase};
use crate::{Instant, TimerKind};

impl LeaseMachine {
    /// When to call [`handle_timeout`](Self::handle_timeout) next, and what for.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, TimerKind)> {
        let at = self.next_wake()?;
        // Of several at the same time the one that comes first in `TimerKind`.
        let kind = match &self.phase {
            Phase::Held(holding) if holding.end() == at => holding.end_kind(),
            _ if self.round.live && self.round.deadline == at => TimerKind::OperationTimeout,
            Phase::Acquiring(acquiring) if acquiring.due() == Some(at) => acquiring.due_kind(),
            Phase::Held(holding) if holding.renewal(self.round.live) == Some(at) => TimerKind::Renewal,
            Phase::Idle | Phase::Acquiring(_) | Phase::Held(_) | Phase::Lost(_) | Phase::Releasing => {
                TimerKind::Forget
            }
        };
        Some((at, kind))
    }

    /// The time of [`next_timeout`](Self::next_timeout).
    pub(super) fn next_wake(&self) -> Option<Instant> {
        let mut at = self.undo.next_forget();
        if self.round.live {
            at = sooner(at, self.round.deadline);
        }
        match &self.phase {
            Phase::Acquiring(acquiring) => acquiring.due().map_or(at, |due| sooner(at, due)),
            Phase::Held(holding) => {
                let renewal = holding.renewal(self.round.live);
                sooner(renewal.map_or(at, |renewal| sooner(at, renewal)), holding.end())
            }
            Phase::Idle | Phase::Lost(_) | Phase::Releasing => at,
        }
    }
}

fn sooner(at: Option<Instant>, other: Instant) -> Option<Instant> {
    match at {
        Some(at) if at <= other => Some(at),
        Some(_) | None => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::{CommandId, Config, LeaseSpec, Output, Patience, Reply, Token};

    #[test]
    fn of_timers_at_the_same_time_the_end_of_the_lease_comes_first() {
        let [ttl, timeout] = [100, 98].map(Duration::from_millis);
        let config = Config::builder().ttl(ttl).drift_factor(0.0).operation_timeout(timeout).build().unwrap();
        let spec = LeaseSpec::new("lock", ["node".into()], config).unwrap();
        let mut machine = LeaseMachine::new(spec, Token::from_bytes([7; Token::LEN]), 1);
        let at = Instant::from_epoch(timeout);
        assert_eq!(machine.next_timeout(), None);
        machine.acquire(Instant::EPOCH, Patience::Attempts(1)).unwrap();
        assert_eq!(machine.next_timeout(), Some((at, TimerKind::OperationTimeout)));
        machine.handle_reply(Instant::EPOCH, CommandId::new(0), Ok(Reply::Ok));
        machine.extend(Instant::EPOCH, ttl).unwrap();
        assert_eq!(machine.next_timeout(), Some((at, TimerKind::Expiry)));
        machine.release(Instant::EPOCH).unwrap();
        assert_eq!(machine.next_timeout(), Some((at, TimerKind::OperationTimeout)));
        while !matches!(machine.poll_output(), Output::Wait(_)) {}
        assert_eq!(machine.poll_output(), Output::Wait(Some(at)));
        machine.handle_timeout(at);
        assert_eq!(
            machine.next_timeout(),
            Some((at.saturating_add(ttl + Duration::from_millis(2)), TimerKind::Forget))
        );
    }
}
