//! Where a link dials: a server whose address is known, or one that sentinels name.

use std::sync::Arc;

use redlock_core::{Cause, CauseKind, Instant};

use super::sentinel::{Place, Sentinels};
use super::{Connect, Pushes, fault};

/// What a link dials, whenever it needs a connection.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// This server.
    Server(Arc<redis::Client>),
    /// Whichever server the sentinels call the primary just then.
    Sentinel(Sentinels),
}

impl Target {
    /// Dials one connection, and says where it leads if that may change. It is the caller who gives up at
    /// `deadline`; here it only says how much time there is to share out.
    pub(crate) async fn connect<R: Connect>(
        &self,
        runtime: &R,
        deadline: Instant,
    ) -> Result<(R::Connection, Option<Place>), Cause> {
        self.reach(runtime, deadline, None).await
    }

    /// The same, for one that speaks RESP3 and hands to `pushes` what the server sends unasked.
    pub(crate) async fn connect_listening<R: Connect>(
        &self,
        runtime: &R,
        deadline: Instant,
        pushes: &Pushes,
    ) -> Result<R::Connection, Cause> {
        self.reach(runtime, deadline, Some(pushes)).await.map(|(connection, _)| connection)
    }

    async fn reach<R: Connect>(
        &self,
        runtime: &R,
        deadline: Instant,
        pushes: Option<&Pushes>,
    ) -> Result<(R::Connection, Option<Place>), Cause> {
        match self {
            Self::Server(client) => {
                dial_with(runtime, client, pushes).await.map(|connection| (connection, None))
            }
            Self::Sentinel(sentinels) => {
                let (connection, place) = sentinels.connect(runtime, deadline, pushes).await?;
                Ok((connection, Some(place)))
            }
        }
    }
}

impl From<redis::Client> for Target {
    fn from(client: redis::Client) -> Self {
        Self::Server(Arc::new(client))
    }
}

/// One connection to the server of `client`.
pub(super) async fn dial<R: Connect>(runtime: &R, client: &redis::Client) -> Result<R::Connection, Cause> {
    runtime.connect(client).await.map_err(|error| fault::of_connect(&error, password(client)))
}

/// The same, if `pushes` are wanted as a connection that listens.
pub(super) async fn dial_with<R: Connect>(
    runtime: &R,
    client: &redis::Client,
    pushes: Option<&Pushes>,
) -> Result<R::Connection, Cause> {
    let Some(pushes) = pushes else { return dial(runtime, client).await };
    let explain = |error: redis::RedisError| fault::of_connect(&error, password(client));
    let info = client.get_connection_info().clone();
    let settings = info.redis_settings().clone().set_protocol(redis::ProtocolVersion::RESP3);
    let speaking = redis::Client::open(info.set_redis_settings(settings)).map_err(explain)?;
    let connection = runtime.connect_listening(&speaking, pushes.clone()).await.map_err(explain)?;
    connection
        .ok_or_else(|| Cause::with_detail(CauseKind::Rejected, "this runtime's connections do not listen"))
}

/// What must not turn up in the text of an error.
pub(super) fn password(client: &redis::Client) -> Option<&str> {
    client.get_connection_info().redis_settings().password()
}
