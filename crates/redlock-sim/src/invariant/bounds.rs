//! What one input can lead to: a bounded number of outputs, nothing at all when a request is refused,
//! and a later end of the lease only with the event that says so.

use redlock_core::{Instant, LeaseMachine};

use super::Broken;
use crate::world::Stage;

/// What a machine said after some inputs.
#[derive(Debug, Default)]
pub(crate) struct Drained {
    pub(crate) inputs: usize,
    /// So many of the inputs were hints.
    pub(crate) hints: usize,
    pub(crate) outputs: usize,
    pub(crate) commands: usize,
    /// A quorum granted something.
    pub(crate) granted: bool,
    /// The last input told the time.
    pub(crate) timed: bool,
    /// The one input was a request that the state did not allow.
    pub(crate) refused: bool,
    /// The one input was to give up.
    pub(crate) abandoned: bool,
    /// Until when it wants to be left alone.
    pub(crate) wait: Option<Instant>,
}

#[derive(Debug, Default)]
pub(super) struct Bounds {
    /// When each handle's lease was to end, before the inputs.
    ends: Vec<Option<Instant>>,
}

impl Bounds {
    pub(super) fn begin(&mut self, handle: usize) {
        self.ends.resize(self.ends.len().max(handle + 1), None);
        self.ends[handle] = None;
    }

    pub(super) fn before_input(&mut self, handle: usize, machine: &LeaseMachine) {
        self.ends[handle] = machine.valid_until();
    }

    pub(super) fn check(&mut self, stage: &Stage, handle: usize, drained: &Drained) -> Result<(), Broken> {
        let machine = &stage.handles[handle].machine;
        let most = drained.inputs * LeaseMachine::max_outputs(machine.spec().nodes().len());
        if drained.outputs > most {
            return Err(broken(stage, handle, format!("{} outputs, more than {most}", drained.outputs)));
        }
        if drained.refused && drained.commands > 0 {
            return Err(broken(stage, handle, "commands of a request that was refused".to_owned()));
        }
        if drained.hints == drained.inputs && drained.granted {
            return Err(broken(stage, handle, "hints alone have granted something".to_owned()));
        }
        let after = machine.valid_until();
        let before = std::mem::replace(&mut self.ends[handle], after);
        if after > before && !drained.granted {
            return Err(broken(
                stage,
                handle,
                format!("the end moved from {before:?} to {after:?} by itself"),
            ));
        }
        Ok(())
    }
}

fn broken(stage: &Stage, handle: usize, what: String) -> Broken {
    Broken::new("bounds", format!("{}: {what}", stage.name(handle)))
}
