//! The promise itself: never two holders at the same true time.
//!
//! A handle holds as long as its machine says so at what its own clock shows. It can begin to hold only
//! by an input, so whoever has just had one is compared with all others, and no moment is missed.

use super::Broken;
use crate::clock::show;
use crate::world::Stage;

pub(super) fn check(stage: &Stage, handle: usize) -> Result<(), Broken> {
    if !stage.is_held(handle) {
        return Ok(());
    }
    let others = stage.handles_of(stage.handles[handle].resource);
    match others.into_iter().find(|other| *other != handle && stage.is_held(*other)) {
        None => Ok(()),
        Some(other) => {
            let claim = |handle: usize| {
                let end = stage.handles[handle].machine.valid_until().unwrap_or_default();
                format!(
                    "{} holds {} until {} ms",
                    stage.name(handle),
                    stage.key(handle),
                    show(stage.when(handle, end))
                )
            };
            Err(Broken::new("exclusion", format!("{}, and {}", claim(other), claim(handle))))
        }
    }
}
