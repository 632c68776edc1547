//! Whose turn it is: within a manager, those who want the same resource ask for it one after the other.

#![expect(
    clippy::disallowed_types,
    reason = "each lease comes here twice, and nothing iterates over the lines"
)]

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{Either, select};
use redlock_core::{Config, Error, Instant, Patience};

use crate::Runtime;
use crate::redis::timing;

/// A line of waiting callers for each resource that somebody in this process has or contends for.
///
/// Whoever has the [`Turn`] asks the nodes; the others wait without asking, first in, first out. That saves
/// the commands and the pauses of those who could not get the lease anyway, and nobody is overtaken. It is a
/// courtesy and no part of the promise: the nodes alone decide who holds a lease.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    lines: Mutex<HashMap<Arc<str>, Line>>,
}

/// How long a caller asks for a lease.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asking {
    /// Once, at once.
    Once,
    /// With as many attempts as are configured.
    Attempts,
    /// Until so much time has passed.
    Within(Duration),
}

impl Asking {
    /// How long to wait for a turn. Who has none by then asks the nodes all the same, so that the answer is
    /// theirs: whoever is before us in line may have lost the lease, or be about to give it back.
    pub(crate) fn longest_wait(self, config: &Config) -> Duration {
        match self {
            Self::Once => Duration::ZERO,
            Self::Attempts => pause(config).saturating_mul(config.attempts().get() - 1),
            Self::Within(patience) => patience.saturating_sub(config.operation_timeout().min(patience / 4)),
        }
    }

    /// What is left to ask for after so long in line. To wait there for as long as the pause between two
    /// attempts takes costs an attempt as well.
    pub(crate) fn patience(self, config: &Config, begun: Instant, waited: Duration) -> Patience {
        match self {
            Self::Once => Patience::Attempts(1),
            Self::Attempts => {
                let spent = waited.as_nanos() / pause(config).as_nanos().max(1);
                let spent = u32::try_from(spent).unwrap_or(u32::MAX);
                Patience::Attempts(config.attempts().get().saturating_sub(spent).max(1))
            }
            Self::Within(patience) => Patience::Until(begun.saturating_add(patience)),
        }
    }
}

/// The pause between two attempts, without its jitter.
fn pause(config: &Config) -> Duration {
    config.retry_delay().max(Duration::from_millis(1))
}

/// The callers who wait for one resource, the next one first.
#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<oneshot::Sender<Turn>>,
}

/// The right to ask for a resource. Passed on to the next in line when dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    /// None once it was passed on.
    of: Option<(Arc<Turns>, Arc<str>)>,
}

impl Turns {
    /// The turn, or a place in the line for it. The receiver is cancelled when the lines are closed.
    pub(crate) fn take(self: &Arc<Self>, resource: &Arc<str>) -> Result<Turn, oneshot::Receiver<Turn>> {
        let mut lines = self.lock();
        let Some(line) = lines.get_mut(resource) else {
            lines.insert(Arc::clone(resource), Line::default());
            return Ok(Turn { of: Some((Arc::clone(self), Arc::clone(resource))) });
        };
        let (sender, receiver) = oneshot::channel();
        // Whoever gives up leaves a place behind; each doubling is an occasion to clear them away.
        if line.waiting.len().is_power_of_two() {
            line.waiting.retain(|sender| !sender.is_canceled());
        }
        line.waiting.push_back(sender);
        Err(receiver)
    }

    /// Waits in line for as long as `asking` allows, and says for how long it has waited. There is no turn
    /// if it has not come by then. The time is kept by the runtime, whatever polls this future.
    pub(crate) async fn await_turn<R: Runtime>(
        self: &Arc<Self>,
        runtime: &R,
        resource: &Arc<str>,
        asking: Asking,
        config: &Config,
    ) -> Result<(Option<Turn>, Duration), Error> {
        let longest_wait = asking.longest_wait(config);
        let place = match self.take(resource) {
            Ok(turn) => return Ok((Some(turn), Duration::ZERO)),
            Err(_) if longest_wait.is_zero() => return Ok((None, Duration::ZERO)),
            Err(place) => place,
        };
        let (mut limit, time_is_up) = oneshot::channel::<()>();
        let clock = runtime.clone();
        let begun = runtime.now();
        let end = begun.saturating_add(longest_wait);
        // Its end is the sign, be it that the time is up or that the runtime stops.
        let keep_time = async move {
            select(pin!(timing::reach(&clock, end)), limit.cancellation()).await;
        };
        runtime.spawn(keep_time).map_err(|_| Error::NoRuntime)?;
        let turn = match select(place, time_is_up).await {
            Either::Left((turn, _)) => Some(turn.map_err(|oneshot::Canceled| Error::Closed)?),
            // It may have come in that moment; otherwise the place is given up.
            Either::Right((_, mut place)) => place.try_recv().map_err(|oneshot::Canceled| Error::Closed)?,
        };
        Ok((turn, runtime.now().saturating_since(begun)))
    }

