//! What every adapter must do on real servers: written once, run through each.
//!
//! Each test is a function over an [`Adapter`], in a file named for what it is about. The [`suite!`] macro
//! makes `#[test]`s of all of them for one adapter, so that no adapter can leave one out.
//!
//! The names `a1` to `a20` are those of cases that went wrong for users of some lock library; each says
//! what a user does and what must come of it.
//!
//! [`suite!`]: macro@crate::suite

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::unused_async,
    missing_docs,
    reason = "these are tests: they fail by panicking, and their names say what they test"
)]

mod support;

pub mod access;
pub mod acquire;
pub mod addresses;
pub mod broken_network;
pub mod broken_node;
pub mod cancel;
pub mod cluster;
pub mod compare;
pub mod connection;
pub mod exclusion;
pub mod hostile;
pub mod refusal;
pub mod release;
pub mod renewal;
pub mod restart;
pub mod sentinel;
pub mod settings;
pub mod sick_node;
pub mod topology;
pub mod waking;
pub mod work;

pub use support::Adapter;

/// Makes a test of every function of the suite, for one adapter and one way to block on a future.
///
/// ```ignore
/// redlock_tests::suite!(Tokio, block_on);
/// ```
#[macro_export]
macro_rules! suite {
    ($adapter:ty, $block_on:path) => {
        $crate::suite! { @module $adapter, $block_on,
            acquire: [
                a2_too_few_nodes_answer,
                a3_a_late_set_is_taken_back,
                a4_a_dead_node_costs_nothing_but_its_vote,
                a6_the_four_ways_to_fail_are_told_apart,
                a9_only_odd_sets_and_a_tie_settles,
                a10_one_node_has_one_vote,
                a11_no_pause_is_no_busy_loop,
                a20_a_dead_node_on_the_fast_path,
                a_lease_on_one_node_and_on_three,
                fencing_tokens_increase,
                fencing_is_refused_on_independent_nodes,
                a18_a_waiting_contender_gets_its_turn,
                callers_of_one_manager_are_served_in_the_order_of_coming,
            ]
        }
        $crate::suite! { @module $adapter, $block_on,
            release: [
                a1_release_after_expiry,
                a8_a_release_cut_short_is_a_release,
                a16_a_foreign_key_at_release_is_a_loss,
                a19_a_release_does_not_overtake_its_stragglers,
                a_release_with_a_node_down_succeeds,
                another_owners_key_is_left_alone,
            ]
        }
        $crate::suite! { @module $adapter, $block_on,
            renewal: [
                a7_renewal_ends_with_the_release,
                a13_renewal_costs_what_it_should,
                an_extension_needs_a_quorum,
                an_unreachable_quorum_is_not_extended_and_not_lost,
                a_lease_outlives_its_ttl_by_renewal,
                a_lost_quorum_is_noticed_at_the_local_deadline,
                a_stolen_key_is_noticed_at_the_next_renewal,
            ]
        }
        $crate::suite! { @module $adapter, $block_on,
            settings: [a5_odd_ttls_are_refused_at_the_call, a17_odd_drift_is_refused, odd_names_and_addresses_are_named]
        }
        $crate::suite! { @module $adapter, $block_on,
            cancel: [
                an_acquire_dropped_at_any_poll_leaves_no_key,
                leases_dropped_in_a_burst_leave_no_key,
                leases_dropped_outside_the_runtime_leave_no_key,
            ]
        }
        $crate::suite! { @module $adapter, $block_on,
            compare: [
                scripts_may_be_forbidden_where_the_server_compares,
                the_best_that_the_server_has_is_used,
                what_is_not_ours_is_neither_extended_nor_deleted,
                at_the_memory_limit_leases_go_on,
                every_dialect_is_spoken_after_one_trial,
                without_any_way_the_error_names_the_right,
                a_server_survives_leases_that_come_and_go,
                after_a_failover_the_new_servers_commands_are_used,
                nodes_of_one_set_may_differ,
            ]
        }
        $crate::suite! { @module $adapter, $block_on,
            connection: [
                a_set_that_timed_out_is_taken_back_when_it_runs,
                held_back_bytes_leave_no_key,
                a_lost_reply_is_not_a_lost_lease,
                a_half_dead_connection_is_replaced,
                the_deadline_holds_whatever_the_server_does,
                a_killed_server_is_found_again,
                an_idle_connection_may_be_closed,
                a_stalled_server_gathers_no_pile,
                both_protocols_and_the_ends_of_the_counter,
            ]
        }
        $crate::suite! { @module $adapter, $block_on,
            broken_network: [
                a_connection_that_is_half_open,
                a_peer_that_accepts_and_never_answers,
                a_reply_cut_in_the_middle,
                a_peer_that_speaks_another_language,
                connects_that_are_refused,
                a_release_cut_in_mid_flight,
            ]
        }
        $crate::suite! { @module $adapter, $block_on,
            broken_node: [
                a_node_that_is_frozen,
                a_node_that_is_killed,
                a_node_that_restarts_empty,
                a_node_that_restarts_with_its_data,
                a_node_that_is_slow,
                a_node_that_pauses_its_clients,
                a_node_that_forgets_its_scripts,
                a_node_that_kills_its_clients,
                a_node_without_room_for_clients,
            ]
        }
        $crate::suite! { @module $adapter, $block_on,
            exclusion: [nobody_shares_a_lease_while_nodes_come_and_go]
        }
        $crate::suite! { @module $adapter, $block_on,
            hostile: [deep_nesting_overflows_no_stack, a_surplus_answer_belongs_to_nobody]
        }
        $crate::suite! { @module $adapter, $block_on,
            refusal: [
                every_error_code_is_a_failed_node_with_its_code,
                real_servers_refuse_with_their_codes,
                wrong_passwords_are_named_and_not_shown,
            ]
        }
        $crate::suite! { @module $adapter, $block_on,
            restart: [
                a_restart_guard_keeps_a_second_holder_out,
                a_server_that_may_not_be_asked_does_not_vote,
                nobody_shares_a_lease_while_servers_forget,
            ]
        }
        $crate::suite! { @module $adapter, $block_on,
            sick_node: [a_frozen_node_slows_nothing_down]
        }
        $crate::suite! { @module $adapter, $block_on,
            access: [
                the_documented_rights_are_enough_and_all_are_needed,
                the_rights_for_scripts_are_enough_everywhere,
                without_scripts_the_documented_rights_are_enough_and_all_are_needed,
                behind_sentinels_one_right_more_is_needed,
                to_be_woken_takes_one_right_more,
            ]
        }
        $crate::suite! { @module $adapter, $block_on,
            addresses: [
                unix_sockets_in_every_spelling,
                odd_credentials_and_databases_in_urls,
                a_name_that_leads_to_another_primary_is_followed,
                a_replica_is_not_dialled_again_and_again,
            ]
        }
        $crate::suite! { @module $adapter, $block_on,
            sentinel: [
                credentials_of_sentinels_and_primary_may_differ,
                a_failover_keeps_a_lease_or_says_that_it_is_lost,
                a_demoted_primary_is_left_for_the_new_one,
                a_primary_that_was_replaced_is_left_before_it_knows,
            ]
        }
        $crate::suite! { @module $adapter, $block_on,
            topology: [
                sound_nodes_give_nothing_to_say,
                one_server_under_two_names_is_found,
                shards_of_one_cluster_are_found,
                a_clock_that_is_off_is_found,
                what_is_wrong_with_a_server_is_named,
                nodes_that_do_not_answer_are_named_in_time,
            ]
        }
        $crate::suite! { @module $adapter, $block_on,
            waking: [
                a_release_wakes_whoever_waits_in_another_manager,
                expiry_wakes_whoever_waits,
                a_flushed_server_wakes_whoever_waits,
                a_key_that_is_free_already_wakes_at_once,
                a_holder_that_renews_wakes_nobody,
                nobody_listens_without_need,
                closing_ends_the_listening,
                a_lost_listener_costs_a_pause_and_is_replaced,
                managers_take_turns,
            ]
        }
        $crate::suite! { @module $adapter, $block_on,
            work: [
                a12_work_does_not_outlive_its_lease,
                a14_the_works_own_error_is_heard,
                a15_asking_is_free,
                scoped_work_gives_the_lease_back,
                a_closed_manager_gives_everything_back,
            ]
        }
    };
    (@module $adapter:ty, $block_on:path, $module:ident: [$($test:ident),* $(,)?]) => {
        mod $module {
            use super::*;
            $(
                #[test]
                fn $test() {
                    $block_on($crate::suite::$module::$test::<$adapter>());
                }
            )*
        }
    };
}
