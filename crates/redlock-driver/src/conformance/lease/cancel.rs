//! Callers that go away.

use std::thread;

use super::super::outcome::{During as _, Failure, Outcome, should};
use super::super::time::ms;
use super::bench::{Bench, LONG, poll_up_to};
use crate::{Lease, Runtime};

/// Dropped after each number of polls from none to completion, while commands and answers are on their
/// way.
pub(super) async fn acquire_may_be_dropped<R: Runtime>(runtime: R) -> Outcome {
    for nodes in [1, 3] {
        for polls in 0..MOST_POLLS {
            let bench = slow_bench(runtime.clone(), nodes)?;
            let lock = bench.lock();
            let acquired = poll_up_to(&bench.runtime, polls, lock.acquire()).await;
            let completed = acquired.is_some();
            if let Some(lease) = acquired {
                lease
                    .during("acquiring from slow nodes")?
                    .release()
                    .await
                    .during("releasing at slow nodes")?;
            }
            bench.is_clean(&format!("after an acquire that was dropped after {polls} polls")).await?;
            if completed {
                break;
            }
            may_go_on(polls)?;
        }
    }
    Ok(())
}

pub(super) async fn extend_may_be_dropped<R: Runtime>(runtime: R) -> Outcome {
    for polls in 0..MOST_POLLS {
        let (bench, lease) = slow_lease(runtime.clone()).await?;
        let extended = poll_up_to(&bench.runtime, polls, lease.extend(LONG)).await;
        should(lease.is_valid(), format_args!("an extension that was dropped ended the lease"))?;
        drop(lease);
        bench.is_clean(&format!("after an extension that was dropped after {polls} polls")).await?;
        if let Some(extended) = extended {
            return extended.during("extending at slow nodes");
        }
        may_go_on(polls)?;
    }
    Ok(())
}

pub(super) async fn release_may_be_dropped<R: Runtime>(runtime: R) -> Outcome {
    for polls in 0..MOST_POLLS {
        let (bench, lease) = slow_lease(runtime.clone()).await?;
        let released = poll_up_to(&bench.runtime, polls, lease.release()).await;
        bench.is_clean(&format!("after a release that was dropped after {polls} polls")).await?;
        if let Some(released) = released {
            return released.during("releasing at slow nodes");
        }
        may_go_on(polls)?;
    }
    Ok(())
}

/// In its task, and on a thread that is none of the runtime's.
pub(super) async fn handle_may_be_dropped<R: Runtime>(runtime: R) -> Outcome {
    let (bench, lease) = slow_lease(runtime).await?;
    drop(lease);
    bench.is_clean("after a lease was dropped").await?;
    let lease = bench.lock().acquire().await.during("acquiring what was dropped")?;
    let elsewhere = thread::Builder::new().spawn(move || drop(lease)).during("starting a thread")?;
    let panicked = |_| Failure::certain("dropping a lease on another thread panicked");
    elsewhere.join().map_err(panicked)?;
    bench.is_clean("after a lease was dropped on another thread").await
}

/// Nodes from which an answer takes a few milliseconds, each way, and from each another number.
fn slow_bench<R: Runtime>(runtime: R, nodes: usize) -> Outcome<Bench<R>> {
    let bench = Bench::new(runtime, nodes, |settings| settings)?;
    for (node, delay) in bench.nodes.iter().zip(1..) {
        node.set_request_delay(ms(delay));
        node.set_reply_delay(ms(delay));
    }
    Ok(bench)
}

async fn slow_lease<R: Runtime>(runtime: R) -> Outcome<(Bench<R>, Lease<R>)> {
    let bench = slow_bench(runtime, 3)?;
    let lease = bench.lock().acquire().await.during("acquiring from slow nodes")?;
    Ok((bench, lease))
}

fn may_go_on(polls: usize) -> Outcome {
    let case = "what takes a few milliseconds had not ended";
    should(polls + 1 < MOST_POLLS, format_args!("{case} after {polls} polls a millisecond apart"))
}

/// Some ten are needed.
const MOST_POLLS: usize = 100;
