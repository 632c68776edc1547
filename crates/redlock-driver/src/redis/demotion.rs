//! Servers that turn out to be replicas: under the same name another may be the primary by now.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use redlock_core::{Reply, ServerError};
use tracing::{debug, warn};

use super::link::Link;
use super::wire::Wire;
use super::{Connect, backoff, dial};

/// What is known of a node's being a replica.
///
/// An answer such as `READONLY` makes the link dial once more, in the background, and change to the new
/// connection when it is there. Until then the old one serves: what it answers is honest, and it may be
/// promoted after all. A node that is and stays a replica is dialled with growing pauses, and only as long
/// as somebody asks it for something.
#[derive(Debug, Default)]
pub(super) struct Demotion {
    /// Such dials since the node last did something that only a primary does.
    dials: AtomicU32,
    /// Whether one is under way.
    dialling: AtomicBool,
}

impl Demotion {
    /// Looks at an answer for a sign that the node is a primary.
    pub(super) fn heard(&self, reply: &Reply) {
        // A replica refuses writes; that there is nothing to write, it can say.
        let wrote = matches!(reply, Reply::Ok | Reply::Nil | Reply::Text(_) | Reply::Int(1..));
        if wrote && self.dials.load(Ordering::Relaxed) > 0 {
            self.dials.store(0, Ordering::Relaxed);
        }
    }

    /// How many dials there have been with the one that the caller may start now; `None` while one is under
    /// way.
    fn begin(&self) -> Option<u32> {
        if self.dialling.swap(true, Ordering::Relaxed) {
            return None;
        }
        Some(self.dials.fetch_add(1, Ordering::Relaxed).saturating_add(1))
    }

    /// The dial has come to its end.
    pub(super) fn ended(&self) {
        self.dialling.store(false, Ordering::Relaxed);
    }
}

/// Whether only a replica answers like that. Before Redis 7 a script's error has the code of the command
/// that failed in its text.
pub(super) fn is_replicas(error: &ServerError) -> bool {
    matches!(error.code(), "READONLY" | "MASTERDOWN") || error.message().contains("-READONLY ")
}

/// Looks for the primary in place of the replica at the other end of `wire`.
pub(super) fn look_elsewhere<R: Connect>(link: &Arc<Link<R>>, wire: &Arc<Wire<R::Connection>>) {
    if link.in_use(wire.generation()).is_none() {
        return;
    }
    let Some(dials) = link.demotion().begin() else { return };
    let pause = (dials > 1).then(|| backoff::pause(dials - 1));
    report(link, dials, pause);
    dial::again(link, wire.generation(), pause);
}

fn report<R: Connect>(link: &Link<R>, dials: u32, pause: Option<Duration>) {
    let node = link.name();
    if dials == 1 {
        warn!(%node, "the server is a replica: dialling again, for another may be there by now");
    } else {
        debug!(%node, dials, ?pause, "the server is still a replica");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_dial_at_a_time_and_a_write_ends_the_series() {
        let demotion = Demotion::default();
        assert_eq!((demotion.begin(), demotion.begin()), (Some(1), None));
        demotion.ended();
        assert_eq!(demotion.begin(), Some(2));
        demotion.ended();
        for neither in [Reply::Int(0), Reply::Error(ServerError::new("READONLY", "")), Reply::Other] {
            demotion.heard(&neither);
        }
        assert_eq!(demotion.begin(), Some(3));
        demotion.ended();
        for written in [Reply::Ok, Reply::Nil, Reply::Int(1), Reply::Text(b"7".as_slice().into())] {
            demotion.heard(&written);
            assert_eq!(demotion.begin(), Some(1), "{written:?}");
            demotion.ended();
        }
    }

    #[test]
    fn replicas_are_known_by_their_errors() {
        let error = |code: &str, message: &str| ServerError::new(code, message);
        assert!(is_replicas(&error("READONLY", "You can't write against a read only replica.")));
        assert!(is_replicas(&error("MASTERDOWN", "Link with MASTER is down")));
        assert!(is_replicas(&error(
            "ERR",
            "Error running script: -READONLY You can't write against a read only replica."
        )));
        assert!(!is_replicas(&error("ERR", "READONLY is not an integer")));
        assert!(!is_replicas(&error("NOREPLICAS", "Not enough good replicas to write.")));
    }
}
