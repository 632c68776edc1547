//! Where a link dials: a server whose address is known, or one that sentinels name.

use std::sync::Arc;

use redlock_core::{Cause, Instant};

use super::sentinel::{Place, Sentinels};
use super::{Connect, fault};

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
        match self {
            Self::Server(client) => dial(runtime, client).await.map(|connection| (connection, None)),
            Self::Sentinel(sentinels) => {
                let (connection, place) = sentinels.connect(runtime, deadline).await?;
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

/// What must not turn up in the text of an error.
pub(super) fn password(client: &redis::Client) -> Option<&str> {
    client.get_connection_info().redis_settings().password()
}
