//! A server in this process behind a restart guard.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redlock_core::{Command, Fault, Quarantine};

use crate::{MemoryServer, Runtime};

/// A memory server that gives no votes while it is young, by the rule that connections to real ones follow.
/// A connection is made anew when the server was restarted.
pub(crate) struct GuardedMemory<R> {
    runtime: R,
    server: MemoryServer,
    quarantine: Mutex<(Quarantine, Option<u64>)>,
}

impl<R: Runtime> GuardedMemory<R> {
    pub(crate) fn new(runtime: R, server: MemoryServer, guard: Duration) -> Self {
        Self { runtime, server, quarantine: Mutex::new((Quarantine::new(guard), None)) }
    }

    pub(crate) const fn runtime(&self) -> &R {
        &self.runtime
    }

    pub(crate) const fn server(&self) -> &MemoryServer {
        &self.server
    }

    /// Whether the command may be sent now.
    pub(crate) fn check(&self, command: &Command) -> Result<(), Fault> {
        let (run, uptime) = self.server.with(|node, now| (node.restarts(), node.uptime(now)));
        let now = self.runtime.now();
        let mut guarded = self.quarantine.lock().unwrap_or_else(PoisonError::into_inner);
        let (quarantine, connected) = &mut *guarded;
        if connected.replace(run) != Some(run) {
            quarantine.sight(now, &run.to_string(), uptime);
        }
        quarantine.check(now, &command.intent)
    }
}
