//! A lease at the server, which is what all of this is for.

use redis::{Value, cmd};

use super::super::key::key;
use super::super::outcome::{During as _, Outcome, must, should};
use super::bench::{Bench, LONG, ask};
use crate::{Config, Connect, Error, Manager};

pub(super) async fn carries_a_lease<R: Connect>(bench: Bench<R>) -> Outcome {
    let (key, fence) = (key()?, key()?);
    let watcher = bench.connect().await?;
    let config = Config::builder().ttl(LONG).attempts(1).build().during("settings")?;
    let manager = Manager::single_on(bench.runtime.clone(), &*bench.url, config).during("a manager")?;
    let lock = manager.lock(&*key).fencing(&*fence);
    let lease = lock.acquire().await.during("acquiring a lease")?;
    let value = ask(&watcher, cmd("GET").arg(&key)).await.during("GET")?;
    let token = Value::BulkString(lease.token().to_hex().as_str().into());
    must(value == token, format_args!("the key of a lease did not have the token for its value"))?;
    let number = lease.fencing_token().map(crate::FencingToken::get);
    must(number == Some(1), format_args!("the first fencing token was {number:?}"))?;
    let refused = lock.acquire().await;
    let taken = matches!(&refused, Err(Error::NotAcquired(failure)) if failure.is_taken());
    should(taken, format_args!("acquiring what is held was answered {refused:?}"))?;
    lease.extend(2 * LONG).await.during("extending a lease")?;
    lease.release().await.during("releasing a lease")?;
    let value = ask(&watcher, cmd("GET").arg(&key)).await.during("GET")?;
    must(value == Value::Nil, format_args!("a lease that was released left its key"))?;
    manager.close().await;
    ask(&watcher, cmd("DEL").arg(&fence)).await.during("DEL").map(|_| ())
}
