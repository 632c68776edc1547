//! What is right about sending passes, and each wrong thing fails at its check.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redlock_core::{Cause, CauseKind};

use super::super::{Check, check_transport, transport_checks};
use super::wrong::{Kind, Wrong};
use crate::{Command, Fault, Intent, MemoryServer, Reply, Transport, Ttl};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    SendsTwice,
    HasNoScripts,
    ExtendsAnybody,
    NeverExpires,
    MixesUpMany,
    MixesUpAfterADrop,
    ForgetsDeletes,
    Panics,
}

struct Wired {
    flaw: Flaw,
    runtime: Wrong,
    server: MemoryServer,
    waiting: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
}

impl Wired {
    fn new(flaw: Flaw) -> Self {
        let runtime = Wrong::new(Kind::Right);
        let server = MemoryServer::new(runtime.clone());
        server.set_request_delay(Duration::from_millis(1));
        Self { flaw, runtime, server, waiting: Arc::default(), dropped: Arc::default() }
    }
}

impl Transport for Wired {
    fn send(&self, command: &Command) -> impl Future<Output = Result<Reply, Fault>> + Send + 'static {
        let (flaw, mut command) = (self.flaw, command.clone());
        let of_a_lease = command.id.get() < 100;
        match (flaw, &mut command.intent) {
            (Flaw::Panics, _) => std::panic::resume_unwind(Box::new("not implemented")),
            (Flaw::NeverExpires, Intent::SetNxPx { ttl, .. }) => *ttl = Ttl::from_millis(60_000).unwrap(),
            (Flaw::ForgetsDeletes, Intent::CompareAndDelete { .. }) if of_a_lease => {
                command.key = "another".into();
            }
            _ => {}
        }
        let first = self.server.send(&self.runtime, &command);
        let again = (flaw == Flaw::SendsTwice).then(|| self.server.send(&self.runtime, &command));
        let fenced = matches!(command.intent, Intent::FencedAcquire { .. });
        let extends = matches!(command.intent, Intent::CompareAndPexpire { .. });
        let many = self.waiting.fetch_add(1, Ordering::Relaxed) > 50;
        let call =
            Call { waiting: Arc::clone(&self.waiting), dropped: Arc::clone(&self.dropped), over: false };
        let after_a_drop = self.dropped.load(Ordering::Relaxed) > 0;
        async move {
            let mut call = call;
            let mut reply = first.await;
            if let Some(again) = again {
                reply = again.await;
            }
            call.over = true;
            match flaw {
                Flaw::HasNoScripts if fenced => {
                    Err(Fault::NotExecuted(Cause::new(CauseKind::UnexpectedReply)))
                }
                Flaw::ExtendsAnybody if extends => Ok(Reply::Int(1)),
                Flaw::MixesUpMany if many => Ok(Reply::Ok),
                Flaw::MixesUpAfterADrop if after_a_drop => Ok(Reply::Ok),
                _ => reply,
            }
        }
    }
}

/// A command under way.
struct Call {
    waiting: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
    over: bool,
}

impl Drop for Call {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.dropped.fetch_add(usize::from(!self.over), Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_right_transport_passes() {
    let report = check_transport(Wrong::new(Kind::Right), Wired::new(Flaw::None)).await;
    let report = report.unwrap_or_else(|violation| panic!("{violation}"));
    let checks = transport_checks::<Wrong, _>(Wired::new(Flaw::None));
    let names: Vec<_> = checks.iter().map(Check::name).collect();
    assert_eq!((report.passed(), names.len()), (&names[..], 5));
}

#[tokio::test(start_paused = true)]
async fn wrong_transports() {
    for (flaw, check, seen) in [
        (Flaw::SendsTwice, "transport::carries_every_command", "set-nx-px with no key was answered as No"),
        (Flaw::HasNoScripts, "transport::carries_every_command", "fenced-acquire failed"),
        (Flaw::ExtendsAnybody, "transport::carries_every_command", "compare-and-pexpire with no key"),
        (Flaw::Panics, "transport::carries_every_command", "panicked: not implemented"),
        (Flaw::NeverExpires, "transport::lets_keys_expire", "set for 150 ms was, after 250 ms, deleted"),
        (Flaw::MixesUpMany, "transport::serves_many_callers", "one of many"),
        (Flaw::MixesUpAfterADrop, "transport::forgets_dropped_calls", "one to refuse got Yes"),
        (Flaw::ForgetsDeletes, "transport::carries_a_lease", "releasing a lease"),
    ] {
        let violation = check_transport(Wrong::new(Kind::Right), Wired::new(flaw)).await.unwrap_err();
        assert_eq!(violation.check, check, "{flaw:?}: {violation}");
        assert!(violation.seen.contains(seen), "{flaw:?}: {violation}");
    }
}
