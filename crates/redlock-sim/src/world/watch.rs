//! Looks for what is worth counting, so that a run can tell whether it tried anything.

use redlock_core::{
    Command, Event, ExtendError, Instant, Intent, LossReason, NotAcquired, NotAcquiredReason, ReleaseOutcome,
    Reply, Token,
};

use super::agenda::Request;
use super::stage::Stage;
use crate::options::RESOURCES;
use crate::summary::{Mark, Summary};

#[derive(Debug, Default)]
pub(super) struct Watch {
    books: Vec<Book>,
    /// Who last held each resource, and whether it ended without anybody's doing.
    holders: [Option<(usize, bool)>; RESOURCES],
}

#[derive(Clone, Debug, Default)]
struct Book {
    /// By server: the newest command that was carried out.
    newest: Vec<Option<u64>>,
    /// Deletes that were sent, and that were carried out.
    deletes_sent: Vec<(usize, Token)>,
    deletes_done: Vec<(usize, Token)>,
    /// When the lease ends, to the machine's knowledge.
    end: Option<Instant>,
    forgotten: u64,
    stale: u64,
    /// The last attempt that hints have brought about.
    hinted: Option<Token>,
}

impl Watch {
    pub(super) fn begin(&mut self, stage: &Stage, handle: usize) {
        self.books.resize(self.books.len().max(handle + 1), Book::default());
        self.books[handle] = Book { newest: vec![None; stage.servers.len()], ..Book::default() };
    }

    /// The handle's process dies.
    pub(super) fn died(&mut self, stage: &Stage, handle: usize) {
        if stage.is_held(handle) {
            self.holders[stage.handles[handle].resource] = Some((handle, true));
        }
    }

    /// Hints have brought about an attempt with this token.
    pub(super) fn hinted(&mut self, handle: usize, token: Token) {
        self.books[handle].hinted = Some(token);
    }

    pub(super) fn sent(&mut self, handle: usize, server: usize, command: &Command, summary: &mut Summary) {
        if let Intent::CompareAndDelete { token } = command.intent {
            let sent = &mut self.books[handle].deletes_sent;
            if sent.contains(&(server, token)) {
                summary.count(Mark::DeletedAgain);
            }
            sent.push((server, token));
        }
    }

    pub(super) fn executed(
        &mut self,
        stage: &Stage,
        request: &Request,
        reply: &Reply,
        summary: &mut Summary,
    ) {
        if stage.handles[request.handle].life != request.life {
            return;
        }
        let (server, token) = (request.server, request.command.intent.token());
        let book = &mut self.books[request.handle];
        let (newest, id) = (&mut book.newest[server], Some(request.command.id.get()));
        if *newest > id {
            summary.count(Mark::Overtaken);
        }
        *newest = id.max(*newest);
        match request.command.intent {
            Intent::CompareAndDelete { .. } => book.deletes_done.push((server, token)),
            Intent::SetNxPx { .. } | Intent::FencedAcquire { .. }
                if matches!(reply, Reply::Ok | Reply::Text(_))
                    && book.deletes_done.contains(&(server, token)) =>
            {
                summary.count(Mark::SetAfterDelete);
            }
            _ => {}
        }
    }

    /// The machine's own counts after an input.
    pub(super) fn drained(&mut self, stage: &Stage, handle: usize, summary: &mut Summary) {
        let (machine, book) = (&stage.handles[handle].machine, &mut self.books[handle]);
        let stats = machine.stats();
        summary.count_many(Mark::ForgottenCleanup, stats.forgotten_cleanups - book.forgotten);
        summary.count_many(Mark::StaleReply, stats.stale_replies - book.stale);
        (book.forgotten, book.stale) = (stats.forgotten_cleanups, stats.stale_replies);
        book.end = machine.valid_until();
        if machine.is_settled() {
            book.deletes_sent.clear();
            book.deletes_done.clear();
        }
    }

    pub(super) fn event(&mut self, stage: &Stage, handle: usize, event: &Event, summary: &mut Summary) {
        let holder = &mut self.holders[stage.handles[handle].resource];
        let mark = match event {
            Event::Acquired { fencing, attempt, .. } => {
                if matches!(*holder, Some((other, true)) if other != handle) {
                    summary.count(Mark::TakenOver);
                }
                *holder = Some((handle, false));
                if *attempt > 1 {
                    summary.count(Mark::AcquiredLater);
                }
                if self.books[handle].hinted == Some(stage.handles[handle].machine.token()) {
                    summary.count(Mark::AcquiredByHint);
                }
                if fencing.is_some() {
                    summary.count(Mark::Fenced);
                }
                Mark::Acquired
            }
            Event::AcquireFailed(failure) | Event::AttemptFailed { cause: failure, .. } => {
                return failed(failure, summary);
            }
            Event::Extended { valid_until } => {
                let longer = self.books[handle].end.is_none_or(|end| end < *valid_until);
                if longer { Mark::Lengthened } else { Mark::Shortened }
            }
            Event::ExtendFailed(ExtendError::NotExtended(_)) => Mark::NotExtended,
            Event::ExtendFailed(ExtendError::LockLost(_)) => Mark::ExtensionLost,
            Event::ExtendFailed(ExtendError::NotHeld(_)) => Mark::ExtensionReleased,
            Event::Renewed { .. } => Mark::Renewed,
            Event::RenewFailed { .. } => Mark::RenewFailed,
            Event::Lost { reason } => {
                *holder = Some((handle, *reason == LossReason::Expired));
                match reason {
                    LossReason::Refused => Mark::LostRefused,
                    LossReason::MaxHold => Mark::LostMaxHold,
                    LossReason::RenewalFailed => Mark::LostRenewal,
                    LossReason::Closed => Mark::LostClosed,
                    _ => Mark::LostExpired,
                }
            }
            Event::Released(ReleaseOutcome::Released) => Mark::Released,
            Event::Released(ReleaseOutcome::AlreadyExpired) => Mark::AlreadyExpired,
            Event::ReleaseFailed(_) => Mark::ReleaseFailed,
            _ => return,
        };
        summary.count(mark);
    }
}

fn failed(failure: &NotAcquired, summary: &mut Summary) {
    let obstacle = match failure.reason {
        NotAcquiredReason::WaitedInVain { seen } => {
            summary.count(Mark::WaitedInVain);
            seen.into()
        }
        reason => reason,
    };
    summary.count(match obstacle {
        NotAcquiredReason::Taken => Mark::Taken,
        NotAcquiredReason::Mixed => Mark::Mixed,
        NotAcquiredReason::ExpiredWhileAcquiring => Mark::ExpiredWhileAcquiring,
        NotAcquiredReason::Cancelled => Mark::Cancelled,
        _ => Mark::Unreachable,
    });
}
