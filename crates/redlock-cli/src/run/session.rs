//! One run, from the first request to the last clean-up.

use std::io;

use redlock_tokio::{Error, Lease, Lock, Manager};
use rustix::process::getpid;

use super::child::Child;
use super::exec::{OnOrphaned, Preparation};
use super::signals::Signals;
use super::terminal::{self, Terminal};
use super::wait::{self, Waited};
use super::watch::{End, Watch};
use crate::args::{OnLost, RunArgs};
use crate::exit::{Code, Failure};
use crate::narrate::Narrator;
use crate::nodes;
use crate::status::Observer;
use crate::voice::Voice;

/// What a run works with.
#[derive(Clone, Copy)]
pub(super) struct Session<'a> {
    pub(super) args: &'a RunArgs,
    pub(super) manager: &'a Manager,
    pub(super) lock: &'a Lock,
    pub(super) voice: &'a Voice,
    pub(super) narrator: &'a Narrator,
}

impl Session<'_> {
    /// Waits for the lease, runs the command and gives the lease back, whichever way that ends.
    pub(super) async fn run(
        self,
        terminal: Option<Terminal>,
        observer: Option<Observer>,
    ) -> Result<Code, Failure> {
        let mut signals = Signals::listen().map_err(|error| Failure::internal("no signals", error))?;
        let ended = self.acquire_and_run(terminal, observer, &mut signals).await;
        // What the nodes have not yet answered to is still on its way to them. Whoever cannot wait for that
        // leaves keys to expire.
        tokio::select! {
            () = self.manager.close() => {}
            _ = wait::ending(&mut signals) => {}
        }
        ended
    }

    async fn acquire_and_run(
        self,
        terminal: Option<Terminal>,
        observer: Option<Observer>,
        signals: &mut Signals,
    ) -> Result<Code, Failure> {
        let Self { args, voice, .. } = self;
        let progress = wait::tell(&args.resource, args.wait, observer, voice);
        let waited = wait::for_lease(self.lock, args.wait, signals, progress).await;
        voice.clear();
        let lease = match waited {
            Waited::Acquired(lease) => lease,
            Waited::Failed(error) => return Err(error.into()),
            Waited::Interrupted(signal) => {
                voice.tell(|| format!("{} came while waiting for {}", signal.name, args.resource));
                return Ok(Code::of_signal(signal.number));
            }
        };
        voice.tell(|| {
            let fence = lease.fencing_token().map(|token| format!(", fencing token {token}"));
            let fence = fence.unwrap_or_default();
            format!("acquired {}, valid for {:.1?}{fence}", args.resource, lease.valid_for())
        });
        let ended = self.watch_over_command(&lease, terminal, signals).await;
        let released = self.release(lease).await;
        ended.map(|end| match (end.lost || !released, args.on_lost) {
            (true, OnLost::Term | OnLost::Kill) => Code::LOST,
            _ => end.code,
        })
    }

    /// Runs the command to its end.
    async fn watch_over_command(
        self,
        lease: &Lease,
        terminal: Option<Terminal>,
        signals: &mut Signals,
    ) -> Result<End, Failure> {
        let given = terminal.as_ref().is_some_and(Terminal::is_ours) && terminal::is_all_the_commands();
        signals.listen_to_stop().map_err(|error| Failure::internal("no signals", error))?;
        let child = self.start(lease, given).map_err(|error| {
            Failure::new(Code::NOT_EXECUTABLE, format!("the command could not be started: {error}"))
        })?;
        self.voice.tell(|| format!("running the command as process {}", child.group()));
        let watch = Watch {
            child,
            terminal,
            given,
            lease,
            on_lost: self.args.on_lost,
            grace: self.args.grace,
            voice: self.voice,
            narrator: self.narrator,
        };
        watch
            .until_the_end(signals)
            .await
            .map_err(|error| Failure::internal("the command was not found", error))
    }

    fn start(self, lease: &Lease, foreground: bool) -> io::Result<Child> {
        // What the loss of the lease does to the command, the end of its keeper does too.
        let on_orphaned = match self.args.on_lost {
            OnLost::Term => Some(OnOrphaned::Terminate),
            OnLost::Kill => Some(OnOrphaned::Kill),
            OnLost::Warn => None,
        };
        let preparation = Preparation { parent: getpid(), on_orphaned, foreground };
        let mut command = preparation.command(&self.args.command)?;
        command.env("REDLOCK_RESOURCE", lease.resource());
        command.env("REDLOCK_TOKEN", lease.token().to_hex().as_str());
        match lease.fencing_token() {
            Some(token) => command.env(FENCING_TOKEN, token.to_string()),
            // One that this program was started with belongs to another lease.
            None => command.env_remove(FENCING_TOKEN),
        };
        command.env_remove(nodes::PASSWORD);
        if nodes::environment_has_passwords() {
            command.env_remove(nodes::NODES);
        }
        Child::start(&mut command)
    }

    /// Gives the lease back. False if it turns out to have been lost before.
    async fn release(self, lease: Lease) -> bool {
        let (resource, voice) = (&self.args.resource, self.voice);
        let is_over = !lease.is_valid();
        match lease.release().await {
            Ok(()) => voice.tell(|| format!("released {resource}")),
            // Said already, when it was noticed.
            Err(Error::LockLost(_)) if is_over => {}
            Err(Error::LockLost(lost)) => {
                voice.say(format!("{resource} was lost before the command had ended: {}", lost.reason));
                return false;
            }
            Err(error) => voice.say(format!("{resource}: {error}; what is left of it expires with its ttl")),
        }
        true
    }
}

const FENCING_TOKEN: &str = "REDLOCK_FENCING_TOKEN";
