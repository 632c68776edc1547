//! The life of a lease, undisturbed.

use futures_channel::oneshot;

use super::super::outcome::{During as _, Failure, Outcome, should};
use super::super::time::{by, eventually, ms, pause};
use super::bench::{Bench, LONG};
use crate::Runtime;

pub(super) async fn is_acquired_extended_and_released<R: Runtime>(runtime: R) -> Outcome {
    for nodes in [1, 3, 5] {
        let bench = Bench::new(runtime.clone(), nodes, |settings| settings)?;
        let lease = bench.lock().acquire().await.during("acquiring a lease")?;
        let all = || bench.holders() == nodes;
        eventually(&bench.runtime, ms(500), "the key did not get to all nodes", all).await?;
        let left = lease.valid_for();
        should(
            lease.is_valid() && left < LONG,
            format_args!("a new lease of {LONG:?} is valid for {left:?}"),
        )?;
        lease.extend(2 * LONG).await.during("extending a lease")?;
        let left = lease.valid_for();
        should(left > LONG, format_args!("a lease that was extended is valid for {left:?}"))?;
        lease.release().await.during("releasing a lease")?;
        bench.is_clean("after a release").await?;
    }
    let bench = Bench::new(runtime, 1, |settings| settings)?;
    let fenced = bench.lock().fencing("fence");
    for number in 1..=3 {
        let lease = fenced.acquire().await.during("acquiring a lease with a fencing token")?;
        let token = lease.fencing_token().map(crate::FencingToken::get);
        should(token == Some(number), format_args!("the fencing token number {number} is {token:?}"))?;
        lease.release().await.during("releasing a lease with a fencing token")?;
    }
    Ok(())
}

/// Acquired in one task, released in another.
pub(super) async fn is_used_from_any_task<R: Runtime>(runtime: R) -> Outcome {
    let bench = Bench::new(runtime, 3, |settings| settings)?;
    let lock = bench.lock();
    let (first, acquired) = oneshot::channel();
    let (second, released) = oneshot::channel();
    let acquire = async move {
        let _ = first.send(lock.acquire().await);
    };
    let release = async move {
        let released = match acquired.await {
            Ok(Ok(lease)) => lease.release().await.during("releasing in another task"),
            Ok(Err(error)) => Err(error).during("acquiring in a task"),
            Err(oneshot::Canceled) => Err(Failure::certain("a task was dropped before its end")),
        };
        let _ = second.send(released);
    };
    bench.runtime.spawn(release).during("spawning a task")?;
    bench.runtime.spawn(acquire).during("spawning a task")?;
    released.await.during("waiting for a task that releases")??;
    bench.is_clean("after a release in another task").await
}

pub(super) async fn outlives_its_ttl_by_renewal<R: Runtime>(runtime: R) -> Outcome {
    let ttl = ms(150);
    let bench = Bench::new(runtime, 3, |settings| settings.ttl(ttl).auto_renew(ms(25)))?;
    let lease = bench.lock().acquire().await.during("acquiring a lease")?;
    let lost = by(&bench.runtime, 2 * ttl, lease.lost()).await;
    if let Some(reason) = lost {
        return Err(Failure::likely(format_args!("a lease that is renewed every 25 ms was lost: {reason}")));
    }
    let renewed = bench.manager.stats().renewed;
    should(lease.is_valid(), format_args!("a lease that is renewed every 25 ms is not valid after 300 ms"))?;
    should((2..=12).contains(&renewed), format_args!("a lease was renewed {renewed} times in 300 ms"))?;
    lease.release().await.during("releasing a lease that was renewed")?;
    bench.is_clean("after the release of a lease that was renewed").await?;
    pause(&bench.runtime, ms(60)).await;
    let after = bench.manager.stats().renewed;
    should(after <= renewed + 1, format_args!("renewal went on after the release, {} times", after - renewed))
}
