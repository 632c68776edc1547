//! One node, moments taken apart as finely as can be.

use redlock_model::{Clocks, Fact, Order, Plan, Setup, Timers, Trouble, is_long, verify};

/// May do everything.
fn busy() -> Plan {
    Plan { attempts: 2, extensions: 1, releases: true, abandons: true, ..Plan::once() }
}

/// Tries twice, and gives back.
fn rival() -> Plan {
    Plan { attempts: 2, releases: true, ..Plan::once() }
}

fn everything(horizon: u8) -> Setup {
    let facts = vec![
        Fact::AcquiredLater,
        Fact::NotAcquired,
        Fact::Cancelled,
        Fact::Extended,
        Fact::Shortened,
        Fact::NotExtended,
        Fact::LostExpired,
        Fact::LostClosed,
        Fact::Released,
        Fact::AlreadyExpired,
        Fact::NotReleased,
    ];
    Setup { facts, ..Setup::new(1, horizon, [busy(), rival()]) }
}

#[test]
fn everything_at_once() {
    verify(&everything(4), 509_947);
}

#[test]
fn everything_at_once_for_longer() {
    if is_long() {
        verify(&everything(5), 1_531_346);
    }
}

/// A connection for each command: all orders of commands, and all orders of answers.
fn reordered(horizon: u8) -> Setup {
    let rival = Plan { attempts: 2, ..Plan::once() };
    let holder = Plan { abandons: true, ..rival.clone() };
    let facts = vec![Fact::AcquiredLater, Fact::Cancelled, Fact::LostClosed, Fact::DeletedAgain];
    Setup { order: Order::Any, facts, ..Setup::new(1, horizon, [holder, rival]) }
}

#[test]
fn reordered_attempts() {
    verify(&reordered(3), 378_979);
}

#[test]
fn reordered_attempts_for_longer() {
    if is_long() {
        verify(&reordered(4), 2_388_890);
    }
}

/// Extensions to a shorter and to a longer ttl that overtake each other, and a release that overtakes both.
#[test]
fn reordered_extensions() {
    let holder = Plan { extensions: 2, releases: true, ..Plan::once() };
    let facts = vec![Fact::Extended, Fact::Shortened, Fact::NotExtended, Fact::Released];
    verify(&Setup { order: Order::Any, facts, ..Setup::new(1, 4, [holder, Plan::once()]) }, 235_520);
}

/// Clients that are busy with something else when a timer is due.
#[test]
fn late_timers() {
    let holder = Plan { attempts: 2, extensions: 1, releases: true, ..Plan::once() };
    let facts =
        vec![Fact::AcquiredLater, Fact::ExpiredWhileAcquiring, Fact::AlreadyExpired, Fact::LostExpired];
    verify(&Setup { timers: Timers::Late, facts, ..Setup::new(1, 4, [holder, Plan::once()]) }, 451_774);
}

/// Keys that go at any time that the drift allows.
#[test]
fn free_clocks() {
    let holder = Plan { attempts: 2, extensions: 1, releases: true, ..Plan::once() };
    let facts = vec![Fact::AcquiredLater, Fact::Extended, Fact::LostExpired, Fact::AlreadyExpired];
    verify(&Setup { clocks: Clocks::Free, facts, ..Setup::new(1, 4, [holder, Plan::once()]) }, 111_515);
}

/// A ttl that leaves time to try a renewal again.
#[test]
fn renewal() {
    let holder = Plan { renewal: Some(1), releases: true, abandons: true, ..Plan::once() };
    let facts = vec![Fact::Renewed, Fact::NotRenewed, Fact::LostExpired, Fact::LostClosed, Fact::Released];
    verify(&Setup { ttl: 4, timeout: 1, facts, ..Setup::new(1, 4, [holder, Plan::once()]) }, 52_944);
}

/// An extension that has to wait for a renewal, and changes what the next one asks for.
#[test]
fn renewal_and_extension() {
    let holder = Plan { renewal: Some(1), extensions: 1, ..Plan::once() };
    let facts = vec![Fact::Renewed, Fact::Extended, Fact::Shortened, Fact::NotExtended];
    verify(&Setup { facts, ..Setup::new(1, 4, [holder, Plan::once()]) }, 36_756);
}

