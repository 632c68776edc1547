//! Looking from time to time whether sentinels still name the server that a connection leads to.
//!
//! A primary that is replaced while it is well goes on taking writes for about ten seconds, until it is told
//! to follow the new one. What a lease is granted or extended there does not count, so that time is to be
//! short.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select;
use tracing::debug;

use super::link::Link;
use super::sentinel::Place;
use super::state::Loss;
use super::target::Target;
use super::{Connect, dial, timing};

/// Starts to look after the connection of this generation, which leads to `place`, for as long as it is in
/// use. When the sentinels name another server it is retired and the link dials anew. That they do not answer
/// means nothing.
pub(super) fn start<R: Connect>(link: &Arc<Link<R>>, generation: u64, place: Option<Place>) {
    let (Target::Sentinel(sentinels), Some(place)) = (link.target().clone(), place) else { return };
    let runtime = link.runtime().clone();
    let closed = link.closed().signal();
    let weak = Arc::downgrade(link);
    let watch = async move {
        let mut kept = None;
        loop {
            timing::pause(&runtime, INTERVAL).await;
            let in_use = || weak.upgrade().and_then(|link| Some((link.in_use(generation)?, link)));
            if in_use().is_none() {
                return;
            }
            let deadline = runtime.now().saturating_add(dial::CONNECT_TIMEOUT);
            let asked =
                timing::by(&runtime, deadline, sentinels.has_moved(&runtime, &mut kept, &place)).await;
            let Some((wire, link)) = in_use() else { return };
            match asked {
                Some(Ok(true)) => return link.replace(&wire, Loss::Moved),
                Some(Ok(false)) => {}
                Some(Err(cause)) => debug!(node = %link.name(), %cause, "no news of the primary"),
                None => debug!(node = %link.name(), "no news of the primary in time"),
            }
        }
    };
    let task = async move {
        let _ = select(pin!(watch), pin!(closed)).await;
    };
    if let Err(error) = link.runtime().spawn(task) {
        debug!(node = %link.name(), %error, "not looking after the primary");
    }
}

/// How often the sentinels are asked.
const INTERVAL: Duration = Duration::from_secs(1);
