//! "Lost by refusal" is said only when a majority of the servers does not have the token: a lease that
//! could have gone on is not given up on old news.

use super::Broken;
use crate::world::{Server, Stage};

pub(super) fn check(stage: &Stage, handle: usize) -> Result<(), Broken> {
    let (key, token) = (stage.key(handle), stage.handles[handle].machine.token().to_hex());
    let has = |server: &&Server| server.value(stage.now, key) == Some(token.as_str());
    let having = stage.servers.iter().filter(has).count();
    if having * 2 > stage.servers.len() {
        let name = stage.name(handle);
        let what = format!("{name} was told that {key} was refused, but {having} servers have it for it");
        return Err(Broken::new("refusal", what));
    }
    Ok(())
}