#[test]
fn fencing() {
    let holder = Plan { attempts: 2, releases: true, ..Plan::once() };
    let facts = vec![Fact::AcquiredLater, Fact::LostExpired, Fact::Released];
    verify(&Setup { fenced: true, facts, ..Setup::new(1, 4, [holder, rival()]) }, 88_808);
}

/// One handle, two leases one after the other.
#[test]
fn second_lease_of_one_handle() {
    let holder = Plan { acquires: 2, releases: true, abandons: true, ..Plan::once() };
    let facts = vec![Fact::Acquired, Fact::Released, Fact::AlreadyExpired, Fact::LostClosed];
    verify(&Setup { fenced: true, facts, ..Setup::new(1, 4, [holder, Plan::once()]) }, 524_781);
}

/// As many attempts as fit into a time.
#[test]
fn patience() {
    let patient = Plan { within: Some(3), releases: true, abandons: true, ..Plan::once() };
    let facts = vec![Fact::AcquiredLater, Fact::NotAcquired, Fact::Cancelled];
    verify(&Setup { facts, ..Setup::new(1, 4, [patient, rival()]) }, 177_693);
}

/// Anybody may be told at any moment that the key has gone, also the holder, also when it has not. The pauses
/// are long enough for attempts in them.
fn hinted(horizon: u8, hints: u8, holder: Plan, facts: &[Fact]) -> Setup {
    let rival = Plan { attempts: 2, pause: 2, releases: true, ..Plan::once() };
    let facts = [&[Fact::Hinted, Fact::AcquiredLater, Fact::Released], facts].concat();
    Setup { hints, facts, ..Setup::new(1, horizon, [holder, rival]) }
}

#[test]
fn hints() {
    verify(&hinted(4, 2, Plan { releases: true, ..Plan::once() }, &[Fact::LostExpired]), 199_012);
}

#[test]
fn hints_and_everything_at_once() {
    if is_long() {
        let holder = Plan { pause: 2, ..busy() };
        verify(&hinted(4, 2, holder, &[Fact::Extended, Fact::LostExpired, Fact::Cancelled]), 4_138_737);
    }
}

/// Pauses shorter than a tick: a hinted attempt is cut off by the next one.
#[test]
fn hints_and_patience() {
    let patient = Plan { within: Some(3), ..Plan::once() };
    let facts = vec![Fact::Hinted, Fact::AcquiredLater, Fact::NotAcquired];
    let setup = Setup::new(1, 4, [patient, Plan { releases: true, ..Plan::once() }]);
    verify(&Setup { hints: 4, facts, ..setup }, 295_270);
}

/// Commands and answers of hinted attempts overtake all others.
#[test]
fn reordered_hints() {
    if is_long() {
        let rival = Plan { attempts: 2, pause: 2, ..Plan::once() };
        let facts = vec![Fact::Hinted, Fact::AcquiredLater, Fact::DeletedAgain];
        let setup = Setup::new(1, 3, [rival.clone(), rival]);
        verify(&Setup { order: Order::Any, hints: 2, facts, ..setup }, 1_816_964);
    }
}

/// A connection that breaks, so that its successor overtakes what is left on it, and a node that refuses.
#[test]
fn broken_connections() {
    let holder = Plan { attempts: 2, releases: true, ..Plan::once() };
    let facts = vec![Fact::AcquiredLater, Fact::NotReleased, Fact::DeletedAgain];
    let trouble = Trouble { breaks: 1, refusals: 1 };
    verify(&Setup { trouble, facts, ..Setup::new(1, 3, [holder, Plan::once()]) }, 243_278);
}

#[test]
fn broken_connections_and_extension() {
    if is_long() {
        let holder = Plan { attempts: 2, extensions: 1, releases: true, ..Plan::once() };
        let facts = vec![Fact::Extended, Fact::NotExtended, Fact::NotReleased];
        let trouble = Trouble { breaks: 1, refusals: 1 };
        verify(&Setup { trouble, facts, ..Setup::new(1, 3, [holder, Plan::once()]) }, 675_025);
    }
}
