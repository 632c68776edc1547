//! Keys for servers that others use too.

use std::sync::atomic::{AtomicU64, Ordering};

use super::outcome::{During as _, Outcome};

/// A key that nobody else uses: the process, a number, and something random, for processes on other
/// machines. All share a slot of a cluster.
pub(super) fn key() -> Outcome<String> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let random = getrandom::u64().during("random numbers")?;
    Ok(format!("{{redlock:conformance}}:{}:{number}:{random:016x}", std::process::id()))
}

/// A counter that stays.
pub(super) const FENCE: &str = "{redlock:conformance}:fence";
