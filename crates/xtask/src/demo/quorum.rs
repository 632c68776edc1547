//! Nodes fail, and come back.

use redlock_tokio::{Error, Lease, LossReason, MemoryServer};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::nodes::set;
use super::stage::{Stage, check, human};
use super::{Demo, Failure, ms};

/// A rival that asks until it gets the lease, and when that was.
type Rival = JoinHandle<Result<(Instant, Lease), Error>>;

pub(super) async fn show(demo: &Demo, servers: &[MemoryServer]) -> Result<(), Failure> {
    let (end, rival) = lose(demo, servers).await?;
    recover(demo, servers, end, rival).await
}

/// A majority fails. The lease is lost when its validity is over, and not sooner: it may come back.
async fn lose(demo: &Demo, servers: &[MemoryServer]) -> Result<(Instant, Rival), Failure> {
    let stage = Stage::open(
        "4. Lost quorum: a majority of the nodes fails",
        &[
            "The holder renews every 300 ms (ttl 1 s). Then three of the five nodes fail: it cannot renew any",
            "more, and whether it still holds the lease nobody can say but its own clock.",
        ],
    );
    let lock = demo.lock("quorum").ttl(ms(1_000));
    let failed = demo.manager.stats().renewals_failed;
    let holder = lock.clone().auto_renew(ms(300)).acquire().await?;
    stage.now("holder", format_args!("acquired, valid for {}", human(holder.valid_for())));
    sleep(ms(1_050)).await;
    stage.now("holder", format_args!("renewed several times, valid for {}", human(holder.valid_for())));

    servers[0].hang();
    servers[1].hang();
    servers[2].refuse(true);
    let [one, two, three] = [0, 1, 2].map(|index| servers[index].name());
    stage.now("nodes", format_args!("{one} and {two} hang, {three} is down"));
    // A renewal that was under way may still be answered.
    sleep(ms(20)).await;
    let end = Instant::now() + holder.valid_for();

    if let Err(Error::NotAcquired(failure)) = lock.try_acquire().await {
        let message = failure.to_string();
        let mut parts = message.split("; ");
        stage.now("rival", parts.next().unwrap_or_default());
        parts.for_each(|part| stage.more(part));
        stage.more("(three cannot be won any more, so the silent ones were not waited for)");
    }
    let rival = tokio::spawn(async move {
        let lease = lock.acquire_within(ms(5_000)).await?;
        Ok((Instant::now(), lease))
    });
    let reason = holder.lost().await;
    let late = end.elapsed();
    let failed = demo.manager.stats().renewals_failed - failed;
    stage.now("holder", format_args!("lost, after {failed} failed renewals: {reason}"));
    let invalid = !holder.is_valid();
    // At once, so that no key stays for longer than it must.
    let release = holder.release().await;
    if let Err(error) = &release {
        stage.now("holder", format_args!("releases what is left of it: {error}"));
    }

    let told = reason == LossReason::Expired && invalid && matches!(release, Err(Error::LockLost(_)));
    let late = human(late);
    let claim = format!("the holder was told {late} after its deadline, by its own clock; nobody is in");
    check(told && !rival.is_finished(), &claim)?;
    Ok((end, rival))
}

async fn recover(demo: &Demo, servers: &[MemoryServer], end: Instant, rival: Rival) -> Result<(), Failure> {
    let stage = Stage::open(
        "5. Recovery: the nodes come back",
        &[
            "Those that hung now carry out what they were sent meanwhile: old renewals, old deletes. All of it",
            "names an old token, and so changes nothing for a new holder.",
        ],
    );
    servers[0].resume();
    servers[1].resume();
    servers[2].refuse(false);
    let (entry, new) = rival.await??;
    stage.now("rival", "acquired: it had asked all the while");
    // By then, everything that was late has arrived.
    sleep(ms(50)).await;
    let (key, token) = (demo.key("quorum"), new.token().to_hex());
    let stands = servers.iter().filter(|server| server.get(&key).as_deref() == Some(token.as_str())).count();
    stage.now("rival", format_args!("valid for {}, its key stands on {stands} of 5", human(new.valid_for())));
    let sound = entry > end && new.is_valid() && stands >= demo.nodes.quorum();
    let margin = human(entry.saturating_duration_since(end));
    check(
        sound,
        &format!("somebody else got in {margin} after the old lease had ended, and is not disturbed"),
    )?;
    Ok(new.release().await?)
}

/// The same on servers that must come to no harm: only the demo's own key is touched.
pub(super) async fn show_harmlessly(demo: &Demo, urls: &[String]) -> Result<(), Failure> {
    let stage = Stage::open(
        "4. Lost quorum: a majority of the nodes no longer knows the holder",
        &[
            "The servers are yours, so none is stopped. Instead the demo overwrites its own key, as if they had",
            "lost it and given it to somebody else. That breaks what leases rest on: nodes keep their keys.",
        ],
    );
    let key = demo.key("quorum");
    let holder = demo.lock("quorum").ttl(ms(1_000)).auto_renew(ms(300)).acquire().await?;
    stage.now("holder", format_args!("acquired, valid for {}", human(holder.valid_for())));
    sleep(ms(700)).await;
    for url in urls.iter().take(demo.nodes.quorum()) {
        set(url, &key, "somebody else").await?;
    }
    let overwritten = Instant::now();
    stage.now("nodes", format_args!("the key is overwritten on {} of {}", demo.nodes.quorum(), urls.len()));
    let reason = holder.lost().await;
    stage.now("holder", format_args!("lost: {reason}"));
    let claim = format!("the holder was told {} later, by its next renewal", human(overwritten.elapsed()));
    check(reason == LossReason::Refused && !holder.is_valid(), &claim)?;

    Stage::open("5. Recovery: skipped, because none of your servers was stopped", &[]);
    Ok(())
}
