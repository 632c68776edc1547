//! Finding a primary by asking sentinels, each time that a connection is made.
//!
//! A failover raises the epoch that sentinels have for their configuration. What is known of an older epoch
//! than one that was heard of before is not believed, so no sentinel that is behind the times leads back to a
//! primary that was left.
//!
//! The `redis` crate has a client for this, but that one dials by itself, with timeouts and retries of its
//! own, over the runtime that it finds. Here every connection is the adapter's, the deadline is the dial's,
//! and what is found is checked before it is used.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use redis::{Client, ConnectionAddr, RedisError, Value, cmd};
use redlock_core::{Cause, CauseKind, ConfigError, Instant};

use super::target::{dial, dial_with, password};
use super::{Connect, Connection, Pushes, fault, node_name, timing};

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
    /// The latest epoch that a sentinel has spoken of.
    epoch: AtomicU64,
}

/// The server that a connection was made to, by its name.
pub(crate) type Place = Arc<str>;

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
        let (first, epoch) = (AtomicUsize::new(0), AtomicU64::new(0));
        Ok(Self(Arc::new(Inner { service: service.into(), sentinels, primary, first, epoch })))
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
    /// nothing. With `pushes`, the primary's connection is one that listens.
    pub(super) async fn connect<R: Connect>(
        &self,
        runtime: &R,
        deadline: Instant,
        pushes: Option<&Pushes>,
    ) -> Result<(R::Connection, Place), Cause> {
        let Inner { sentinels, first, epoch, .. } = &*self.0;
        let start = first.load(Ordering::Relaxed);
        let mut failures = Vec::new();
        for (asked, index) in (0..sentinels.len()).map(|step| (start + step) % sentinels.len()).enumerate() {
            // Whatever ends this dial, also from outside: another sentinel may know better.
            first.store((index + 1) % sentinels.len(), Ordering::Relaxed);
            let client = &sentinels[index];
            let left = deadline.saturating_since(runtime.now());
            let share = left / u32::try_from(sentinels.len() - asked + 1).unwrap_or(u32::MAX);
            match self.primary(runtime, client, share, pushes).await {
                Ok(found) => {
                    first.store(index, Ordering::Relaxed);
                    return Ok(found);
                }
                Err(cause) => failures.push((node_name(client), cause)),
            }
        }
        // Sentinels that were set up anew begin their epochs anew: if none knows better, they are believed.
        epoch.store(0, Ordering::Relaxed);
        Err(summary(&failures))
    }

    /// The primary according to one sentinel, which may think about it for `limit`.
    async fn primary<R: Connect>(
        &self,
        runtime: &R,
        sentinel: &Client,
        limit: Duration,
        pushes: Option<&Pushes>,
    ) -> Result<(R::Connection, Place), Cause> {
        let until = runtime.now().saturating_add(limit);
        let ask = async { self.ask(&dial(runtime, sentinel).await?, sentinel).await };
        let (host, port) = timing::by(runtime, until, ask)
            .await
            .unwrap_or_else(|| Err(Cause::with_detail(CauseKind::Unreachable, "no answer in time")))?;
        let client = self.client(host, port)?;
        let place = node_name(&client);
        let connection = dial_with(runtime, &client, pushes).await;
        let connection = match connection {
            Ok(connection) => check(&connection, &client).await.map(|()| (connection, Arc::clone(&place))),
            Err(cause) => Err(cause),
        };
        connection.map_err(|cause| {
            let text = format!("its primary {place}: {}", detail(&cause));
            Cause::with_detail(cause.kind(), text)
        })
    }

    /// Asks once more, over the connection that was used for this the last time, if there is one: whether the
    /// primary is another by now than the one at `place`.
    pub(super) async fn has_moved<R: Connect>(
        &self,
        runtime: &R,
        kept: &mut Option<(R::Connection, usize)>,
        place: &Place,
    ) -> Result<bool, Cause> {
        let Inner { sentinels, first, .. } = &*self.0;
        let (connection, index) = match kept.take() {
            Some(kept) => kept,
            None => {
                let index = first.load(Ordering::Relaxed);
                first.store((index + 1) % sentinels.len(), Ordering::Relaxed);
                (dial(runtime, &sentinels[index]).await?, index)
            }
        };
        let (host, port) = self.ask(&connection, &sentinels[index]).await?;
        first.store(index, Ordering::Relaxed);
        *kept = Some((connection, index));
        Ok(node_name(&self.client(host, port)?) != *place)
    }

    /// What a sentinel says. The epoch comes first: should the primary change between the two answers, then
    /// the address is newer than the epoch, which does no harm.
    async fn ask(&self, connection: &impl Connection, sentinel: &Client) -> Result<(String, u16), Cause> {
        let Inner { service, epoch: latest, .. } = &*self.0;
        let unknown =
            || Cause::with_detail(CauseKind::Unreachable, format!("knows no primary called {service}"));
        let question = |name: &str| {
            let mut question = cmd("SENTINEL");
            question.arg(name).arg(&**service);
            question
        };
        let state = call(connection, question("MASTER"), sentinel)
            .await
            .map_err(|cause| if detail(&cause).contains("No such master") { unknown() } else { cause })?;
        let state: BTreeMap<String, String> = read(state)?;
        let epoch = state.get("config-epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
        if latest.fetch_max(epoch, Ordering::Relaxed) > epoch {
            return Err(Cause::with_detail(CauseKind::Unreachable, "is behind the others"));
        }
        let address = call(connection, question("GET-MASTER-ADDR-BY-NAME"), sentinel).await?;
        read::<Option<(String, u16)>>(address)?.ok_or_else(unknown)
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

fn read<T: redis::FromRedisValue>(value: Value) -> Result<T, Cause> {
    redis::from_redis_value(value).map_err(|_| Cause::new(CauseKind::UnexpectedReply))
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
