//! A lock's key always has an end, no further away than a ttl; and in the end it is gone.

use redlock_core::Pttl;

use super::Broken;
use crate::world::Stage;

pub(super) fn check(stage: &Stage, server: usize, key: &str, longest_ttl: u64) -> Result<(), Broken> {
    match stage.servers[server].pttl(stage.now, key) {
        Pttl::NoKey => Ok(()),
        Pttl::Expires(left) if left.as_nanos() <= longest_ttl.into() => Ok(()),
        odd @ (Pttl::Expires(_) | Pttl::NoExpiry) => {
            Err(Broken::new("expiry", format!("{key} at server {server} has this to live: {odd:?}")))
        }
    }
}

pub(super) fn gone(stage: &Stage, handle: usize) -> Result<(), Broken> {
    let key = stage.key(handle);
    match stage.servers.iter().position(|server| server.value(stage.now, key).is_some()) {
        None => Ok(()),
        Some(server) => {
            Err(Broken::new("expiry", format!("{key} at server {server} has outlived everything")))
        }
    }
}
