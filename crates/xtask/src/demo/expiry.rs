//! A lease ends on its holder's clock before anybody else can have it.

use redlock_tokio::{Error, LossReason};
use tokio::time::Instant;

use super::stage::{Stage, check, human};
use super::{Demo, Failure, ms};

pub(super) async fn show(demo: &Demo) -> Result<(), Failure> {
    let stage = Stage::open(
        "3. Expiry: a holder that is cut off knows when to stop",
        &[
            "It cannot renew (here: does not), and nobody tells it anything. Its lease is valid for the ttl of",
            "600 ms, less the time that the acquire took, less a margin for clocks that run unequally fast",
            "(here 5 %). A rival asks every few milliseconds.",
        ],
    );
    let lock = demo.lock("expiry").ttl(ms(600));
    let holder = lock.acquire().await?;
    let end = Instant::now() + holder.valid_for();
    stage.now("holder", format_args!("acquired, valid for {}", human(holder.valid_for())));

    let rival = tokio::spawn(async move {
        let lease = lock.acquire_within(ms(5_000)).await?;
        Ok::<_, Error>((Instant::now(), lease))
    });
    let reason = holder.lost().await;
    stage.now("holder", format_args!("lost: {reason}; told {} after that", human(end.elapsed())));
    let (entry, lease) = rival.await??;
    stage.now("rival", "acquired");
    let margin = entry.saturating_duration_since(end);
    let release = holder.release().await;
    if let Err(error) = &release {
        stage.now("holder", format_args!("releases all the same: {error}"));
    }
    lease.release().await?;

    let told = reason == LossReason::Expired && matches!(release, Err(Error::LockLost(_)));
    let claim = format!("the lease had ended {} before anybody else got in", human(margin));
    check(told && entry > end, &claim)
}
