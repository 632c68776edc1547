//! Finding a primary by asking sentinels, each time that a connection is made.
//!
//! The `redis` crate has a client for this, but that one dials by itself, with timeouts and retries of its
//! own, over the runtime that it finds. Here every connection is the adapter's, the deadline is the dial's,
//! and what is found is checked before it is used.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::{Client, ConnectionAddr, RedisError, Value, cmd};
use redlock_core::{Cause, CauseKind, ConfigError, Instant};

use super::target::{dial, password};
use super::{Connect, Connection, fault, node_name, timing};

/// The sentinels of one primary. Clones share what was learned.
#[derive(Clone)]
pub(crate) struct Sentinels(Arc<Inner>);

struct Inner {
    /// What the sentinels call the primary.
    service: Box<str>,
    sentinels: Vec<Client>,
    /// How to connect to the primary, wherever it is.
    primary: Client,
    /// Which sentinel is asked first: the one that was right the last time.
    first: AtomicUsize,
}

impl Sentinels {
    /// Sentinels to ask for the primary that they call `service`. It is connected to like `primary`, but for
    /// host and port. Does no I/O.
    ///
    /// # Errors
    /// [`ConfigError::InvalidNode`] without a sentinel or a name, and for a `primary` that is a Unix socket.
    pub(crate) fn new(service: &str, sentinels: Vec<Client>, primary: Client) -> Result<Self, ConfigError> {
        let invalid = |reason: &str| ConfigError::InvalidNode { node: service.into(), reason: reason.into() };
        if service.is_empty() {
            return Err(invalid("the name by which the sentinels know the primary is empty"));
        }
        if sentinels.is_empty() {
            return Err(invalid("no sentinel is given"));
        }
        match primary.get_connection_info().addr() {
            ConnectionAddr::Tcp(..) | ConnectionAddr::TcpTls { .. } => {}
            _ => {
                return Err(invalid(
                    "sentinels name hosts and ports, so the primary cannot be a Unix socket",
                ));
            }
        }
        let first = AtomicUsize::new(0);
        Ok(Self(Arc::new(Inner { service: service.into(), sentinels, primary, first })))
    }

    /// The name in reports: `service@host:port,host:port`. The same for the same sentinels in any order.
    pub(crate) fn name(&self) -> Arc<str> {
        let mut sentinels: Vec<_> = self.0.sentinels.iter().map(node_name).collect();
        sentinels.sort();
        sentinels.dedup();
        format!("{}@{}", self.0.service, sentinels.join(",")).into()
    }

    /// Asks one sentinel after the other for the primary, connects to it, and makes sure that it is one.
    ///
    /// A sentinel that does not answer may take its share of the time until `deadline`, no more; the primary
    /// may take all that is left then. The next dial begins with another sentinel if this one came to
    /// nothing.
    pub(super) async fn connect<R: Connect>(
        &self,
        runtime: &R,
        deadline: Instant,
    ) -> Result<R::Connection, Cause> {
        let Inner { sentinels, first, .. } = &*self.0;
        let start = first.load(Ordering::Relaxed);
        let mut failures = Vec::new();
        for (asked, index) in (0..sentinels.len()).map(|step| (start + step) % sentinels.len()).enumerate() {
            // Whatever ends this dial, also from outside: another sentinel may know better.
            first.store((index + 1) % sentinels.len(), Ordering::Relaxed);
            let client = &sentinels[index];
            let left = deadline.saturating_since(runtime.now());
            let share = left / u32::try_from(sentinels.len() - asked + 1).unwrap_or(u32::MAX);
            match self.primary(runtime, client, share).await {
                Ok(connection) => {
                    first.store(index, Ordering::Relaxed);
                    return Ok(connection);
                }
                Err(cause) => failures.push((node_name(client), cause)),
            }
        }
        Err(summary(&failures))
    }

    /// The primary according to one sentinel, which may think about it for `limit`.
    async fn primary<R: Connect>(
        &self,
        runtime: &R,
        sentinel: &Client,
        limit: Duration,
    ) -> Result<R::Connection, Cause> {
        let until = runtime.now().saturating_add(limit);
        let (host, port) = timing::by(runtime, until, self.ask(runtime, sentinel))
            .await
            .unwrap_or_else(|| Err(Cause::with_detail(CauseKind::Unreachable, "no answer in time")))?;
        let client = self.client(host, port)?;
        let connection = dial(runtime, &client).await;
        let connection = match connection {
            Ok(connection) => check(&connection, &client).await.map(|()| connection),
            Err(cause) => Err(cause),
        };
        connection.map_err(|cause| {
            let text = format!("its primary {}: {}", node_name(&client), detail(&cause));
            Cause::with_detail(cause.kind(), text)
        })
    }

    /// What one sentinel says.
    async fn ask<R: Connect>(&self, runtime: &R, sentinel: &Client) -> Result<(String, u16), Cause> {
        let connection = dial(runtime, sentinel).await?;
        let mut question = cmd("SENTINEL");
        question.arg("GET-MASTER-ADDR-BY-NAME").arg(&*self.0.service);
        let answer = call(&connection, question, sentinel).await?;
        match redis::from_redis_value::<Option<(String, u16)>>(answer) {
            Ok(Some(address)) => Ok(address),
            Ok(None) => Err(Cause::with_detail(
                CauseKind::Unreachable,
                format!("knows no primary called {}", self.0.service),
            )),
            Err(_) => Err(Cause::new(CauseKind::UnexpectedReply)),
        }
    }

    /// A client for the primary at this address.
    fn client(&self, host: String, port: u16) -> Result<Client, Cause> {
        let info = self.0.primary.get_connection_info().clone();
        let address = match info.addr() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
            }
            _ => ConnectionAddr::Tcp(host, port),
        };
        Client::open(info.set_addr(address))
            .map_err(|error| fault::of_connect(&error, password(&self.0.primary)))
    }
}

impl fmt::Debug for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sentinels").field(&self.name()).finish()
    }
}

/// Sentinels may be behind the times, and a server may have been told meanwhile to follow another.
async fn check(connection: &impl Connection, client: &Client) -> Result<(), Cause> {
    match call(connection, cmd("ROLE"), client).await? {
        Value::Array(role) => match role.first() {
            Some(Value::BulkString(word)) if word == b"master" => Ok(()),
            _ => Err(Cause::with_detail(CauseKind::Unreachable, "is not a primary")),
        },
        _ => Err(Cause::new(CauseKind::UnexpectedReply)),
    }
}

async fn call(connection: &impl Connection, question: redis::Cmd, client: &Client) -> Result<Value, Cause> {
    let answer = connection.call(question).await.and_then(Value::extract_error);
    answer.map_err(|error: RedisError| fault::of_connect(&error, password(client)))
}

/// Why none of the sentinels could help, one after the other.
fn summary(failures: &[(Arc<str>, Cause)]) -> Cause {
    let rejected = failures.iter().all(|(_, cause)| cause.kind() == CauseKind::Rejected);
    let kind = if rejected { CauseKind::Rejected } else { CauseKind::Unreachable };
    let texts: Vec<_> =
        failures.iter().map(|(name, cause)| format!("sentinel {name}: {}", detail(cause))).collect();
    Cause::with_detail(kind, texts.join("; "))
}

fn detail(cause: &Cause) -> String {
    cause.detail().map_or_else(|| cause.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests;
