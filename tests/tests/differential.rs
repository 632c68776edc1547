//! The model of a server answers like a server: the same steps, taken on a [`MemoryNode`] and on a real one,
//! tell the same.
//!
//! The real server is reached through the driver, with its way of writing commands and reading answers, over
//! a connection that blocks. So what is compared is what a lease would be told. A server that has commands which
//! compare is asked through these and through scripts.
//!
//! [`MemoryNode`]: redlock_core::MemoryNode

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

mod differential {
    pub(crate) mod model;
    pub(crate) mod play;
    pub(crate) mod real;
    pub(crate) mod step;
    pub(crate) mod strategy;
}

use std::cell::{Cell, RefCell};
use std::time::Duration;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use redlock_core::{Vote, interpret};

use differential::model::Model;
use differential::play::{Played, play};
use differential::real::Real;
use differential::step::{ALL_WHATS, Key, Lifetime, Name, Step, Told, Value, What};
use differential::strategy::{steps, steps_in_real_time};

/// Every intent on every state of the lock and of the counter.
#[test]
fn every_intent_on_every_state() {
    let values = || std::iter::once(None).chain(Value::all().map(Some));
    for real in Real::all() {
        for (lock, fence) in values().flat_map(|lock| values().map(move |fence| (lock.clone(), fence))) {
            for what in ALL_WHATS {
                let set = |key, value: &Option<Value>| {
                    let value = value.clone()?;
                    Some(Step::Set { key, value, lifetime: None })
                };
                let steps = [
                    set(Key::A, &lock),
                    set(Key::B, &fence),
                    Some(Step::CarryOut {
                        lock: Key::A,
                        fence: Key::B,
                        what,
                        name: Name::Ours,
                        lifetime: Lifetime::Minutes(1),
                    }),
                ];
                let steps: Vec<Step> = steps.into_iter().flatten().collect();
                let played =
                    play(&real, &steps).unwrap_or_else(|error| panic!("{}, {steps:?}: {error}", real.name));
                assert_eq!(played, Played::ToTheEnd);
            }
        }
    }
}

/// Sequences of anything, on keys that live for minutes or are made to expire at once.
#[test]
fn random_sequences() {
    let long = std::env::var_os("REDLOCK_LONG").is_some();
    let servers = Real::all();
    runner(if long { 10_000 } else { 300 })
        .run(&steps(), |steps| {
            servers.iter().try_for_each(|real| match play(real, &steps)? {
                Played::ToTheEnd => Ok(()),
                // Keys that live for minutes, on a machine that has stood still for so long.
                Played::InDoubt => Err(TestCaseError::reject("in doubt")),
            })
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
}

/// Sequences that only ever get refusals would agree too, and show little.
#[test]
fn random_sequences_meet_every_answer() {
    let mut runner = TestRunner::deterministic();
    let mut votes = [[0; 3]; ALL_WHATS.len()];
    for _ in 0..300 {
        let mut model = Model::default();
        for step in steps().new_tree(&mut runner).unwrap().current() {
            if let (Step::CarryOut { what, .. }, Told::Reply(reply)) =
                (&step, model.take(Duration::ZERO, &step))
            {
                let intent = what.intent("fence", Name::Ours, Lifetime::Longest);
                let column = match interpret(&intent, reply) {
                    Vote::Yes(_) => 0,
                    Vote::No => 1,
                    Vote::Fault(_) => 2,
                };
                votes[*what as usize][column] += 1;
            }
        }
    }
    println!("yes, no, error: {votes:?}");
    for (what, [yes, no, error]) in ALL_WHATS.into_iter().zip(votes) {
        assert!(yes > 100 && no > 100, "{what:?}: {yes} yes, {no} no");
        assert_eq!(error > 100, matches!(what, What::FencedAcquire), "{what:?}: {error} errors");
    }
}

/// The same with keys that live for a moment, and pauses in which they expire by themselves.
#[test]
fn random_sequences_in_real_time() {
    let (to_the_end, in_doubt) = (Cell::new(0), Cell::new(0));
    let servers = Real::all();
    let mut turn = servers.iter().cycle();
    let turn = RefCell::new(&mut turn);
    runner(24)
        .run(&steps_in_real_time(), |steps| {
            // One way after the other: every sequence takes its time.
            let real = turn.borrow_mut().next().expect("it goes round");
            let counter = match play(real, &steps)? {
                Played::ToTheEnd => &to_the_end,
                Played::InDoubt => &in_doubt,
            };
            counter.set(counter.get() + 1);
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
    println!("{} played to the end, {} cut short by a slow machine", to_the_end.get(), in_doubt.get());
    assert!(to_the_end.get() > 0, "the machine was too slow for a single one");
}

/// Milliseconds are the server's grain: a key is there until its time and no longer.
#[test]
fn a_key_set_by_an_intent_ends_in_time() {
    let servers = Real::all();
    let (a, carry_out) = (Key::A, |what, name| Step::CarryOut {
        lock: Key::A,
        fence: Key::B,
        what,
        name,
        lifetime: Lifetime::Moment,
    });
    for what in ALL_WHATS.into_iter().filter(|what| what.acquires()) {
        let steps = [
            carry_out(what, Name::Ours),
            carry_out(what, Name::Theirs),
            Step::Get(a),
            Step::Pttl(a),
            Step::Pause,
            Step::Get(a),
            Step::Pttl(a),
            carry_out(what, Name::Theirs),
            Step::Get(a),
        ];
        for real in &servers {
            // A machine that stands still for a moment spoils a try, not the test.
            let played =
                (0..10).map(|_| play(real, &steps).unwrap_or_else(|error| panic!("{}: {error}", real.name)));
            assert!(played.into_iter().any(|played| played == Played::ToTheEnd), "always too slow");
        }
    }
}

fn runner(cases: u32) -> TestRunner {
    // Failures are printed as the shortest sequence that fails; there is nothing to keep beside.
    TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() })
}
