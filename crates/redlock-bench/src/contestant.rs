//! Who is measured: the bare commands, this library, another one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisResult, Script, Value};
use redlock_tokio::{Config, Manager};
use rslock::LockManager;

use crate::Failure;

/// The lease that all ask for.
pub(crate) const TTL: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub(crate) enum Contestant {
    Floor(Arc<Floor>),
    Redlock(Manager),
    Rslock(LockManager),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Floor,
    Redlock,
    Rslock,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Redlock => "redlock",
            Self::Rslock => "rslock",
        }
    }
}

/// A manager with the default settings on these nodes.
pub(crate) fn manager(urls: &[String]) -> Result<Manager, Failure> {
    Ok(match urls {
        [url] => Manager::single(url.as_str(), Config::default())?,
        urls => Manager::redlock(urls.iter().map(String::as_str), Config::default())?,
    })
}

impl Contestant {
    pub(crate) async fn all(urls: &[String]) -> Result<Vec<Self>, Failure> {
        Ok(vec![
            Self::Floor(Arc::new(Floor::connect(urls).await?)),
            Self::Redlock(manager(urls)?),
            Self::Rslock(LockManager::new(urls.to_vec())),
        ])
    }

    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::Floor(_) => Kind::Floor,
            Self::Redlock(_) => Kind::Redlock,
            Self::Rslock(_) => Kind::Rslock,
        }
    }

    /// Acquires and releases once; the time that each took.
    #[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
    pub(crate) async fn cycle(&self, resource: &str, late: &mut Late) -> Result<[Duration; 2], Failure> {
        let started = Instant::now();
        match self {
            Self::Floor(floor) => {
                let acquires = floor.acquire(resource).await?;
                let acquired = started.elapsed();
                let releases = floor.release(resource).await?;
                *late = [acquires, releases];
                Ok([acquired, started.elapsed() - acquired])
            }
            Self::Redlock(manager) => {
                let lease = manager.lock(resource).acquire().await?;
                let acquired = started.elapsed();
                lease.release().await?;
                Ok([acquired, started.elapsed() - acquired])
            }
            Self::Rslock(manager) => {
                let lock = manager
                    .lock(resource.as_bytes(), TTL)
                    .await
                    .map_err(|error| format!("rslock: {error:?}"))?;
                let acquired = started.elapsed();
                manager.unlock(&lock).await;
                Ok([acquired, started.elapsed() - acquired])
            }
        }
    }
}

/// The bare commands, in parallel to all nodes, on one multiplexed connection each.
pub(crate) struct Floor {
    nodes: Vec<MultiplexedConnection>,
    release: Script,
}

impl Floor {
    async fn connect(urls: &[String]) -> Result<Self, Failure> {
        let release = Script::new(
            "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0",
        );
        let mut nodes = Vec::with_capacity(urls.len());
        for url in urls {
            let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
            let client = redis::Client::open(url.as_str())?;
            let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
            release.prepare_invoke().load_async(&mut connection).await?;
            nodes.push(connection);
        }
        Ok(Self { nodes, release })
    }

    async fn acquire(&self, resource: &str) -> Result<Answers, Failure> {
        let mut command = redis::cmd("SET");
        command.arg(resource).arg(TOKEN).arg("NX").arg("PX").arg(30_000);
        self.until_quorum(command, &Value::Okay).await
    }

    async fn release(&self, resource: &str) -> Result<Answers, Failure> {
        let mut command = redis::cmd("EVALSHA");
        command.arg(self.release.get_hash()).arg(1).arg(resource).arg(TOKEN);
        self.until_quorum(command, &Value::Int(1)).await
    }

    /// Sends the command to all nodes at once, and returns when a quorum has answered as it should: the
    /// answers that are still to come.
    async fn until_quorum(&self, command: Cmd, yes: &Value) -> Result<Answers, Failure> {
        let command = Arc::new(command);
        let mut answers: Answers = (self.nodes.iter())
            .map(|connection| {
                let (mut connection, command) = (connection.clone(), Arc::clone(&command));
                async move { connection.send_packed_command(&command).await }.boxed()
            })
            .collect();
        let mut agreed = 0;
        while let Some(answer) = answers.next().await {
            agreed += usize::from(answer.is_ok_and(|answer| answer == *yes));
            if agreed > self.nodes.len() / 2 {
                return Ok(answers);
            }
        }
        Err("the bare commands did not reach a quorum".into())
    }
}

type Answers = FuturesUnordered<BoxFuture<'static, RedisResult<Value>>>;

/// Answers that a cycle did not wait for. A command whose answer nobody waits for any more may not be sent at
/// all, and would leave its key behind, so they are kept for as long as another cycle takes.
pub(crate) type Late = [Answers; 2];

/// As long as a token of a lease.
const TOKEN: &str = "0123456789abcdef0123456789abcdef01234567";
