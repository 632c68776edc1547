//! Waiting for the lease, for as long as the user will, and telling for whom.

use std::future::{Future, pending};
use std::time::Duration;

use redlock_tokio::{Error, Lease, Lock};
use tokio::time::{Instant, sleep};

use super::signals::{Signal, Signals};
use crate::args::Patience;
use crate::status::{Observer, Verdict, left, short};
use crate::voice::Voice;

/// How the waiting ended.
pub(super) enum Waited {
    /// With the lease.
    Acquired(Lease),
    /// Without.
    Failed(Error),
    /// By a signal. What was asked for is taken back in the background.
    Interrupted(Signal),
}

/// Asks for the lease with this much patience. `progress` runs meanwhile.
pub(super) async fn for_lease(
    lock: &Lock,
    patience: Patience,
    signals: &mut Signals,
    progress: impl Future<Output = ()>,
) -> Waited {
    let acquire = async {
        match patience {
            Patience::Once => lock.try_acquire().await,
            Patience::For(duration) => lock.acquire_within(duration).await,
            Patience::Forever => lock.acquire_within(Duration::MAX).await,
        }
    };
    tokio::select! {
        biased;
        signal = ending(signals) => Waited::Interrupted(signal),
        acquired = acquire => acquired.map_or_else(Waited::Failed, Waited::Acquired),
        () = progress => Waited::Failed(Error::Closed),
    }
}

/// The next signal that is to end the program. The others are for a command that does not run yet.
pub(super) async fn ending(signals: &mut Signals) -> Signal {
    loop {
        let signal = signals.next().await;
        if signal.ends {
            return signal;
        }
    }
}

/// Tells whom the program waits for: a line that changes on a terminal, and a line for each holder where
/// everything is told. Never ends.
pub(super) async fn tell(resource: &str, patience: Patience, observer: Option<Observer>, voice: &Voice) {
    let Some(mut observer) = observer.filter(|_| patience != Patience::Once) else { return pending().await };
    let started = Instant::now();
    let mut told = None;
    sleep(BEFORE_THE_FIRST).await;
    loop {
        let verdict = Verdict::of(&observer.look(resource).await);
        let (whom, until) = match verdict {
            Verdict::Held { token, left: until, .. } => {
                (format!("held by {}", short(&token)), format!(", {}", left(until)))
            }
            Verdict::Free => ("free for the moment".to_owned(), String::new()),
            Verdict::Split => ("nobody has a majority".to_owned(), String::new()),
            Verdict::Unknown => ("too few nodes answer".to_owned(), String::new()),
        };
        if voice.is_verbose() && told.as_ref() != Some(&whom) {
            voice.say(format!("waiting for {resource}: {whom}{until}"));
        }
        let so_far = started.elapsed().as_secs();
        voice.show(format!("waiting for {resource} since {so_far}s: {whom}{until}"));
        told = Some(whom);
        sleep(BETWEEN_TWO).await;
    }
}

/// Who waits so short hardly waits.
const BEFORE_THE_FIRST: Duration = Duration::from_millis(300);

const BETWEEN_TWO: Duration = Duration::from_secs(1);
