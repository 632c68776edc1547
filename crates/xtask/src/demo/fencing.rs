//! Fencing tokens, and the resource that checks them.

use redlock_tokio::{Error, FencingToken};
use tokio::time::sleep;

use super::nodes::{Nodes, set};
use super::stage::{Stage, check};
use super::{Demo, Failure, ms};

pub(super) async fn show(demo: &Demo) -> Result<(), Failure> {
    let stage = Stage::open(
        "6. Fencing: a stale writer",
        &[
            "A process can be paused between its look at the lease and its write, for longer than the ttl. No",
            "lock can help that. The resource can: each holder has a number that is higher than the last one's",
            "(its fencing token), and the resource refuses lower ones than it has seen.",
        ],
    );
    if demo.nodes.count() > 1 {
        refuse_many_nodes(demo, &stage).await?;
    }
    let fence = demo.key("guarded-fence");
    if let Nodes::Real(urls) = &demo.nodes {
        // Counts on from here, and is gone in a minute even if the demo is interrupted.
        set(urls.first().ok_or("no node")?, &fence, "0").await?;
    }
    let lock = demo.fenced.lock(demo.key("guarded")).ttl(ms(300)).fencing(fence);
    let mut resource = Resource::default();

    let first = lock.acquire().await?;
    let first_token = first.fencing_token().ok_or("no fencing token")?;
    let valid = first.is_valid();
    stage.now("first", format_args!("acquired with token {first_token}; valid: {valid}; paused"));
    let second = lock.acquire_within(ms(5_000)).await?;
    let second_token = second.fencing_token().ok_or("no fencing token")?;
    stage.now("second", format_args!("acquired with token {second_token}, as the first key has expired"));
    stage.now("second", resource.write("second", second_token));
    second.release().await?;
    sleep(ms(50)).await;
    stage.now("first", format_args!("goes on; {}", resource.write("first", first_token)));

    check(
        resource.unguarded == "first" && resource.guarded == "second" && second_token > first_token,
        "a resource without this check now has the stale value; the one with it has kept the newer one",
    )
}

/// Counters on independent nodes know nothing of each other, so there is nothing to count with.
async fn refuse_many_nodes(demo: &Demo, stage: &Stage) -> Result<(), Failure> {
    match demo.lock("guarded").fencing(demo.key("guarded-fence")).acquire().await {
        Err(error @ Error::FencingUnsupported(_)) => {
            stage.now("all", format_args!("{error}"));
            stage.more("so from here on one node is used, alone");
            Ok(())
        }
        Err(error) => Err(error.into()),
        Ok(_) => Err("a fencing token from several nodes".into()),
    }
}

/// Twice the same register, with a guard and without.
#[derive(Default)]
struct Resource {
    guarded: &'static str,
    highest: Option<FencingToken>,
    unguarded: &'static str,
}

impl Resource {
    fn write(&mut self, value: &'static str, token: FencingToken) -> String {
        self.unguarded = value;
        // None, as nothing was written yet, is lower than any token.
        if Some(token) < self.highest {
            return format!("writes with token {token}: REFUSED");
        }
        (self.guarded, self.highest) = (value, Some(token));
        format!("writes with token {token}: done")
    }
}
