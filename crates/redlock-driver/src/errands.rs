//! The task of a lease with errands: commands that take more than handing them to a connection, and watching
//! for the key to go while the lease has to wait for it.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use crate::Runtime;
use crate::cell::{Cell, Look};
use crate::courtesy::Wait;
use crate::hints::Hints;
use crate::recipient::Recipient as _;

/// Starts the task. If it is dropped before its end, as its runtime does when it stops, also when it was never
/// polled, the lease ends.
pub(crate) fn start<R: Runtime>(cell: &Arc<Cell<R>>) {
    // Nothing more is to be done about it if there is no runtime: the lease has ended by that.
    let _ = cell.runtime().spawn(run(Arc::clone(cell)));
}

fn run<R: Runtime>(cell: Arc<Cell<R>>) -> impl Future<Output = ()> + Send + 'static {
    let errands = Errands { cell, done: false };
    async move {
        run_all(&errands.cell).await;
        errands.done();
    }
}

async fn run_all<R: Runtime>(cell: &Arc<Cell<R>>) {
    let mut hints = cell.take_hints();
    let mut under_way = FuturesUnordered::new();
    let mut answers = Vec::new();
    let mut hinted = Vec::new();

    loop {
        let Look { commands, watched, asking, done } =
            cell.look(under_way.is_empty(), hints.as_deref().map(Hints::wait));
        if done {
            return;
        }
        under_way.extend(commands.into_iter().map(|(id, answer)| async move { (id, answer.await) }));
        if !watched.is_empty() {
            hints.get_or_insert_with(|| Box::new(cell.hints()));
        } else if !asking {
            hints = None;
        } else if let Some(hints) = &mut hints {
            hints.pause_over();
        }
        poll_fn(|cx| {
            let requested = cell.take_request(cx.waker());
            while let Poll::Ready(Some(answer)) = under_way.poll_next_unpin(cx) {
                answers.push(answer);
            }
            // What had to be sent is on its way.
            cell.pass_the_turn();
            if let Some(hints) = &mut hints {
                hinted.extend(watched.iter().filter(|node| hints.poll(**node, cx).is_ready()));
            }
            let idle = under_way.is_empty() && watched.is_empty() && !asking;
            if requested || idle || !answers.is_empty() || !hinted.is_empty() {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
        for (id, reply) in answers.drain(..) {
            Arc::clone(cell).answered(id, reply);
        }
        for node in hinted.drain(..) {
            cell.hinted(node, hints.as_deref().map_or(Wait::Unseen, Hints::wait));
        }
    }
}

struct Errands<R: Runtime> {
    cell: Arc<Cell<R>>,
    done: bool,
}

impl<R: Runtime> Errands<R> {
    fn done(mut self) {
        self.done = true;
    }
}

impl<R: Runtime> Drop for Errands<R> {
    fn drop(&mut self) {
        if !self.done {
            self.cell.orphan();
        }
    }
}
