//! A lease is kept for longer than its ttl.

use redlock_tokio::Error;
use tokio::time::sleep;

use super::nodes::Nodes;
use super::stage::{Stage, check, human};
use super::{Demo, Failure, ms};

pub(super) async fn show(demo: &Demo) -> Result<(), Failure> {
    let stage = Stage::open(
        "2. Renewal: a lease that outlives its ttl",
        &[
            "The ttl is 1 s: if the holder dies, the resource is free after that. While it lives, it renews",
            "its lease every 300 ms. A rival asks from time to time.",
        ],
    );
    let ttl = ms(1_000);
    let lock = demo.lock("renewal").ttl(ttl).auto_renew(ms(300));
    let renewed = demo.manager.stats().renewed;
    let lease = lock.acquire().await?;
    stage.now("holder", format_args!("acquired, valid for {}", human(lease.valid_for())));

    for round in 1..=4 {
        sleep(ms(800)).await;
        match lock.try_acquire().await {
            Err(Error::NotAcquired(failure)) if failure.is_taken() => {
                let left = human(lease.valid_for());
                stage.now(
                    "rival",
                    format_args!("{}; the holder's lease is valid for another {left}", failure.reason),
                );
            }
            Err(error) => return Err(error.into()),
            Ok(_) => return Err("two leases on one resource".into()),
        }
        if let (2, Nodes::Memory(servers)) = (round, &demo.nodes) {
            servers[0].hang();
            servers[1].refuse(true);
            stage.now("nodes", format_args!("{} hangs, {} is down", servers[0].name(), servers[1].name()));
        }
    }
    let renewed = demo.manager.stats().renewed - renewed;
    let held = stage.elapsed();
    lease.release().await?;
    stage.now("holder", format_args!("released after {renewed} renewals"));
    lock.acquire().await?.release().await?;
    stage.now("rival", "got it at the first attempt, and gave it back");
    if let Nodes::Memory(servers) = &demo.nodes {
        servers[0].resume();
        servers[1].refuse(false);
    }

    let claim = match demo.nodes {
        Nodes::Memory(_) => {
            "the lease lasted for as long as it was needed; a minority of bad nodes did not matter"
        }
        Nodes::Real(_) => "the lease lasted for as long as it was needed, and not longer",
    };
    check(held > ttl * 3 && renewed > 3, claim)
}
