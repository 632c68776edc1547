//! What the checks must find. A checker that cannot fail shows nothing.

use redlock_model::{
    BACKED, Clocks, Fact, Grain, ONE_HOLDER, Order, Plan, Sabotage, Setup, counterexample, explore,
};

/// A machine that takes an old yes for a new one counts on a key that its own clean-up deletes.
#[test]
fn answer_to_an_outdated_attempt() {
    let found = counterexample(&twice(Order::Fifo, Sabotage::AttemptIgnored), ONE_HOLDER);
    // The documentation shows it.
    let documented = include_str!("../../../docs/model-checking.md");
    assert!(documented.contains(&found), "{found}");
}

/// With one token for all attempts, a late clean-up of the first deletes the key of the second.
#[test]
fn one_token_for_all_attempts() {
    let found = counterexample(&twice(Order::Any, Sabotage::OneToken), ONE_HOLDER);
    let documented = include_str!("../../../docs/model-checking.md");
    assert!(documented.contains(&found), "{found}");
}

/// The holder can learn of it, but only by asking.
#[test]
fn node_that_forgets() {
    let holder = Plan { extensions: 1, ..Plan::once() };
    let setup = Setup { sabotage: Sabotage::Forgetful, ..Setup::new(1, 3, [holder, Plan::once()]) };
    let found = explore(&Setup { facts: vec![Fact::LostRefused], ..setup }, 21_061);
    assert!(found.contains(ONE_HOLDER) && found.contains(BACKED), "{found:?}");
}

/// The one node that two majorities share.
#[test]
fn one_of_three_nodes_that_forgets() {
    let setup = Setup::new(3, 1, [Plan::once(), Plan::once()]);
    let setup = Setup { sabotage: Sabotage::Forgetful, grain: Grain::Coarse, ..setup };
    let found = counterexample(&setup, ONE_HOLDER);
    assert!(found.contains("restarts without its data"), "{found}");
}

/// One tick more than the drift allows.
#[test]
fn clock_that_jumps() {
    for clocks in [Clocks::Exact, Clocks::Fast] {
        let setup = Setup { clocks, ..Setup::new(1, 3, [Plan::once(), Plan::once()]) };
        let found = counterexample(&Setup { sabotage: Sabotage::ClockJump, ..setup }, ONE_HOLDER);
        assert!(found.contains("jumps forward"), "{found}");
    }
}

/// Two nodes that are one server have two votes and one key: that server alone can grant an extension.
///
/// This does not let anybody else in. A lease takes a quorum of votes away from others, however few servers
/// they come from, and a free server gives its key once, so it has one vote for an acquire.
#[test]
fn two_nodes_that_are_one_server() {
    let holder = Plan { extensions: 1, ..Plan::once() };
    let setup = Setup::new(3, 1, [holder, Plan::once()]);
    let setup = Setup { sabotage: Sabotage::SameServer, behind: 1, ..setup };
    assert_eq!(explore(&setup, 388_382), [BACKED].into());
}

fn twice(order: Order, sabotage: Sabotage) -> Setup {
    let holder = Plan { attempts: 2, ..Plan::once() };
    Setup { order, sabotage, ..Setup::new(1, 4, [holder, Plan::once()]) }
}
