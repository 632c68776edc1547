//! Asking one server about itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, RedisError, Value, cmd};
use redlock_core::{Cause, CauseKind, Instant};

use super::facts::ServerFacts;
use crate::Connection;

/// Reads the clock of whoever asks.
pub(crate) type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// What came of asking one node: see [`NodeFacts::server`](super::NodeFacts::server).
pub(crate) type Survey = Result<Option<ServerFacts>, Cause>;

/// Asks over a connection that is not used for anything else meanwhile, or may be shared. Only `INFO` must
/// be answered; what else a user may not ask stays unknown.
pub(crate) async fn survey(clock: Clock, connection: impl Connection) -> Survey {
    let connection = &connection;
    let info = connection.call(cmd("INFO")).await.and_then(server_error).map_err(|error| cause(&error))?;
    let info: String = redis::from_redis_value(info).map_err(|_| Cause::new(CauseKind::UnexpectedReply))?;
    let mut facts = ServerFacts::from_info(&info);

    let asked = clock();
    if let Some((seconds, micros)) = ask::<(u64, u32)>(connection, cmd("TIME")).await {
        let answered = clock();
        facts.round_trip = answered.saturating_since(asked);
        let read = asked.since_epoch() + facts.round_trip / 2;
        let wall = Duration::new(seconds, micros.saturating_mul(1_000).min(999_999_999));
        facts.clock = wall.saturating_sub(read);
    }

    facts.snapshots = setting(connection, "save").await.map(|save| !save.is_empty());
    facts.appendfsync = setting(connection, "appendfsync").await;

    if info.lines().any(|line| line.trim_end() == "cluster_enabled:1") {
        let mut nodes = cmd("CLUSTER");
        nodes.arg("NODES");
        let nodes = ask::<String>(connection, nodes).await.unwrap_or_default();
        facts.cluster = members(&nodes);
    }
    Ok(Some(facts))
}

async fn setting(connection: &impl Connection, name: &str) -> Option<String> {
    let mut question = cmd("CONFIG");
    question.arg("GET").arg(name);
    ask::<Vec<String>>(connection, question).await?.into_iter().nth(1)
}

async fn ask<T: redis::FromRedisValue>(connection: &impl Connection, question: Cmd) -> Option<T> {
    let answer = connection.call(question).await.ok()?;
    redis::from_redis_value(answer).ok()
}

/// Server errors come as values.
pub(crate) fn server_error(value: Value) -> Result<Value, RedisError> {
    value.extract_error()
}

/// Why there is no answer. The text of a server's error is its own; `INFO` has no argument that could be
/// repeated in it.
fn cause(error: &RedisError) -> Cause {
    match error.code() {
        Some(code) => {
            Cause::with_detail(CauseKind::Server, format!("{code} {}", error.detail().unwrap_or("")))
        }
        None if error.is_timeout() => Cause::new(CauseKind::Timeout),
        None => Cause::new(CauseKind::Disconnected),
    }
}

/// The first word of each line of `CLUSTER NODES` is a member's id.
fn members(nodes: &str) -> BTreeSet<String> {
    nodes
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|id| !id.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_a_cluster_are_the_first_words() {
        let nodes = "07c3 127.0.0.1:30004@31004 slave e7d1 0 1 4 connected\ne7d1 127.0.0.1:30001@31001 myself,master - 0 0 1 connected 0-5460\n";
        assert_eq!(members(nodes), ["07c3", "e7d1"].map(str::to_owned).into());
        assert!(members("").is_empty());
    }
}
