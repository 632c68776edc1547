use crate::choices::Choices;
use crate::invariant::Broken;
use crate::summary::Summary;
use crate::world::World;
use crate::{Mode, Trace, Violation};

/// One life of a simulated world: everything that happens in it follows from what is in here.
#[derive(Clone, Debug)]
pub struct Scenario {
    choices: Choices,
    mode: Mode,
    seed: Option<u64>,
}

impl Scenario {
    /// The scenario of a seed.
    #[must_use]
    pub fn from_seed(seed: u64, mode: Mode) -> Self {
        Self { choices: Choices::from_seed(seed), mode, seed: Some(seed) }
    }

    /// The scenario that these bytes spell, in which every assumption holds. Any bytes spell one. What
    /// they leave open takes the tamest course, so a short input is a quiet scenario.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self { choices: Choices::from_bytes(bytes), mode: Mode::Sound, seed: None }
    }
}

/// Runs a scenario to its end, and says what happened in it.
///
/// # Errors
/// The first promise that is broken.
pub fn run(scenario: Scenario) -> Result<Summary, Violation> {
    play(scenario, Trace::default()).0
}

/// The same, with everything that happened written down.
pub fn run_traced(scenario: Scenario) -> (Result<Summary, Violation>, Trace) {
    play(scenario, Trace::recording())
}

fn play(scenario: Scenario, trace: Trace) -> (Result<Summary, Violation>, Trace) {
    let Scenario { choices, mode, seed } = scenario;
    let violation =
        |broken: Broken, at| Violation { invariant: broken.invariant, what: broken.what, at, seed, mode };
    let mut world = match World::new(choices, mode, trace) {
        Ok(world) => world,
        Err(broken) => return (Err(violation(broken, 0)), Trace::default()),
    };
    let outcome = match world.run() {
        Ok(()) => Ok(world.summary),
        Err(broken) => Err(violation(broken, world.now())),
    };
    (outcome, world.trace)
}
