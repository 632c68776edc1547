//! A machine that was told the time and emptied wants to be woken later than now, or never; and what it
//! answers when it is asked is what it said when it was emptied.

use super::{Broken, Drained};
use crate::world::Stage;

pub(super) fn check(stage: &Stage, handle: usize, drained: &Drained) -> Result<(), Broken> {
    let (machine, shown) = (&stage.handles[handle].machine, stage.shown(handle));
    let next = machine.next_timeout();
    let in_the_past = drained.timed && next.is_some_and(|(at, _)| at <= shown);
    let contradicts = next.map(|(at, _)| at) != drained.wait;
    let restless = machine.is_settled() && next.is_some();
    if in_the_past || contradicts || restless {
        let name = stage.name(handle);
        let what =
            format!("{name} wants to be woken at {next:?}, said {:?}, and now is {shown:?}", drained.wait);
        return Err(Broken::new("wakeup", what));
    }
    Ok(())
}
