//! Asking a server how long it has been running, before it may vote.

use std::sync::{Mutex, Weak};
use std::time::Duration;

use redis::{RedisResult, cmd};
use redlock_core::{Fault, Instant, Intent, Quarantine};
use tracing::{debug, warn};

use super::link::Link;
use super::{Connect, Connection, lock, timing};
use crate::{Runtime, topology};

/// The restart guard of one link: what the server at the end of its newest connection has said.
#[derive(Debug)]
pub(crate) struct Guard {
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    quarantine: Quarantine,
    /// Of the newest connection that was looked at.
    generation: u64,
}

impl Guard {
    pub(super) const fn new(guard: Duration) -> Self {
        Self { seen: Mutex::new(Seen { quarantine: Quarantine::new(guard), generation: 0 }) }
    }

    /// Whether a command may be sent now, on the connection that was looked at last.
    pub(super) fn check(&self, now: Instant, intent: &Intent) -> Result<(), Fault> {
        lock(&self.seen).quarantine.check(now, intent)
    }

    /// Looks at the server at the end of a new connection. To be done before the connection is used.
    ///
    /// # Errors
    /// Where the connection broke. A server that refuses to say is no error: it does not vote.
    pub(super) async fn look(
        &self,
        runtime: &impl Runtime,
        generation: u64,
        connection: &impl Connection,
    ) -> RedisResult<()> {
        let mut question = cmd("INFO");
        question.arg("server");
        let answer = connection.call(question).await.and_then(topology::server_error);
        // The server may have read its clock at any time before. Counting from now is in nobody's favour.
        let now = runtime.now();
        let answer = match answer {
            Err(error) if error.code().is_none() => return Err(error),
            Err(error) => Err(refused(error.code().unwrap_or_default())),
            Ok(value) => redis::from_redis_value::<String>(value)
                .ok()
                .and_then(|info| topology::started(&info))
                .ok_or_else(|| "the answer to INFO names no run of a server".to_owned()),
        };
        let mut seen = lock(&self.seen);
        if generation < seen.generation {
            // Somebody has looked at a newer connection meanwhile.
            return Ok(());
        }
        seen.generation = generation;
        match answer {
            Ok((run_id, age)) => seen.quarantine.sight(now, &run_id, age),
            Err(why) => seen.quarantine.sight_unknown(why),
        }
        Ok(())
    }

    fn is_known(&self) -> bool {
        lock(&self.seen).quarantine.is_known()
    }
}

fn refused(code: &str) -> String {
    match code {
        "NOPERM" => "INFO is refused (NOPERM): give the user the right +info".to_owned(),
        code => format!("INFO is refused ({code})"),
    }
}

/// Asks a server that did not say how old it is again and again, for as long as its connection is in use: a
/// right may be granted later.
pub(super) async fn look_again<R: Connect>(
    link: &Weak<Link<R>>,
    runtime: R,
    generation: u64,
    connection: R::Connection,
) {
    let guard = || {
        let link = link.upgrade()?;
        let wanted = lock(link.state()).generation == generation;
        link.guard().filter(|guard| wanted && !guard.is_known()).cloned()
    };
    if guard().is_some()
        && let Some(link) = link.upgrade()
    {
        warn!(node = %link.name(), "does not say how long it has been running, so it does not vote");
    }
    while let Some(guard) = guard() {
        timing::pause(&runtime, ASK_AGAIN).await;
        let deadline = runtime.now().saturating_add(ASK_AGAIN);
        let asked = timing::by(&runtime, deadline, guard.look(&runtime, generation, &connection)).await;
        debug!(generation, ?asked, "asked again how long the server has been running");
    }
}

/// How long between two such questions.
const ASK_AGAIN: Duration = Duration::from_secs(1);
