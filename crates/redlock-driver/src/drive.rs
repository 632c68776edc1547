//! The task of a lease: it keeps the time, and sends what takes more than handing it to a connection.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use redlock_core::Instant;

use crate::Runtime;
use crate::cell::{Cell, Look};
use crate::courtesy::Wait;
use crate::hints::Hints;
use crate::recipient::Recipient as _;
use crate::trace;

/// Drives a lease until nothing is left to do for it. Dropping the future before that, as its runtime does
/// when it shuts down, ends the lease, also when the future was never polled.
pub(crate) fn drive<R: Runtime>(
    cell: Arc<Cell<R>>,
    hints: Option<Box<Hints<R>>>,
) -> impl Future<Output = ()> + Send + 'static {
    let orphan = OrphanOnDrop(cell);
    async move { drive_until_settled(&orphan.0, hints).await }
}

/// The hints are boxed: most leases have none, and each has a task.
async fn drive_until_settled<R: Runtime>(cell: &Arc<Cell<R>>, mut hints: Option<Box<Hints<R>>>) {
    let mut under_way = None;
    let mut answers = Vec::new();
    let mut hinted = Vec::new();
    let mut timer = pin!(None);
    let mut armed: Option<Instant> = None;

    loop {
        let Look { commands, alarm, watched, asking, ended } =
            cell.look(armed, hints.as_deref().map(Hints::wait));
        for (id, answer) in commands {
            let under_way = under_way.get_or_insert_with(FuturesUnordered::new);
            under_way.push(async move { (id, answer.await) });
        }
        if ended {
            return trace::settled(cell);
        }
        if let Some(at) = alarm
            && armed.is_none_or(|armed| at < armed)
        {
            timer.set(Some(cell.runtime().sleep_until(at)));
            armed = Some(at);
        }
        if !watched.is_empty() {
            hints.get_or_insert_with(|| Box::new(cell.hints()));
        } else if !asking {
            hints = None;
        } else if let Some(hints) = &mut hints {
            hints.pause_over();
        }
        let woken_by_timer = poll_fn(|cx| {
            let requested = cell.take_request(cx.waker());
            while let Some(Poll::Ready(Some(answer))) = under_way.as_mut().map(|it| it.poll_next_unpin(cx)) {
                answers.push(answer);
            }
            // What the task had to send is on its way.
            cell.pass_the_turn();
            if let Some(hints) = &mut hints {
                hinted.extend(watched.iter().filter(|node| hints.poll(**node, cx).is_ready()));
            }
            if requested || !answers.is_empty() || !hinted.is_empty() {
                return Poll::Ready(false);
            }
            poll_timer(timer.as_mut(), cx).map(|()| true)
        })
        .await;
        if woken_by_timer {
            timer.set(None);
            armed = None;
        }
        // What has been answered goes in before the time does: a task that was scheduled late must not count
        // answers that it already has as silence.
        for (id, reply) in answers.drain(..) {
            Arc::clone(cell).answered(id, reply);
        }
        for node in hinted.drain(..) {
            cell.hinted(node, hints.as_deref().map_or(Wait::Unseen, Hints::wait));
        }
    }
}

fn poll_timer<S: Future<Output = ()>>(timer: Pin<&mut Option<S>>, cx: &mut Context<'_>) -> Poll<()> {
    match timer.as_pin_mut() {
        Some(timer) => timer.poll(cx),
        None => Poll::Pending,
    }
}

/// Tells whoever still waits when the task is dropped midway. After a regular end nobody does.
struct OrphanOnDrop<R: Runtime>(Arc<Cell<R>>);

impl<R: Runtime> Drop for OrphanOnDrop<R> {
    fn drop(&mut self) {
        self.0.orphan();
    }
}
