//! What no lease can do without: the bare commands.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Script, Value};
use tokio::time::timeout;

use crate::exit::{Code, Failure};
use crate::nodes::Target;
use crate::status::connect;

/// One connection for each node that can be reached, and the commands that stand for a lease.
pub(super) struct Floor {
    nodes: Vec<MultiplexedConnection>,
    required: usize,
    acquire: Cmd,
    release: Cmd,
}

impl Floor {
    /// Connects, and loads the script that a release needs.
    pub(super) async fn connect(
        targets: &[Target],
        limit: Duration,
        key: &str,
        ttl: Duration,
    ) -> Result<Self, Failure> {
        let script = Script::new(COMPARE_AND_DELETE);
        let ready = join_all(targets.iter().map(|target| {
            let load = async {
                let mut connection = connect(&target.client).await.ok()?;
                script.prepare_invoke().load_async(&mut connection).await.ok()?;
                Some(connection)
            };
            async move { timeout(limit, load).await.ok().flatten() }
        }));
        let nodes: Vec<MultiplexedConnection> = ready.await.into_iter().flatten().collect();
        let required = targets.len() / 2 + 1;
        if nodes.len() < required {
            let message =
                format!("{} of {} nodes can be reached; {required} are needed", nodes.len(), targets.len());
            return Err(Failure::new(Code::UNREACHABLE, message));
        }
        let mut acquire = redis::cmd("SET");
        acquire
            .arg(key)
            .arg(TOKEN)
            .arg("NX")
            .arg("PX")
            .arg(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        let mut release = redis::cmd("EVALSHA");
        release.arg(script.get_hash()).arg(1).arg(key).arg(TOKEN);
        Ok(Self { nodes, required, acquire, release })
    }

    /// The name of the key is free again, at every node, when this returns.
    pub(super) async fn cycle(&self, clock: impl Fn() -> Duration) -> Result<[Duration; 2], Failure> {
        let started = clock();
        let late_acquires = self.until_quorum(&self.acquire, &Value::Okay).await?;
        let acquired = clock();
        let late_releases = self.until_quorum(&self.release, &Value::Int(1)).await?;
        let released = clock();
        // Not part of the time, but not part of the next cycle's either.
        late_acquires.collect::<Vec<_>>().await;
        late_releases.collect::<Vec<_>>().await;
        Ok([acquired.saturating_sub(started), released.saturating_sub(acquired)])
    }

    /// Sends the command to all nodes at once, and returns when a quorum has answered as it should: the
    /// answers that are still to come.
    async fn until_quorum<'a>(
        &self,
        command: &'a Cmd,
        yes: &Value,
    ) -> Result<FuturesUnordered<impl Future<Output = redis::RedisResult<Value>> + use<'a>>, Failure> {
        let mut answers: FuturesUnordered<_> = self
            .nodes
            .iter()
            .map(|connection| {
                let mut connection = connection.clone();
                async move { connection.send_packed_command(command).await }
            })
            .collect();
        let mut agreed = 0;
        while let Some(answer) = answers.next().await {
            agreed += usize::from(answer.is_ok_and(|answer| answer == *yes));
            if agreed == self.required {
                return Ok(answers);
            }
        }
        Err(Failure::new(Code::UNREACHABLE, "the bare commands did not reach a quorum"))
    }
}

const TOKEN: &str = "the floor of a benchmark";

const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
