//! What the promise rests on: a majority of the servers has the holder's token, and will have it until
//! the end of its lease.
//!
//! Keys go by themselves only when they expire, so it is enough to look after each input and each
//! command: between these, no majority can crumble that was to last. A server that lost its data and
//! stays away still counts with the keys that it had, since it gives them to nobody else.

use super::Broken;
use crate::clock::show;
use crate::world::{Server, Stage};

pub(super) fn check(stage: &Stage, handle: usize) -> Result<(), Broken> {
    if !stage.is_held(handle) {
        return Ok(());
    }
    let machine = &stage.handles[handle].machine;
    let end = machine.valid_until().map_or(0, |end| stage.when(handle, end));
    let (key, token) = (stage.key(handle), machine.token().to_hex());
    let keeps = |server: &&Server| {
        server.value(stage.now, key) == Some(token.as_str())
            && server.stays_until(stage.now, key).is_some_and(|until| until >= end)
    };
    let kept = stage.servers.iter().filter(keeps).count();
    if kept * 2 <= stage.servers.len() {
        let name = stage.name(handle);
        let what = format!("{name} holds {key} until {} ms, but only {kept} servers do so for it", show(end));
        return Err(Broken::new("backing", what));
    }
    Ok(())
}
