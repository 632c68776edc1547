//! Leases that end before they are released.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_channel::oneshot;
use futures_util::future::{join, join_all};

use super::super::outcome::{During as _, Outcome, must, should};
use super::super::time::{LATE, by, ms};
use super::bench::Bench;
use crate::{Lease, LockLost, LossReason, MemoryServer, Runtime};

pub(super) async fn ends_at_its_deadline<R: Runtime>(runtime: R) -> Outcome {
    let bench = Bench::new(runtime, 3, |settings| settings.ttl(ms(100)))?;
    let lease = bench.lock().acquire().await.during("acquiring a lease")?;
    expires_in_time(&bench, &lease).await
}

/// Nobody answers, and no answer is needed.
pub(super) async fn ends_although_it_is_renewed<R: Runtime>(runtime: R) -> Outcome {
    let bench = Bench::new(runtime, 3, |settings| settings.ttl(ms(120)).auto_renew(ms(30)))?;
    let lease = bench.lock().acquire().await.during("acquiring a lease")?;
    bench.each(MemoryServer::hang);
    expires_in_time(&bench, &lease).await?;
    drop(lease);
    bench.each(MemoryServer::resume);
    bench.is_clean("after a lease that nobody renewed").await
}

async fn expires_in_time<R: Runtime>(bench: &Bench<R>, lease: &Lease<R>) -> Outcome {
    let runtime = &bench.runtime;
    let deadline = runtime.now().saturating_add(lease.valid_for());
    // Beside a sleep to the same deadline, which a machine under load makes just as late.
    let lost = async {
        let reason = lease.lost().await;
        (reason, runtime.now())
    };
    let control = async {
        runtime.sleep_until(deadline).await;
        runtime.now()
    };
    let ((reason, ended), control) = join(lost, control).await;
    should(reason == LossReason::Expired, format_args!("a lease whose time was up was lost, but: {reason}"))?;
    must(!lease.is_valid(), format_args!("a lease that was lost is valid"))?;
    let early = deadline.saturating_since(ended);
    must(early.is_zero(), format_args!("a lease was lost {early:?} before its validity was over"))?;
    let late = ended.saturating_since(deadline.max(control));
    should(late <= LATE, format_args!("a lease was lost {late:?} after its validity was over"))
}

pub(super) async fn loss_is_heard_by_all<R: Runtime>(runtime: R) -> Outcome {
    let bench = Bench::new(runtime, 3, |settings| settings.ttl(ms(60)))?;
    let lease = bench.lock().acquire().await.during("acquiring a lease")?;
    let mut heard = Vec::new();
    for _ in 0..5 {
        let (sender, receiver) = oneshot::channel();
        let lost = lease.lost().clone();
        let listen = async move {
            let _ = sender.send(lost.await);
        };
        bench.runtime.spawn(listen).during("spawning a task")?;
        heard.push(receiver);
    }
    let reasons = by(&bench.runtime, ms(60) + LATE, join_all(heard)).await;
    let all = reasons.iter().flatten().filter(|reason| **reason == Ok(LossReason::Expired)).count();
    should(all == 5, format_args!("of five tasks that waited for the loss of a lease {all} heard of it"))?;
    let late = by(&bench.runtime, LATE, lease.lost()).await;
    should(late == Some(LossReason::Expired), format_args!("who asked after the loss was told {late:?}"))?;
    drop(lease);

    let lease = bench.lock().acquire().await.during("acquiring a lease that had expired")?;
    let lost = lease.lost();
    drop(lease);
    let reason = by(&bench.runtime, LATE, lost).await;
    should(
        reason == Some(LossReason::Closed),
        format_args!("who waited for a dropped lease was told {reason:?}"),
    )?;
    bench.is_clean("after a lease was dropped").await?;

    let lease = bench.lock().acquire().await.during("acquiring a lease that was dropped")?;
    let lost = lease.lost();
    lease.release().await.during("releasing a lease")?;
    let none = by(&bench.runtime, ms(10), lost).await;
    should(none.is_none(), format_args!("a release was told as a loss: {none:?}"))
}

pub(super) async fn work_ends_with_it<R: Runtime>(runtime: R) -> Outcome {
    let bench = Bench::new(runtime, 3, |settings| settings.ttl(ms(60)))?;
    let lease = bench.lock().acquire().await.during("acquiring a lease")?;
    let stopped = Arc::new(AtomicBool::new(false));
    let flag = SetOnDrop(Arc::clone(&stopped));
    let work = async move {
        let _flag = flag;
        pending::<()>().await;
    };
    let ended = by(&bench.runtime, ms(60) + LATE, lease.run(work)).await;
    let lost = Some(Err(LockLost { reason: LossReason::Expired }));
    should(ended == lost, format_args!("work under a lease of 60 ms ended after 160 ms as {ended:?}"))?;
    must(stopped.load(Ordering::Acquire), format_args!("work was not dropped when its lease was lost"))
}

struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
