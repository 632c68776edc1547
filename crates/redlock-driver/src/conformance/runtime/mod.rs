//! The methods of a runtime, each by itself.

mod clock;
mod sleep;
mod task;

use super::Check;
use crate::Runtime;

pub(super) fn checks<R: Runtime>() -> Vec<Check<R>> {
    vec![
        Check::new(
            "clock::never_goes_back",
            "now() must never be less than an earlier reading",
            clock::never_goes_back,
        ),
        Check::new(
            "clock::moves_on",
            "now() must go on at the pace of real time, or of the test that steers it, and a sleep end when \
             now() has reached its deadline",
            clock::moves_on,
        ),
        Check::new(
            "clock::is_shared_by_clones",
            "all clones of a runtime must count from one epoch",
            clock::is_shared_by_clones,
        ),
        Check::new(
            "clock::works_on_other_threads",
            "now() must work on any thread and say the same on all",
            clock::works_on_other_threads,
        ),
        Check::new(
            "sleep::is_never_early_and_not_late",
            "sleep_until(t) must end when now() is t, at most 2 ms before, and soon after",
            sleep::is_never_early_and_not_late,
        ),
        Check::new(
            "sleep::ends_at_once_when_its_time_is_over",
            "a sleep whose deadline has passed, before or after it was made, must end at once",
            sleep::ends_at_once_when_its_time_is_over,
        ),
        Check::new(
            "sleep::ends_in_order",
            "sleeps must end in the order of their deadlines, whatever the order they were made in",
            sleep::ends_in_order,
        ),
        Check::new(
            "sleep::many_at_once",
            "any number of sleeps may run at once, and none may end more than 2 ms early",
            sleep::many_at_once,
        ),
        Check::new(
            "sleep::wakes_whoever_polled_last",
            "a sleep must wake the task that polled it last, as any future must",
            sleep::wakes_whoever_polled_last,
        ),
        Check::new(
            "sleep::may_be_dropped",
            "a sleep may be dropped at any time, polled or not, and no other sleep may notice",
            sleep::may_be_dropped,
        ),
        Check::new(
            "sleep::may_be_for_ever",
            "a deadline may be as far away as Duration::MAX: the sleep must neither panic nor end",
            sleep::may_be_for_ever,
        ),
        Check::new(
            "task::spawn_does_not_wait",
            "spawn() must return at once and leave the task to the runtime",
            task::spawn_does_not_wait,
        ),
        Check::new(
            "task::runs_to_its_end",
            "a spawned task must run to its end, whether or not anybody waits for it",
            task::runs_to_its_end,
        ),
        Check::new(
            "task::many_run_at_once",
            "a spawned task that waits must not keep others from running",
            task::many_run_at_once,
        ),
        Check::new("task::may_spawn", "spawn() must work within spawned tasks", task::may_spawn),
        Check::new(
            "task::is_woken_from_other_threads",
            "a task must run again when it is woken from a thread that is none of the runtime's",
            task::is_woken_from_other_threads,
        ),
        Check::new(
            "task::panic_stays_inside",
            "a panic in a spawned task must end that task and touch nothing else",
            task::panic_stays_inside,
        ),
        Check::new(
            "task::is_run_or_refused_elsewhere",
            "on a thread of its own spawn() must either run the task or say that it cannot, and drop it",
            task::is_run_or_refused_elsewhere,
        ),
        Check::new(
            "task::runs_where_here_says",
            "here() must say the same in a spawned task as where that was spawned, or nothing in both places",
            task::runs_where_here_says,
        ),
    ]
}
