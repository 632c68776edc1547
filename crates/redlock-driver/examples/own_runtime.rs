//! Leases on a runtime of one's own: here the plainest there is, a thread for every task.
//!
//! `cargo run -p redlock-driver --features conformance --example own_runtime`

use std::error::Error;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use redlock_driver::{
    Config, Instant, Manager, MemoryServer, NotRunning, Runtime, SuspendAwareClock, conformance,
};

/// A cheap handle. All that a lease needs to know of a runtime is in the methods below.
#[derive(Clone, Default)]
struct Threads {
    clock: SuspendAwareClock,
}

impl Runtime for Threads {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + Send + 'static {
        let clock = self.clock.clone();
        std::future::poll_fn(move |cx| {
            let left = deadline.saturating_since(clock.now());
            if left.is_zero() {
                return Poll::Ready(());
            }
            // A timer wheel would be the thing here. A thread that sleeps shows as well what is asked for.
            let waker = cx.waker().clone();
            let nap = left.min(Duration::from_secs(1));
            thread::spawn(move || {
                thread::sleep(nap);
                waker.wake();
            });
            Poll::Pending
        })
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<(), NotRunning> {
        // Detached: nobody joins the thread, and a panic ends it and nothing else.
        thread::Builder::new().spawn(|| block_on(task)).map(drop).map_err(|_| NotRunning)
    }

    fn here(&self) -> Option<impl Eq + Send + Sync + 'static> {
        // There is one, and it is everywhere.
        Some(())
    }
}

/// Polls a future on this thread, which sleeps in between.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // One line says whether the runtime does all that a lease needs.
    println!("{}", block_on(conformance::check(Threads::default()))?);

    let runtime = Threads::default();
    let nodes = [(); 3].map(|()| MemoryServer::new(runtime.clone()));
    let manager = Manager::redlock_on(runtime, &nodes, Config::default())?;
    let lease = block_on(manager.lock("orders:42").acquire())?;
    println!("held for {:?}", lease.valid_for());
    Ok(block_on(lease.release())?)
}
