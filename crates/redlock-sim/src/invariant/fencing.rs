//! Fencing tokens grow from each acquisition of a resource to the next, as long as the one server that
//! they come from keeps its data.

use redlock_core::FencingToken;

use super::Broken;
use crate::options::RESOURCES;
use crate::world::Stage;

#[derive(Debug, Default)]
pub(super) struct Fencing {
    last: [Option<FencingToken>; RESOURCES],
}

impl Fencing {
    pub(super) fn acquired(
        &mut self,
        stage: &Stage,
        handle: usize,
        token: FencingToken,
    ) -> Result<(), Broken> {
        let last = &mut self.last[stage.handles[handle].resource];
        if let Some(last) = *last
            && token <= last
        {
            let what = format!("{} got fencing token {token} after {last}", stage.name(handle));
            return Err(Broken::new("fencing", what));
        }
        *last = Some(token);
        Ok(())
    }

    /// The server has lost its counters.
    pub(super) fn forget(&mut self) {
        self.last = Default::default();
    }
}