    /// Sends everybody away.
    pub(crate) fn close(&self) {
        let lines = std::mem::take(&mut *self.lock());
        // Outside the lock, because it runs the wakers of those who wait.
        drop(lines);
    }

    /// The next in line, or none and the line with it.
    fn next(&self, resource: &Arc<str>) -> Option<oneshot::Sender<Turn>> {
        let mut lines = self.lock();
        let next = lines.get_mut(resource)?.waiting.pop_front();
        if next.is_none() {
            lines.remove(resource);
        }
        next
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Whether somebody waits for it.
    pub(crate) fn is_awaited(&self) -> bool {
        let Some((turns, resource)) = &self.of else { return false };
        let lines = turns.lock();
        lines.get(resource).is_some_and(|line| line.waiting.iter().any(|place| !place.is_canceled()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some((turns, resource)) = self.of.take() else { return };
        while let Some(next) = turns.next(&resource) {
            let turn = Self { of: Some((Arc::clone(&turns), Arc::clone(&resource))) };
            match next.send(turn) {
                Ok(()) => return,
                // Gone. The turn goes to the one behind, from here and not by being dropped.
                Err(mut turn) => turn.of = None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(turns: &Arc<Turns>, resource: &Arc<str>) -> oneshot::Receiver<Turn> {
        turns.take(resource).expect_err("somebody else has the turn")
    }

    fn come(receiver: &mut oneshot::Receiver<Turn>) -> Option<Turn> {
        receiver.try_recv().ok().flatten()
    }

    #[test]
    fn turns_are_taken_in_the_order_of_coming() {
        let (turns, resource) = (Arc::new(Turns::default()), Arc::from("r"));
        let first = turns.take(&resource).unwrap();
        let (mut second, mut third) = (wait(&turns, &resource), wait(&turns, &resource));
        assert!(come(&mut second).is_none());
        drop(first);
        assert!(come(&mut third).is_none());
        drop(come(&mut second).expect("the second is next"));
        drop(come(&mut third).expect("then the third"));
        assert!(turns.lock().is_empty());
        assert!(turns.take(&resource).is_ok());
    }

    #[test]
    fn resources_have_lines_of_their_own() {
        let turns = Arc::new(Turns::default());
        let (_one, _other) = (turns.take(&"a".into()).unwrap(), turns.take(&"b".into()).unwrap());
        assert!(turns.take(&"a".into()).is_err());
    }

    #[test]
    fn who_has_gone_is_passed_over_also_with_the_turn_in_hand() {
        let (turns, resource) = (Arc::new(Turns::default()), Arc::from("r"));
        let first = turns.take(&resource).unwrap();
        let (gone, leaving, mut last) =
            (wait(&turns, &resource), wait(&turns, &resource), wait(&turns, &resource));
        drop(gone);
        drop(first);
        assert!(come(&mut last).is_none(), "it is the second one's");
        // It was given the turn, and never looked.
        drop(leaving);
        assert!(come(&mut last).is_some());
    }

    #[test]
    fn places_of_those_who_have_gone_do_not_pile_up() {
        let (turns, resource) = (Arc::new(Turns::default()), Arc::from("r"));
        let _first = turns.take(&resource).unwrap();
        let _waits = wait(&turns, &resource);
        for _ in 0..10_000 {
            drop(wait(&turns, &resource));
        }
        assert!(turns.lock()[&resource].waiting.len() <= 4);
    }

    #[test]
    fn closing_sends_everybody_away_and_a_turn_that_ends_later_does_no_harm() {
        let (turns, resource) = (Arc::new(Turns::default()), Arc::from("r"));
        let first = turns.take(&resource).unwrap();
        let mut second = wait(&turns, &resource);
        turns.close();
        assert!(second.try_recv().is_err());
        drop(first);
        assert!(turns.lock().is_empty());
    }
}
