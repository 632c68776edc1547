//! Timers and connections for runtimes of the smol family: async-std, smol, or an executor of one's own.
//!
//! They differ in how a task is spawned and in nothing else, so the rest is here. Its reactor runs on a
//! thread of its own (`async-io`), whichever executor polls the futures.

use std::future::Future;
use std::io;

use futures_util::future::{Either, ready};
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, RedisResult};
use redlock_core::Instant;
use tokio_util::compat::FuturesAsyncReadCompatExt as _;

use crate::aio::dial_settings;
use crate::{AioConnection, Pushes, Runtime};

/// Ends when `runtime` says that it is `deadline`, or a little later.
pub fn sleep_until<R: Runtime>(
    runtime: &R,
    deadline: Instant,
) -> impl Future<Output = ()> + Send + 'static + use<R> {
    let span = deadline.saturating_since(runtime.now());
    // A timer of no length would still take a turn of the reactor.
    if span.is_zero() {
        return Either::Left(ready(()));
    }
    let timer = async_io::Timer::after(span);
    Either::Right(async {
        timer.await;
    })
}

/// Dials the server of `client` and runs the connection as a task of `runtime`.
///
/// The stream is ours, so that the `redis` crate is never asked to find out which runtime it is on: it
/// would prefer tokio when another part of the program has asked for that, and then panic here. The one
/// exception is TLS, which only its own dialling offers.
pub fn connect<R: Runtime>(
    runtime: &R,
    client: &Client,
) -> impl Future<Output = RedisResult<AioConnection<MultiplexedConnection>>> + Send + 'static + use<R> {
    let dialled = dial(runtime, client, dial_settings());
    async { dialled.await.map(Into::into) }
}

/// The same, for a connection that hands to `pushes` what the server sends unasked.
pub fn connect_listening<R: Runtime>(
    runtime: &R,
    client: &Client,
    pushes: Pushes,
) -> impl Future<Output = RedisResult<Option<AioConnection<MultiplexedConnection>>>> + Send + 'static + use<R>
{
    let dialled = dial(runtime, client, dial_settings().set_push_sender(pushes));
    async { dialled.await.map(|connection| Some(connection.into())) }
}

fn dial<R: Runtime>(
    runtime: &R,
    client: &Client,
    settings: AsyncConnectionConfig,
) -> impl Future<Output = RedisResult<MultiplexedConnection>> + Send + 'static + use<R> {
    let (runtime, client) = (runtime.clone(), client.clone());
    async move {
        let info = client.get_connection_info();
        match info.addr() {
            ConnectionAddr::Tcp(host, port) => {
                let stream = async_net::TcpStream::connect((host.as_str(), *port)).await?;
                set_options(&stream, info.tcp_settings())?;
                over(&runtime, &client, stream, settings).await
            }
            #[cfg(unix)]
            ConnectionAddr::Unix(path) => {
                over(&runtime, &client, async_net::unix::UnixStream::connect(path).await?, settings).await
            }
            _ => client.get_multiplexed_async_connection_with_config(&settings).await,
        }
    }
}

fn set_options(stream: &async_net::TcpStream, settings: &TcpSettings) -> io::Result<()> {
    stream.set_nodelay(settings.nodelay())
}

async fn over<R: Runtime>(
    runtime: &R,
    client: &Client,
    stream: impl futures_util::io::AsyncRead + futures_util::io::AsyncWrite + Unpin + Send + 'static,
    config: AsyncConnectionConfig,
) -> RedisResult<MultiplexedConnection> {
    let settings = client.get_connection_info().redis_settings();
    let (connection, driver) =
        MultiplexedConnection::new_with_config(settings, stream.compat(), config).await?;
    runtime.spawn(driver).map_err(io::Error::other)?;
    Ok(connection)
}
