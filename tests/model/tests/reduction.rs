//! Coarse moments lose nothing: the worlds that they end in are those that fine ones end in.

use redlock_model::{Grain, Plan, Setup, worlds_after_ticks};

#[test]
fn coarse_moments_of_one_node() {
    let busy = Plan { attempts: 2, extensions: 1, releases: true, abandons: true, ..Plan::once() };
    compare(Setup::new(1, 3, [busy, Plan { attempts: 2, ..Plan::once() }]));
}

#[test]
fn coarse_moments_of_three_nodes() {
    compare(Setup { behind: 2, ..Setup::new(3, 1, [Plan::once(), Plan::once()]) });
}

#[test]
fn coarse_moments_with_hints() {
    let rival = Plan { attempts: 2, pause: 1, ..Plan::once() };
    compare(Setup { hints: 2, ..Setup::new(1, 2, [Plan { releases: true, ..Plan::once() }, rival]) });
}

fn compare(fine: Setup) {
    let coarse = Setup { grain: Grain::Coarse, ..fine.clone() };
    let (fine, coarse) = (worlds_after_ticks(&fine), worlds_after_ticks(&coarse));
    assert!(fine == coarse, "{} worlds against {}", fine.len(), coarse.len());
    assert!(fine.len() > 500, "{}", fine.len());
}
