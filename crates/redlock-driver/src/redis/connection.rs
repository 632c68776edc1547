//! What an adapter brings: a way to connect, and a connection.

use std::future::Future;

use futures_util::future::join_all;

use super::Pushes;
use super::backlog::MOST_OTHERS;
use crate::Runtime;

/// The most commands that are ever unanswered on one connection.
pub const MAX_UNANSWERED: usize = 4 * MOST_OTHERS;

/// A runtime that can connect to a Redis server.
pub trait Connect: Runtime {
    /// What [`connect`](Self::connect) yields.
    type Connection: Connection;

    /// Dials one connection, handshake included. It needs no timeout of its own and must not retry: the
    /// caller does both. Dropping the future gives the attempt up.
    ///
    /// The connection must have no response timeout either, and must never send a command again by
    /// itself. And it must have room for [`MAX_UNANSWERED`] commands before it makes one wait for its
    /// place: with the `redis` crate's usual buffer of 50, commands that wait for a place in it
    /// overtake each other. So a connection of that crate is configured with
    /// `set_response_timeout(None)` and `set_pipeline_buffer_size(MAX_UNANSWERED)`.
    fn connect(
        &self,
        client: &redis::Client,
    ) -> impl Future<Output = redis::RedisResult<Self::Connection>> + Send + 'static;

    /// Dials one connection that hands to `pushes` what the server sends unasked, and is otherwise like one of
    /// [`connect`](Self::connect). The client's settings ask for RESP3.
    ///
    /// It is what callers who wait for a lease are woken by, and there is no need for it: `None`, which is all
    /// that the provided method does, means that they wait by asking again and again.
    fn connect_listening(
        &self,
        _client: &redis::Client,
        _pushes: Pushes,
    ) -> impl Future<Output = redis::RedisResult<Option<Self::Connection>>> + Send + 'static {
        std::future::ready(Ok(None))
    }
}

/// One connection, shared by all clones of the value.
///
/// Commands are carried out first in, first out, in the order in which the futures of
/// [`call`](Self::call) are first polled. What a connection cannot promise of this, such as one to a
/// cluster, costs no safety, only a key that may stay behind until it expires.
pub trait Connection: Clone + Send + Sync + 'static {
    /// Sends one command and waits for its answer. A server's error may come as `Err` or inside the
    /// `Ok`. Dropping the future may or may not keep the command from being carried out.
    fn call(
        &self,
        command: redis::Cmd,
    ) -> impl Future<Output = redis::RedisResult<redis::Value>> + Send + 'static;

    /// Sends several commands, one behind the other, and waits for the answers to all of them, which come in
    /// the same order. A server's error is one of the answers. An `Err` stands for all: what became of any of
    /// the commands is unknown.
    ///
    /// This is what makes many leases cheap: a connection that can write all of it in one go should. The
    /// provided method calls [`call`](Self::call) for each.
    fn call_all(
        &self,
        commands: redis::Pipeline,
    ) -> impl Future<Output = redis::RedisResult<Vec<redis::Value>>> + Send + 'static {
        let calls: Vec<_> = commands.cmd_iter().map(|command| self.call(command.clone())).collect();
        async move {
            let answers = join_all(calls).await;
            answers.into_iter().map(|answer| answer.or_else(server_error)).collect()
        }
    }
}

/// A server's error as the answer that it is.
fn server_error(error: redis::RedisError) -> redis::RedisResult<redis::Value> {
    redis::ServerError::try_from(error).map(redis::Value::ServerError)
}

/// Any cloneable asynchronous connection of the `redis` crate as a [`Connection`].
///
/// A connection that repeats commands by itself must be told not to: to a cluster, with `retries(0)`.
/// A buffer of [`MAX_UNANSWERED`] commands keeps them in order under load, which the usual one of 50
/// does not.
#[cfg(feature = "aio")]
#[derive(Clone, Debug)]
pub struct AioConnection<C>(C);

#[cfg(feature = "aio")]
impl<C> From<C> for AioConnection<C> {
    fn from(connection: C) -> Self {
        Self(connection)
    }
}

#[cfg(feature = "aio")]
impl<C> Connection for AioConnection<C>
where
    C: redis::aio::ConnectionLike + Clone + Send + Sync + 'static,
{
    fn call(
        &self,
        command: redis::Cmd,
    ) -> impl Future<Output = redis::RedisResult<redis::Value>> + Send + 'static {
        let mut connection = self.0.clone();
        async move { connection.req_packed_command(&command).await }
    }

    fn call_all(
        &self,
        commands: redis::Pipeline,
    ) -> impl Future<Output = redis::RedisResult<Vec<redis::Value>>> + Send + 'static {
        let mut connection = self.0.clone();
        async move { connection.req_packed_commands(&commands, 0, commands.len()).await }
    }
}
