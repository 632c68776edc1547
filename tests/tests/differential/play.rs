//! Takes the same steps on both sides and compares what they tell.

use std::time::Duration;

use proptest::prelude::*;
use redlock_core::Reply;
use redlock_tests::harness::Stopwatch;

use super::model::Model;
use super::real::{Real, Session};
use super::step::{ALL_KEYS, Step, Told};

/// How far a sequence got without a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Played {
    ToTheEnd,
    /// Up to a step at which a key may just have expired, or not yet.
    InDoubt,
}

/// Takes the steps, then looks at every key.
pub(crate) fn play(real: &Real, steps: &[Step]) -> Result<Played, TestCaseError> {
    let session = real.begin();
    let look = ALL_KEYS.into_iter().flat_map(|key| [Step::Get(key), Step::Pttl(key)]);
    let steps: Vec<Step> = steps.iter().cloned().chain(look).collect();
    let played = take(&session, &steps);
    session.clear();
    played
}

fn take(session: &Session<'_>, steps: &[Step]) -> Result<Played, TestCaseError> {
    let watch = Stopwatch::start();
    let mut model = Model::default();
    // A key may have been set as late as its round trip took.
    let mut tolerance = GRAIN;
    for (position, step) in steps.iter().enumerate() {
        let before = watch.elapsed();
        let really = session.take(step);
        let after = watch.elapsed();
        if !matches!(step, Step::Pause) {
            tolerance = tolerance.max(after - before + GRAIN);
            if model.has_end_between(before.saturating_sub(tolerance), after + GRAIN) {
                return Ok(Played::InDoubt);
            }
        }
        let modelled = model.take(before, step);
        let place = format!("step {position}, {step:?}");
        prop_assert!(
            agree(&really, &modelled, tolerance),
            "{place}: {really:?}, but the model says {modelled:?}"
        );
    }
    Ok(Played::ToTheEnd)
}

fn agree(really: &Told, modelled: &Told, tolerance: Duration) -> bool {
    match (really, modelled) {
        (Told::Pttl(really @ 0..), Told::Pttl(modelled @ 0..)) => {
            u128::from(really.abs_diff(*modelled)) <= tolerance.as_millis()
        }
        // Servers before 7 put an error out of a script into a sentence of their own, those since add
        // the script's name.
        (Told::Reply(Ok(Reply::Error(really))), Told::Reply(Ok(Reply::Error(modelled)))) => {
            really.code() == modelled.code() && really.message().contains(modelled.message())
        }
        (really, modelled) => really == modelled,
    }
}

/// By how much the server's clock, which counts milliseconds, may seem to be off.
const GRAIN: Duration = Duration::from_millis(2);
