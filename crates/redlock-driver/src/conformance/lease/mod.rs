//! Leases on nodes in memory, with the runtime underneath.

mod bench;
mod cancel;
mod close;
mod contention;
mod cycle;
mod loss;
mod restart;
mod silence;

use super::Check;
use crate::Runtime;

/// What is wrong when the runtime's methods pass by themselves and a lease on it fails is seldom one of
/// them alone.
const TOGETHER: &str = "now(), sleep_until() and spawn() must go together so that a task which waits for \
                        several sleeps and answers at once sees each when it comes";

const CLEAN: &str = "a future that is dropped must leave the task behind it running, which takes back what was \
                     asked for";

const DEADLINE: &str = "a sleep must end at its deadline although nothing else happens";

pub(super) fn checks<R: Runtime>() -> Vec<Check<R>> {
    vec![
        Check::new(
            "lease::is_acquired_extended_and_released",
            TOGETHER,
            cycle::is_acquired_extended_and_released,
        ),
        Check::new("lease::is_used_from_any_task", TOGETHER, cycle::is_used_from_any_task),
        Check::new("lease::outlives_its_ttl_by_renewal", TOGETHER, cycle::outlives_its_ttl_by_renewal),
        Check::new("lease::goes_to_the_one_who_waits", TOGETHER, contention::goes_to_the_one_who_waits),
        Check::new("lease::is_never_shared", TOGETHER, contention::is_never_shared),
        Check::new("lease::silent_quorum_times_out", DEADLINE, silence::silent_quorum_times_out),
        Check::new("lease::silent_minority_costs_nothing", TOGETHER, silence::silent_minority_costs_nothing),
        Check::new("lease::dead_minority_costs_nothing", TOGETHER, silence::dead_minority_costs_nothing),
        Check::new("lease::acquire_may_be_dropped", CLEAN, cancel::acquire_may_be_dropped),
        Check::new("lease::extend_may_be_dropped", CLEAN, cancel::extend_may_be_dropped),
        Check::new("lease::release_may_be_dropped", CLEAN, cancel::release_may_be_dropped),
        Check::new("lease::handle_may_be_dropped", CLEAN, cancel::handle_may_be_dropped),
        Check::new("lease::refusing_node_comes_back", TOGETHER, restart::refusing_node_comes_back),
        Check::new("lease::restarted_node_has_forgotten", TOGETHER, restart::restarted_node_has_forgotten),
        Check::new("lease::restart_breaks_an_attempt", TOGETHER, restart::restart_breaks_an_attempt),
        Check::new("lease::ends_at_its_deadline", DEADLINE, loss::ends_at_its_deadline),
        Check::new("lease::ends_although_it_is_renewed", DEADLINE, loss::ends_although_it_is_renewed),
        Check::new("lease::loss_is_heard_by_all", TOGETHER, loss::loss_is_heard_by_all),
        Check::new("lease::work_ends_with_it", DEADLINE, loss::work_ends_with_it),
        Check::new("lease::manager_closes", TOGETHER, close::manager_closes),
        Check::new("lease::manager_closes_in_time", DEADLINE, close::manager_closes_in_time),
    ]
}
