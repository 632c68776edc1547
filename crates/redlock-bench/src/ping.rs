//! The round trip that hand-overs are measured by.

use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;

use crate::Failure;

/// One connection, over which nothing goes but `PING`.
pub(crate) struct Ping(MultiplexedConnection);

impl Ping {
    /// Connects and warms up.
    pub(crate) async fn connect(url: &str) -> Result<Self, Failure> {
        let mut ping = Self(redis::Client::open(url)?.get_multiplexed_async_connection().await?);
        for _ in 0..100 {
            ping.round_trip().await?;
        }
        Ok(ping)
    }

    #[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
    pub(crate) async fn round_trip(&mut self) -> Result<Duration, Failure> {
        let started = Instant::now();
        let _: String = redis::cmd("PING").query_async(&mut self.0).await?;
        Ok(started.elapsed())
    }
}
