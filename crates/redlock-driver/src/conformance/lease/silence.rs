//! Nodes that do not answer, or are not there.

use super::super::outcome::{During as _, Outcome, should};
use super::super::time::{EARLY, LATE, ms, timed};
use super::bench::{Bench, LONG};
use crate::{Error, MemoryServer, NotAcquiredReason, Runtime};

pub(super) async fn silent_quorum_times_out<R: Runtime>(runtime: R) -> Outcome {
    let timeout = ms(60);
    let bench = Bench::new(runtime, 3, |settings| settings.attempts(1).operation_timeout(timeout))?;
    let silent = &bench.nodes[1..];
    let in_time = |what: &str, took| {
        let exact = took + EARLY >= timeout && took <= timeout + LATE;
        should(exact, format_args!("{what} without a quorum took {took:?} where {timeout:?} are allowed"))
    };

    silent.iter().for_each(MemoryServer::hang);
    let (acquired, took) = timed(&bench.runtime, bench.lock().acquire()).await;
    let unreachable = matches!(
        &acquired,
        Err(Error::NotAcquired(failure)) if failure.reason == NotAcquiredReason::Unreachable
    );
    should(unreachable, format_args!("acquiring without a quorum did not end as unreachable: {acquired:?}"))?;
    in_time("acquiring", took)?;
    silent.iter().for_each(MemoryServer::resume);
    bench.is_clean("after an acquire without a quorum").await?;

    let lease = bench.lock().acquire().await.during("acquiring a lease when the nodes answer again")?;
    silent.iter().for_each(MemoryServer::hang);
    let (extended, took) = timed(&bench.runtime, lease.extend(LONG)).await;
    let kept = matches!(&extended, Err(Error::NotExtended(_))) && lease.is_valid();
    should(
        kept,
        format_args!("an extension without a quorum did not leave the lease as it was: {extended:?}"),
    )?;
    in_time("extending", took)?;
    let (released, took) = timed(&bench.runtime, lease.release()).await;
    let unsure = matches!(&released, Err(Error::NotReleased(_)));
    should(unsure, format_args!("a release without a quorum did not end as uncertain: {released:?}"))?;
    in_time("releasing", took)?;
    silent.iter().for_each(MemoryServer::resume);
    bench.is_clean("after a release without a quorum").await
}

pub(super) async fn silent_minority_costs_nothing<R: Runtime>(runtime: R) -> Outcome {
    minority_costs_nothing(runtime, "silent", MemoryServer::hang, MemoryServer::resume).await
}

pub(super) async fn dead_minority_costs_nothing<R: Runtime>(runtime: R) -> Outcome {
    let (die, live) = (|node: &MemoryServer| node.refuse(true), |node: &MemoryServer| node.refuse(false));
    minority_costs_nothing(runtime, "dead", die, live).await
}

async fn minority_costs_nothing<R: Runtime>(
    runtime: R,
    kind: &str,
    harm: impl Fn(&MemoryServer),
    heal: impl Fn(&MemoryServer),
) -> Outcome {
    let bench = Bench::new(runtime, 3, |settings| settings.operation_timeout(ms(1_000)))?;
    let costs_nothing = |what: &str, took| {
        should(took <= LATE, format_args!("with one of three nodes {kind} {what} took {took:?}"))
    };
    harm(&bench.nodes[0]);
    for _ in 0..2 {
        let (acquired, took) = timed(&bench.runtime, bench.lock().acquire()).await;
        let lease = acquired.during("acquiring from two of three nodes")?;
        costs_nothing("acquiring", took)?;
        let (extended, took) = timed(&bench.runtime, lease.extend(LONG)).await;
        extended.during("extending at two of three nodes")?;
        costs_nothing("extending", took)?;
        let (released, took) = timed(&bench.runtime, lease.release()).await;
        released.during("releasing at two of three nodes")?;
        costs_nothing("releasing", took)?;
    }
    heal(&bench.nodes[0]);
    bench.is_clean("after leases at two of three nodes").await
}
