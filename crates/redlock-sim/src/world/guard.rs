//! The restart guard of a client: the real rule, and the connections that it needs.

use std::time::Duration;

use redlock_core::{Fault, Instant, Intent, Quarantine};

use super::server::Server;

/// What a client knows of one server.
#[derive(Debug)]
pub(crate) struct Guard {
    quarantine: Quarantine,
    /// The run of the server that its connection was made to.
    connected: Option<u64>,
}

impl Guard {
    pub(crate) const fn new(guard: Duration) -> Self {
        Self { quarantine: Quarantine::new(guard), connected: None }
    }

    /// Sees to it that there is a connection to the server as it is now, and asks whether a command may go
    /// out on it. `local` is the client's time. Yields the run at the other end.
    ///
    /// The server's age is what its own clock says, to the nanosecond: nobody is kept waiting for a moment
    /// longer than the rule demands.
    pub(crate) fn connect(
        &mut self,
        now: u64,
        local: Instant,
        server: &Server,
        intent: &Intent,
    ) -> (u64, Result<(), Fault>) {
        let run = server.restarts();
        if self.connected.replace(run) != Some(run) {
            self.quarantine.sight(local, &run.to_string(), server.uptime(now));
        }
        (run, self.quarantine.check(local, intent))
    }
}
