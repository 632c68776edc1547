//! Another part of the program has asked the `redis` crate to prefer tokio, for the whole process. Leases on
//! async-std and smol, where no tokio runtime runs, must not mind.

use redlock_tests::suite::{acquire, connection, release, renewal};

/// For the whole process, so every test asks for it, and the first one gets it.
fn prefer_tokio() {
    let _ = redis::aio::prefer_tokio();
}

macro_rules! leases_work_all_the_same {
    ($runtime:ident: $adapter:ty, $block_on:path) => {
        mod $runtime {
            use super::*;

            #[test]
            fn a_lease_is_taken_kept_and_given_back() {
                prefer_tokio();
                $block_on(acquire::a_lease_on_one_node_and_on_three::<$adapter>());
                $block_on(renewal::a_lease_outlives_its_ttl_by_renewal::<$adapter>());
                $block_on(release::a16_a_foreign_key_at_release_is_a_loss::<$adapter>());
            }

            #[test]
            fn contenders_take_turns() {
                prefer_tokio();
                $block_on(acquire::a18_a_waiting_contender_gets_its_turn::<$adapter>());
            }

            #[test]
            fn connections_break_and_are_replaced() {
                prefer_tokio();
                $block_on(connection::a_half_dead_connection_is_replaced::<$adapter>());
                $block_on(connection::a_killed_server_is_found_again::<$adapter>());
            }
        }
    };
}

leases_work_all_the_same!(async_std: redlock_async_std::AsyncStd, ::async_std::task::block_on);
leases_work_all_the_same!(smol: redlock_smol::Smol, ::smol::block_on);
