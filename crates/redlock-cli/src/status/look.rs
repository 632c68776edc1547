//! Asking each node itself who holds a resource.

use std::time::Duration;

use futures_util::future::{join_all, try_join};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, RedisError};
use tokio::time::timeout;

use crate::nodes::Target;

/// Looks at the nodes, over connections that it keeps.
pub(crate) struct Observer {
    nodes: Vec<Node>,
    timeout: Duration,
}

struct Node {
    target: Target,
    connection: Option<MultiplexedConnection>,
}

/// What one node has said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sight {
    pub(crate) node: String,
    /// The key's content; none if there is no key; or why the node has not said.
    pub(crate) seen: Result<Option<Holding>, String>,
}

/// A key that stands for the resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holding {
    /// Its value, without what could harm a terminal.
    pub(crate) token: String,
    /// How long it has left; none if it never ends, which no lease does.
    pub(crate) left: Option<Duration>,
}

impl Observer {
    /// An observer that waits so long for each answer.
    pub(crate) fn new(targets: &[Target], timeout: Duration) -> Self {
        let nodes = targets.iter().map(|target| Node { target: target.clone(), connection: None });
        Self { nodes: nodes.collect(), timeout }
    }

    /// Looks at all nodes at once.
    pub(crate) async fn look(&mut self, resource: &str) -> Vec<Sight> {
        let limit = self.timeout;
        join_all(self.nodes.iter_mut().map(|node| async move {
            let seen = match timeout(limit, node.look(resource)).await {
                Ok(Ok(seen)) => Ok(seen),
                Ok(Err(error)) => Err(node.reason(&error)),
                Err(_) => Err(format!("no answer in {limit:?}")),
            };
            if seen.is_err() {
                // Whatever is wrong with it: the next look takes another.
                node.connection = None;
            }
            Sight { node: node.target.name.clone(), seen }
        }))
        .await
    }
}

impl Node {
    async fn look(&mut self, resource: &str) -> Result<Option<Holding>, RedisError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.target.client).await?,
        };
        let (mut value_of, mut left_of) = (redis::cmd("GET"), redis::cmd("PTTL"));
        let mut second = connection.clone();
        // Two commands rather than a pipeline, whose errors do not say which of them was refused or why. They
        // go out together all the same.
        let (value, left) = try_join(
            value_of.arg(resource).query_async::<Option<Vec<u8>>>(&mut connection),
            left_of.arg(resource).query_async::<i64>(&mut second),
        )
        .await?;
        self.connection = Some(connection);
        Ok(value.map(|value| Holding {
            token: value.escape_ascii().to_string(),
            left: u64::try_from(left).ok().map(Duration::from_millis),
        }))
    }

    /// What went wrong, without what could be a secret.
    fn reason(&self, error: &RedisError) -> String {
        let text = match (error.code(), error.detail()) {
            (Some(code), Some(detail)) => format!("{code} {detail}"),
            (Some(code), None) => code.to_owned(),
            (None, _) if error.is_connection_refusal() => "connection refused".to_owned(),
            (None, _) if error.kind() == ErrorKind::Io => format!("unreachable: {error}"),
            (None, _) => error.category().to_owned(),
        };
        // Some servers repeat what they do not understand, a password too.
        let info = self.target.client.get_connection_info();
        match info.redis_settings().password() {
            Some(password) if text.contains(password) => "the server refused the connection".to_owned(),
            _ => text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect(),
        }
    }
}

/// A connection without limits of its own: whoever waits for it has one.
pub(crate) async fn connect(client: &redis::Client) -> Result<MultiplexedConnection, RedisError> {
    let settings = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
    client.get_multiplexed_async_connection_with_config(&settings).await
}
