//! When a server that was restarted may vote again.

use alloc::boxed::Box;
use alloc::format;
use core::time::Duration;

use crate::{Cause, CauseKind, Fault, Instant, Intent};

/// Keeps a node whose server may have forgotten what it granted from granting anything, until what it
/// forgot has expired everywhere. What the author of Redlock calls a delayed restart, on the client's side.
///
/// The rule: a server that has run for less than the guard (see
/// [`ConfigBuilder::restart_guard`](crate::ConfigBuilder::restart_guard)) gives no votes for an acquire.
/// [Sighted](Self::sight) once for each connection, because a restart breaks those that there are.
///
/// **Why this is enough.** Two holders need a node that voted for both. If it forgot the first in between,
/// it was restarted after its first vote, and votes again only a guard after that. By then the first lease,
/// whose keys were given at most the guard, is over.
///
/// **Why only acquires.** A delete gives nothing away. An extension is granted only by a server that has our
/// token now, whatever it has forgotten, and nobody else can be given that key while the token is there. A
/// server that came back with old data is no different: a token of a lease that is still held was never
/// deleted, so the key can have gone to somebody else only if the server forgot it once more in between,
/// and then it did not vote until the token had expired.
///
/// ```
/// use core::time::Duration;
/// use redlock_core::{Instant, Intent, Quarantine, Token, Ttl};
///
/// let at = |seconds| Instant::from_epoch(Duration::from_secs(seconds));
/// let token = Token::from_bytes([7; 20]);
/// let acquire = Intent::SetNxPx { token, ttl: Ttl::from_millis(10_000).unwrap() };
///
/// let mut quarantine = Quarantine::new(Duration::from_secs(30));
/// assert!(quarantine.check(at(100), &acquire).is_err(), "nothing is known of it yet");
/// quarantine.sight(at(100), "run 1", Duration::from_secs(5));
/// let fault = quarantine.check(at(103), &acquire).unwrap_err();
/// assert_eq!(fault.to_string(), "in quarantine: restarted 8 s ago, no votes for 22 s more");
/// assert!(quarantine.check(at(103), &Intent::CompareAndDelete { token }).is_ok());
/// assert!(quarantine.check(at(125), &acquire).is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantine {
    guard: Duration,
    server: Option<Sighted>,
    /// Why the server that answers now is not known, if it is not.
    unknown: Option<Box<str>>,
}

/// The server that answered last.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sighted {
    run_id: Box<str>,
    last: Instant,
    votes_from: Instant,
    /// Another server answered before, and this one had been running by then.
    replaced: bool,
}

impl Quarantine {
    /// A node of which nothing is known yet, so that it does not vote.
    #[must_use]
    pub const fn new(guard: Duration) -> Self {
        Self { guard, server: None, unknown: None }
    }

    /// A connection was made anew, and the server at its other end has said which run of it this is, and how
    /// old. `now` is when the answer had come, and `age` what the server has been running for at the very
    /// least, so that what was rounded or took time is in nobody's favour.
    ///
    /// If another run answered here before, and this one claims to be older than that, it is not a restart
    /// but another server under the same name: a promoted replica, a new machine. What it knows is anybody's
    /// guess, so it is treated as if it had been started now.
    pub fn sight(&mut self, now: Instant, run_id: &str, age: Duration) {
        self.unknown = None;
        let votes_from = now.saturating_add(self.guard.saturating_sub(age));
        match &mut self.server {
            Some(server) if *server.run_id == *run_id => server.last = now,
            before => {
                let replaced = before.as_ref().is_some_and(|before| age > now.saturating_since(before.last));
                let votes_from = if replaced { now.saturating_add(self.guard) } else { votes_from };
                *before = Some(Sighted { run_id: run_id.into(), last: now, votes_from, replaced });
            }
        }
    }

    /// A connection was made anew, and the server does not say how long it has been running, for this
    /// reason. It does not vote until it does. The text must not contain credentials.
    pub fn sight_unknown(&mut self, why: impl Into<Box<str>>) {
        self.unknown = Some(why.into());
    }

