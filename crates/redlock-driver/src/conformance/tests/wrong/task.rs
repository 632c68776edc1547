use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread, ThreadId};
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::FutureExt as _;
use tokio::runtime::Handle;

use super::{Kind, State, Wrong};
use crate::NotRunning;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

thread_local! {
    static IN_TASK: Cell<bool> = const { Cell::new(false) };
}

pub(super) fn spawn(runtime: &Wrong, task: Task) -> Result<(), NotRunning> {
    let Ok(handle) = Handle::try_current() else {
        return match runtime.kind {
            Kind::SpawnPanicsElsewhere => resume_unwind(Box::new("no runtime here")),
            Kind::SpawnDropsElsewhere => Ok(()),
            _ => Err(NotRunning),
        };
    };
    let shared = Arc::clone(&runtime.shared);
    let task = match runtime.kind {
        Kind::SpawnDrops => return Ok(()),
        Kind::SpawnForgets => {
            std::mem::forget(task);
            return Ok(());
        }
        Kind::SpawnBlocks => {
            block_on(task);
            return Ok(());
        }
        Kind::SpawnBlocksOnAThread => return thread::spawn(|| block_on(task)).join().map_err(|_| NotRunning),
        Kind::TasksStartLate => starts_late(task).boxed(),
        Kind::TasksRunOneByOne => after_the_one_before(&shared, task),
        Kind::TasksCannotSpawn if IN_TASK.get() => return Err(NotRunning),
        Kind::TasksCannotSpawn | Kind::TasksSayTheyAreElsewhere => marked(task),
        Kind::TasksAreDeafToThreads => deaf(runtime.home, task),
        Kind::TasksEndWithAnothersPanic => minds_panics(shared, task, Poll::Ready(())),
        Kind::TasksStopWithAnothersPanic => minds_panics(shared, task, Poll::Pending),
        Kind::TasksAreDroppedWhenOld => dropped_when_old(task).boxed(),
        _ => task,
    };
    drop(handle.spawn(task));
    Ok(())
}

/// Only one that is wrong about it says anything: the others are runtimes that cannot be told apart.
pub(super) fn here(runtime: &Wrong) -> Option<bool> {
    (runtime.kind == Kind::TasksSayTheyAreElsewhere).then(|| IN_TASK.get())
}

async fn starts_late(task: Task) {
    tokio::time::sleep(Duration::from_millis(150)).await;
    task.await;
}

async fn dropped_when_old(task: Task) {
    // Whether it ended is just what is not looked at.
    let _ = tokio::time::timeout(Duration::from_millis(120), task).await;
}

fn after_the_one_before(shared: &State, task: Task) -> Task {
    let (ended, end) = oneshot::channel::<()>();
    let before = shared.last_task.lock().unwrap().replace(end.map(|_| ()).boxed().shared());
    async move {
        if let Some(before) = before {
            before.await;
        }
        task.await;
        drop(ended);
    }
    .boxed()
}

fn marked(mut task: Task) -> Task {
    poll_fn(move |context| {
        IN_TASK.set(true);
        let polled = task.as_mut().poll(context);
        IN_TASK.set(false);
        polled
    })
    .boxed()
}

/// Hears no waking from other threads.
fn deaf(home: ThreadId, mut task: Task) -> Task {
    struct Deaf(ThreadId, Waker);
    impl Wake for Deaf {
        fn wake(self: Arc<Self>) {
            if thread::current().id() == self.0 {
                self.1.wake_by_ref();
            }
        }
    }
    poll_fn(move |context| {
        let waker = Waker::from(Arc::new(Deaf(home, context.waker().clone())));
        task.as_mut().poll(&mut Context::from_waker(&waker))
    })
    .boxed()
}

/// Once any task has panicked, none is polled; each says this instead.
fn minds_panics(shared: Arc<State>, mut task: Task, then: Poll<()>) -> Task {
    poll_fn(move |context| {
        if shared.panicked.load(Ordering::Relaxed) {
            return then;
        }
        catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(context))).unwrap_or_else(|_| {
            shared.panicked.store(true, Ordering::Relaxed);
            Poll::Ready(())
        })
    })
    .boxed()
}

fn block_on(task: Task) {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut task = pin!(task);
    while task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        thread::park();
    }
}
