//! Three nodes. At most so many of the six connections are behind when time goes on; two are enough for the
//! narrowest case, in which the majorities of two clients share a single node.

use redlock_model::{Fact, Grain, Plan, Setup, is_long, verify};

fn three(horizon: u8, behind: usize, holder: Plan, facts: &[Fact]) -> Setup {
    let setup = Setup::new(3, horizon, [holder, Plan::once()]);
    Setup { grain: Grain::Coarse, behind, facts: facts.to_vec(), ..setup }
}

#[test]
fn contention() {
    verify(&three(3, 2, Plan::once(), &[Fact::Acquired, Fact::NotAcquired, Fact::LostExpired]), 703_591);
}

#[test]
fn contention_for_longer() {
    if is_long() {
        verify(
            &three(4, 2, Plan::once(), &[Fact::Acquired, Fact::NotAcquired, Fact::LostExpired]),
            1_679_420,
        );
    }
}

/// Enough for both to be kept waiting by a majority.
#[test]
fn contention_with_four_connections_behind() {
    if is_long() {
        verify(&three(2, 4, Plan::once(), &[Fact::Acquired, Fact::NotAcquired]), 4_909_328);
    }
}

#[test]
fn second_attempt() {
    let holder = Plan { attempts: 2, ..Plan::once() };
    verify(&three(4, 1, holder, &[Fact::AcquiredLater, Fact::NotAcquired, Fact::LostExpired]), 74_920);
}

#[test]
fn second_attempt_with_more_behind() {
    if is_long() {
        let holder = Plan { attempts: 2, ..Plan::once() };
        verify(&three(3, 2, holder, &[Fact::AcquiredLater, Fact::NotAcquired]), 1_781_477);
    }
}

/// Both try twice, so that they can share out the nodes between them and meet again.
#[test]
fn split_votes() {
    if is_long() {
        let rival = Plan { attempts: 2, ..Plan::once() };
        let holder = Plan { releases: true, ..rival.clone() };
        let facts = vec![Fact::AcquiredLater, Fact::Released, Fact::LostExpired];
        let setup = Setup::new(3, 4, [holder, rival]);
        verify(&Setup { grain: Grain::Coarse, behind: 1, facts, ..setup }, 914_777);
    }
}

/// One waits, and both are told of keys that have gone or have not.
fn hinted(horizon: u8, holder: Plan, facts: &[Fact]) -> Setup {
    let rival = Plan { attempts: 2, pause: 2, ..Plan::once() };
    let facts = [&[Fact::Hinted, Fact::AcquiredLater, Fact::NotAcquired], facts].concat();
    let setup = Setup::new(3, horizon, [holder, rival]);
    Setup { grain: Grain::Coarse, behind: 1, hints: 2, facts, ..setup }
}

#[test]
fn hints() {
    verify(&hinted(2, Plan::once(), &[]), 84_076);
}

#[test]
fn hints_and_release() {
    if is_long() {
        let holder = Plan { releases: true, ..Plan::once() };
        verify(&hinted(3, holder, &[Fact::Released]), 2_544_589);
    }
}

#[test]
fn extension() {
    let holder = Plan { extensions: 1, ..Plan::once() };
    verify(&three(4, 1, holder, &[Fact::Extended, Fact::Shortened, Fact::LostExpired]), 324_470);
}

#[test]
fn extension_with_more_behind() {
    if is_long() {
        let holder = Plan { extensions: 1, ..Plan::once() };
        verify(&three(3, 2, holder, &[Fact::Extended, Fact::NotExtended]), 2_214_928);
    }
}

#[test]
fn renewal() {
    let holder = Plan { renewal: Some(1), ..Plan::once() };
    verify(&three(3, 1, holder, &[Fact::Renewed]), 230_879);
}

#[test]
fn release_and_abandon() {
    let holder = Plan { releases: true, abandons: true, ..Plan::once() };
    verify(&three(3, 1, holder, &[Fact::Released, Fact::Cancelled, Fact::LostClosed]), 735_108);
}

#[test]
fn release_with_more_behind() {
    if is_long() {
        let holder = Plan { releases: true, ..Plan::once() };
        verify(&three(3, 2, holder, &[Fact::Released, Fact::NotReleased, Fact::AlreadyExpired]), 2_697_455);
    }
}