    /// Whether it is known how long the server has been running.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.server.is_some() && self.unknown.is_none()
    }

    /// Whether a command may be sent now, on the connection that was sighted last.
    ///
    /// # Errors
    /// For an acquire while the node is in quarantine, [`Fault::NotExecuted`] of the kind
    /// [`CauseKind::Quarantined`].
    pub fn check(&self, now: Instant, intent: &Intent) -> Result<(), Fault> {
        if !intent.acquires() {
            return Ok(());
        }
        let why = match (&self.unknown, &self.server) {
            (Some(why), _) => format!("no votes, because its age is not known: {why}"),
            (None, None) => "no votes, because its age is not known yet".into(),
            (None, Some(server)) if now >= server.votes_from => return Ok(()),
            (None, Some(server)) => {
                let left = server.votes_from.saturating_since(now);
                let ago = self.guard.saturating_sub(left).as_secs();
                let what = if server.replaced { "replaced by another server" } else { "restarted" };
                // Rounded up: zero would say that it is over.
                let left = left.as_millis().div_ceil(1_000);
                format!("{what} {ago} s ago, no votes for {left} s more")
            }
        };
        Err(Fault::NotExecuted(Cause::with_detail(CauseKind::Quarantined, why)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Token, Ttl};
    use alloc::string::ToString;

    const GUARD: Duration = Duration::from_secs(30);
    const TOKEN: Token = Token::from_bytes([1; Token::LEN]);

    const fn at(millis: u64) -> Instant {
        Instant::from_epoch(Duration::from_millis(millis))
    }

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn acquire() -> Intent {
        Intent::SetNxPx { token: TOKEN, ttl: Ttl::from_millis(1_000).unwrap() }
    }

    fn said(quarantine: &Quarantine, now: Instant) -> Option<alloc::string::String> {
        quarantine.check(now, &acquire()).err().map(|fault| fault.to_string())
    }

    #[test]
    fn a_server_votes_when_it_is_as_old_as_the_guard_and_not_a_moment_earlier() {
        let mut quarantine = Quarantine::new(GUARD);
        quarantine.sight(at(1_000), "a", secs(10));
        assert_eq!(
            said(&quarantine, at(1_000)).unwrap(),
            "in quarantine: restarted 10 s ago, no votes for 20 s more"
        );
        assert_eq!(
            said(&quarantine, at(20_999)).unwrap(),
            "in quarantine: restarted 29 s ago, no votes for 1 s more"
        );
        assert_eq!(said(&quarantine, at(21_000)), None);
    }

    #[test]
    fn an_old_server_votes_at_once() {
        let mut quarantine = Quarantine::new(GUARD);
        quarantine.sight(at(1_000), "a", GUARD);
        assert_eq!(said(&quarantine, at(1_000)), None);
    }

    #[test]
    fn every_restart_counts_anew() {
        let mut quarantine = Quarantine::new(GUARD);
        quarantine.sight(at(0), "a", secs(100));
        quarantine.sight(at(50_000), "b", secs(5));
        assert!(said(&quarantine, at(74_999)).is_some());
        quarantine.sight(at(60_000), "c", secs(0));
        assert!(said(&quarantine, at(89_999)).is_some());
        assert_eq!(said(&quarantine, at(90_000)), None);
    }

    #[test]
    fn another_connection_to_the_same_run_changes_nothing() {
        let mut quarantine = Quarantine::new(GUARD);
        quarantine.sight(at(0), "a", secs(10));
        // Its wall clock was put forward, say.
        quarantine.sight(at(1_000), "a", secs(3_600));
        assert!(said(&quarantine, at(19_999)).is_some());
        assert_eq!(said(&quarantine, at(20_000)), None);
    }

    #[test]
    fn a_server_that_claims_to_be_older_than_its_predecessors_last_sign_is_another_one() {
        let mut quarantine = Quarantine::new(GUARD);
        quarantine.sight(at(0), "a", secs(100));
        quarantine.sight(at(10_000), "b", secs(1_000));
        assert_eq!(
            said(&quarantine, at(12_000)).unwrap(),
            "in quarantine: replaced by another server 2 s ago, no votes for 28 s more"
        );
        assert_eq!(said(&quarantine, at(40_000)), None);
        // A restart long ago, seen late, is one all the same.
        quarantine.sight(at(140_000), "c", secs(100));
        assert_eq!(said(&quarantine, at(140_000)), None);
    }

    #[test]
    fn a_server_as_old_as_its_predecessors_last_sign_is_its_successor() {
        let mut quarantine = Quarantine::new(GUARD);
        quarantine.sight(at(0), "a", secs(100));
        quarantine.sight(at(40_000), "b", secs(40));
        assert_eq!(said(&quarantine, at(40_000)), None, "started when the other was last seen, a guard ago");
    }

    #[test]
    fn who_does_not_say_does_not_vote() {
        let mut quarantine = Quarantine::new(GUARD);
        assert!(!quarantine.is_known());
        assert!(said(&quarantine, at(1_000_000)).unwrap().ends_with("not known yet"));
        quarantine.sight(at(0), "a", secs(100));
        quarantine.sight_unknown("NOPERM; grant +info");
        assert!(!quarantine.is_known());
        assert_eq!(
            said(&quarantine, at(1_000_000)).unwrap(),
            "in quarantine: no votes, because its age is not known: NOPERM; grant +info"
        );
        quarantine.sight(at(1_000_000), "a", secs(2_000));
        assert_eq!((said(&quarantine, at(1_000_000)), quarantine.is_known()), (None, true));
    }

    #[test]
    fn only_acquires_are_kept_back() {
        let quarantine = Quarantine::new(GUARD);
        let ttl = Ttl::from_millis(1_000).unwrap();
        let fenced = Intent::FencedAcquire { fence: "f".into(), token: TOKEN, ttl };
        let fault = quarantine.check(at(0), &fenced).unwrap_err();
        assert!(matches!(&fault, Fault::NotExecuted(cause) if cause.kind() == CauseKind::Quarantined));
        assert_eq!(quarantine.check(at(0), &Intent::CompareAndDelete { token: TOKEN }), Ok(()));
        assert_eq!(quarantine.check(at(0), &Intent::CompareAndPexpire { token: TOKEN, ttl }), Ok(()));
    }
}
