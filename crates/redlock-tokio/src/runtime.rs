//! What is tokio's in all of this.

use std::future::Future;

use redis::aio::MultiplexedConnection;
use redis::{Client, RedisResult};
use redlock_driver::{
    AioConnection, Connect, Instant, NotRunning, Pushes, Runtime, SuspendAwareClock, dial_settings,
};
use tokio::runtime::Handle;

/// The tokio runtime, as leases use it: whichever is current where a lease is asked for.
///
/// Its clock is tokio's, so a test that pauses time can run hours of renewals in milliseconds; plus the
/// time that the machine was suspended, which tokio's does not count and a Redis server does.
#[derive(Clone, Debug)]
pub struct Tokio {
    epoch: tokio::time::Instant,
    suspension: SuspendAwareClock,
}

impl Default for Tokio {
    /// A handle whose epoch is now. Needs no running runtime.
    fn default() -> Self {
        Self { epoch: tokio::time::Instant::now(), suspension: SuspendAwareClock::new() }
    }
}

impl Runtime for Tokio {
    fn now(&self) -> Instant {
        let now = tokio::time::Instant::now();
        let awake = now.saturating_duration_since(self.epoch);
        Instant::from_epoch(awake.saturating_add(self.suspension.suspended(now.into_std())))
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + Send + 'static {
        tokio::time::sleep(deadline.saturating_since(self.now()))
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<(), NotRunning> {
        // Not `tokio::spawn`, which panics where no runtime is. The task is detached by dropping its handle.
        Handle::try_current().map(|handle| drop(handle.spawn(task))).map_err(|_| NotRunning)
    }

    fn here(&self) -> Option<impl Eq + Send + Sync + 'static> {
        Handle::try_current().map(|handle| handle.id()).ok()
    }
}

impl Connect for Tokio {
    type Connection = AioConnection<MultiplexedConnection>;

    fn connect(
        &self,
        client: &Client,
    ) -> impl Future<Output = RedisResult<Self::Connection>> + Send + 'static {
        let client = client.clone();
        async move { client.get_multiplexed_async_connection_with_config(&dial_settings()).await.map(Into::into) }
    }

    fn connect_listening(
        &self,
        client: &Client,
        pushes: Pushes,
    ) -> impl Future<Output = RedisResult<Option<Self::Connection>>> + Send + 'static {
        let client = client.clone();
        async move {
            let settings = dial_settings().set_push_sender(pushes);
            let connection = client.get_multiplexed_async_connection_with_config(&settings).await?;
            Ok(Some(connection.into()))
        }
    }
}
