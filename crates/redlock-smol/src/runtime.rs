//! What is smol's in all of this: how a task is spawned.

use std::future::Future;

use redis::aio::MultiplexedConnection;
use redis::{Client, RedisResult};
use redlock_driver::{
    AioConnection, Connect, Instant, NotRunning, Pushes, Runtime, SuspendAwareClock, contained, smol_io,
};

/// smol's global executor. It starts by itself where it is first used, so a lease can be asked for anywhere.
///
/// Its clock goes on while the machine is suspended, as the servers do.
#[derive(Clone, Debug, Default)]
pub struct Smol {
    clock: SuspendAwareClock,
}

impl Runtime for Smol {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + Send + 'static {
        smol_io::sleep_until(self, deadline)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<(), NotRunning> {
        smol::spawn(contained(task)).detach();
        Ok(())
    }

    fn here(&self) -> Option<impl Eq + Send + Sync + 'static> {
        // There is one, everywhere.
        Some(())
    }
}

impl Connect for Smol {
    type Connection = AioConnection<MultiplexedConnection>;

    fn connect(
        &self,
        client: &Client,
    ) -> impl Future<Output = RedisResult<Self::Connection>> + Send + 'static {
        smol_io::connect(self, client)
    }

    fn connect_listening(
        &self,
        client: &Client,
        pushes: Pushes,
    ) -> impl Future<Output = RedisResult<Option<Self::Connection>>> + Send + 'static {
        smol_io::connect_listening(self, client, pushes)
    }
}
