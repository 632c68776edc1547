//! A server, and what the checks ask of it.

use std::sync::Arc;
use std::time::Duration;

use redis::{Client, Cmd, RedisError, RedisResult, Value, cmd, from_redis_value};

use super::super::outcome::{During as _, Failure, Outcome};
use super::super::time::by;
use crate::{Connect, Connection};

/// The runtime and the address of the server.
pub(super) struct Bench<R> {
    pub(super) runtime: R,
    pub(super) client: Client,
    pub(super) url: Arc<str>,
}

impl<R: Connect> Bench<R> {
    pub(super) fn new(runtime: R, url: &Arc<str>) -> Outcome<Self> {
        // The error might repeat a password.
        let unusable = |_| Failure::certain("the url that the suite was given is none");
        let client = Client::open(&**url).map_err(unusable)?;
        Ok(Self { runtime, client, url: Arc::clone(url) })
    }

    pub(super) async fn connect(&self) -> Outcome<R::Connection> {
        let connection = by(&self.runtime, GENEROUS, self.runtime.connect(&self.client)).await;
        let connection = connection.ok_or_else(|| Failure::likely("connecting to the server did not end"))?;
        connection.during("connecting to the server")
    }
}

/// A command's answer, with a server's error as an error wherever it was.
pub(super) async fn ask<C: Connection>(connection: &C, command: &Cmd) -> RedisResult<Value> {
    flat(connection.call(command.clone()).await)
}

pub(super) fn flat(answer: RedisResult<Value>) -> RedisResult<Value> {
    match answer {
        Ok(Value::ServerError(error)) => Err(RedisError::from(error)),
        other => other,
    }
}

pub(super) async fn number<C: Connection>(connection: &C, command: &Cmd) -> Outcome<i64> {
    let number = ask(connection, command).await.during("asking for a number")?;
    from_redis_value(number).during("asking for a number")
}

/// The server's number of the connection.
pub(super) async fn id<C: Connection>(connection: &C) -> Outcome<i64> {
    number(connection, cmd("CLIENT").arg("ID")).await
}

pub(super) fn echo(text: &str) -> Cmd {
    cmd("ECHO").arg(text).to_owned()
}

pub(super) fn is_text(answer: &RedisResult<Value>, text: &str) -> bool {
    matches!(answer, Ok(Value::BulkString(bytes)) if bytes == text.as_bytes())
}

/// A command that the server answers with nil after this time. It holds up its connection and no other.
pub(super) fn slow(key: &str, span: Duration) -> Cmd {
    cmd("BLPOP").arg(key).arg(span.as_secs_f64()).to_owned()
}

/// How long what should take no time may take, before it is said never to come.
pub(super) const GENEROUS: Duration = Duration::from_secs(2);

/// A ttl that does not end while a check runs.
pub(super) const LONG: Duration = Duration::from_secs(30);
