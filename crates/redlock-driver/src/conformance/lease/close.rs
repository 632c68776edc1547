//! Managers that close.

use super::super::outcome::{During as _, Failure, Outcome, should};
use super::super::time::{EARLY, LATE, by, ms, timed};
use super::bench::Bench;
use crate::{Error, LossReason, MemoryServer, Renewal, Runtime};

pub(super) async fn manager_closes<R: Runtime>(runtime: R) -> Outcome {
    let bench = Bench::new(runtime, 3, |settings| settings)?;
    let lease = bench.lock().auto_renew(Renewal::ThirdOfTtl).acquire().await.during("acquiring a lease")?;
    let (lost, other) = (lease.lost(), bench.manager.clone());
    let closed = by(&bench.runtime, ms(500) + LATE, other.close()).await;
    closed.ok_or_else(|| Failure::likely("closing a manager did not end"))?;
    bench.is_clean("after the manager was closed").await?;
    should(!lease.is_valid(), format_args!("a lease of a closed manager is valid"))?;
    let reason = by(&bench.runtime, LATE, lost).await;
    should(
        reason == Some(LossReason::Closed),
        format_args!("the lease of a closed manager was lost as {reason:?}"),
    )?;
    let refused = bench.lock().acquire().await.err();
    should(refused == Some(Error::Closed), format_args!("a closed manager answered {refused:?}"))
}

/// The nodes are silent, so there is nothing to wait for but the deadline.
pub(super) async fn manager_closes_in_time<R: Runtime>(runtime: R) -> Outcome {
    let timeout = ms(60);
    let bench = Bench::new(runtime, 3, |settings| settings.operation_timeout(timeout))?;
    let lease = bench.lock().acquire().await.during("acquiring a lease")?;
    bench.each(MemoryServer::hang);
    let ((), took) = timed(&bench.runtime, bench.manager.close()).await;
    let exact = took + EARLY >= timeout && took <= timeout + LATE;
    should(exact, format_args!("closing with silent nodes took {took:?} where {timeout:?} are allowed"))?;
    drop(lease);
    bench.each(MemoryServer::resume);
    bench.is_clean("after a manager closed with silent nodes").await
}
