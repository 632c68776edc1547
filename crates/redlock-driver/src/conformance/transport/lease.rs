//! A lease at the node, which is what all of this is for.

use std::future::Future;
use std::sync::Arc;

use redlock_core::Vote;

use super::super::key::{FENCE, key};
use super::super::outcome::{During as _, Outcome, must, should};
use super::super::time::{LATE, eventually};
use super::bench::{Bench, GENEROUS, LONG, set, token};
use crate::{Command, Config, Error, Fault, Manager, Node, Reply, Runtime, Transport};

pub(super) async fn carries_a_lease<R: Runtime, T: Transport>(bench: Bench<R, T>) -> Outcome {
    let config =
        Config::builder().ttl(LONG).operation_timeout(GENEROUS).attempts(1).build().during("settings")?;
    let node = Node::transport("conformance", Same(Arc::clone(&bench.transport)));
    let manager = Manager::single_on(bench.runtime.clone(), node, config).during("a manager")?;
    for fenced in [false, true] {
        let key = key()?;
        let mut lock = manager.lock(&*key);
        if fenced {
            lock = lock.fencing(FENCE);
        }
        let lease = lock.acquire().await.during("acquiring a lease")?;
        must(
            lease.fencing_token().is_some() == fenced,
            format_args!("a lease has a fencing token, or should"),
        )?;
        let refused = lock.acquire().await;
        let taken = matches!(&refused, Err(Error::NotAcquired(failure)) if failure.is_taken());
        should(taken, format_args!("acquiring what is held was answered {refused:?}"))?;
        lease.extend(LONG).await.during("extending a lease")?;
        lease.release().await.during("releasing a lease")?;

        drop(lock.acquire().await.during("acquiring a lease that was released")?);
        let settled = || manager.stats().running == 0;
        eventually(&bench.runtime, GENEROUS + LATE, "a lease that was dropped was not given back", settled)
            .await?;
        let free = bench.vote(&key, set(token()?, GENEROUS)?).await?;
        must(free == Vote::Yes(None), format_args!("a lease that was dropped left its key"))?;
    }
    manager.close().await;
    Ok(())
}

/// The transport, shared with the manager.
struct Same<T>(Arc<T>);

impl<T: Transport> Transport for Same<T> {
    fn send(&self, command: &Command) -> impl Future<Output = Result<Reply, Fault>> + Send + 'static {
        self.0.send(command)
    }
}
