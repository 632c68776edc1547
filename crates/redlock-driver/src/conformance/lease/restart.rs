//! Nodes that go and come back.

use futures_util::future::join;

use super::super::outcome::{During as _, Failure, Outcome, must, should};
use super::super::time::{by, eventually, ms, pause};
use super::bench::{Bench, LONG, RESOURCE};
use crate::{Error, LockLost, LossReason, Runtime};

pub(super) async fn refusing_node_comes_back<R: Runtime>(runtime: R) -> Outcome {
    let bench = Bench::new(runtime, 3, |settings| settings.attempts(1))?;
    for back in [false, true, false, true] {
        bench.nodes[0].refuse(!back);
        let nodes = if back { 3 } else { 2 };
        let lease = bench.lock().acquire().await.during("acquiring while a node comes and goes")?;
        let all = || bench.holders() == nodes;
        eventually(&bench.runtime, ms(500), "the key did not get to every node that is there", all).await?;
        lease.release().await.during("releasing while a node comes and goes")?;
        bench.is_clean("while a node comes and goes").await?;
    }
    bench.each(|node| node.refuse(true));
    let refused = bench.lock().acquire().await;
    must(refused.is_err(), format_args!("a lease was acquired of nodes that are not there"))?;
    bench.each(|node| node.refuse(false));
    bench
        .lock()
        .acquire()
        .await
        .during("acquiring when all nodes are back")?
        .release()
        .await
        .during("releasing")
}

pub(super) async fn restarted_node_has_forgotten<R: Runtime>(runtime: R) -> Outcome {
    let bench = Bench::new(runtime, 3, |settings| settings)?;
    let lease = bench.lock().acquire().await.during("acquiring a lease")?;
    let all = || bench.holders() == 3;
    eventually(&bench.runtime, ms(500), "the key did not get to all nodes", all).await?;
    bench.nodes[0].restart_empty();
    lease.extend(LONG).await.during("extending when one of three nodes has forgotten")?;
    let created = bench.nodes[0].get(RESOURCE).is_some();
    must(!created, format_args!("an extension created a key"))?;
    bench.nodes[1].restart_empty();
    let refused = lease.extend(LONG).await;
    let lost = Err(Error::LockLost(LockLost { reason: LossReason::Refused }));
    should(
        refused == lost,
        format_args!("when two of three nodes had forgotten extending ended as {refused:?}"),
    )?;
    let reason = by(&bench.runtime, ms(500), lease.lost()).await;
    let heard = reason == Some(LossReason::Refused);
    should(heard, format_args!("the loss of a lease that was refused was told as {reason:?}"))?;
    drop(lease);
    bench.is_clean("after two of three nodes had forgotten").await
}

/// The answer is on its way when the node breaks; the next attempt gets the lease.
pub(super) async fn restart_breaks_an_attempt<R: Runtime>(runtime: R) -> Outcome {
    let bench = Bench::new(runtime, 1, |settings| settings.attempts(3).retry_delay(ms(5)))?;
    let node = &bench.nodes[0];
    node.set_reply_delay(ms(200));
    let lock = bench.lock();
    let (lease, ()) = join(by(&bench.runtime, ms(150), lock.acquire()), async {
        pause(&bench.runtime, ms(10)).await;
        node.set_reply_delay(ms(0));
        node.restart_empty();
    })
    .await;
    let lease = lease.ok_or_else(|| Failure::likely("the attempt after a broken one was not made"))?;
    let lease = lease.during("acquiring from a node that breaks once")?;
    let failed = bench.manager.stats().attempts_failed;
    should(failed == 1, format_args!("a node that breaks once made {failed} attempts fail"))?;
    lease.release().await.during("releasing at a node that broke once")?;
    bench.is_clean("after a node broke once").await
}
