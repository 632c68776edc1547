//! Where a connection hands over what its server sends without having been asked.

use std::fmt;
use std::sync::Arc;

use redis::PushInfo;

/// Takes what a server sends unasked. A cheap handle.
#[derive(Clone)]
pub struct Pushes(Arc<dyn Fn(PushInfo) + Send + Sync>);

impl Pushes {
    /// Hands everything to `take`, which must not block.
    #[must_use]
    pub fn new(take: impl Fn(PushInfo) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    /// Hands one message over, in the order in which the server sent them. That a connection has ended is
    /// told as a [`PushKind::Disconnection`](redis::PushKind::Disconnection), where that is noticed.
    pub fn push(&self, message: PushInfo) {
        (self.0)(message);
    }
}

/// As the `redis` crate's connections want it.
#[cfg(feature = "aio")]
impl redis::aio::AsyncPushSender for Pushes {
    fn send(&self, message: PushInfo) -> Result<(), redis::aio::SendError> {
        self.push(message);
        Ok(())
    }
}

impl fmt::Debug for Pushes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pushes").finish_non_exhaustive()
    }
}
