//! Running a model.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::timeline::timeline;
use crate::{Action, Setup, World};

impl Model for Setup {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        world.actions(self, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        Some(world.after(self, action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        crate::property::properties(self)
    }
}

/// Whether the models that take long are wanted too.
#[must_use]
pub fn is_long() -> bool {
    std::env::var_os("REDLOCK_LONG").is_some()
}

/// Visits every world within the bounds. What must hold has to hold in each, and every fact has to happen.
///
/// # Panics
/// If not, with a timeline; and if the number of worlds is not `pinned`, because a change of the machine
/// that should not change what it does changes no number.
pub fn verify(setup: &Setup, pinned: usize) {
    let (broken, worlds) = visit(setup);
    if let Some(property) = broken.first() {
        panic!("{property}?\n{}", counterexample(setup, property));
    }
    assert_eq!(worlds, pinned, "worlds");
}

/// The same, but says which of the properties that must hold do not.
///
/// # Panics
/// If a fact does not happen, or if the number of worlds is not `pinned`.
#[must_use]
pub fn explore(setup: &Setup, pinned: usize) -> BTreeSet<&'static str> {
    let (broken, worlds) = visit(setup);
    assert_eq!(worlds, pinned, "worlds, {broken:?} broken");
    broken
}

/// Visits every world. Returns what does not hold and how many there are.
fn visit(setup: &Setup) -> (BTreeSet<&'static str>, usize) {
    let checker = setup.clone().checker().threads(2).spawn_dfs().join();
    let mut found: BTreeSet<_> = checker.discoveries().into_keys().collect();
    for property in setup.properties() {
        if !property.expectation.discovery_is_failure() {
            assert!(found.remove(property.name), "never happens: {}", property.name);
        }
    }
    println!("{} worlds, {} steps", checker.unique_state_count(), checker.state_count());
    (found, checker.unique_state_count())
}

/// The shortest way to a world in which the property does not hold.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn counterexample(setup: &Setup, property: &'static str) -> String {
    // With one thread, breadth first finds a shortest path, and always the same one.
    let finish = HasDiscoveries::AllOf([property].into());
    let checker = setup.clone().checker().finish_when(finish).spawn_bfs().join();
    let path = checker.discovery(property).unwrap_or_else(|| panic!("always holds: {property}"));
    timeline(setup, path)
}

/// The worlds that can be there just after time went on, as hashes. Independent of the checker.
#[must_use]
pub fn worlds_after_ticks(setup: &Setup) -> BTreeSet<u64> {
    let hash = |world: &World| BuildHasherDefault::<DefaultHasher>::default().hash_one(world);
    let (mut seen, mut fresh) = (BTreeSet::new(), BTreeSet::new());
    let mut queue = VecDeque::from(setup.init_states());
    while let Some(world) = queue.pop_front() {
        for (action, next) in setup.next_steps(&world) {
            if action == Action::Tick {
                fresh.insert(hash(&next));
            }
            if seen.insert(hash(&next)) {
                queue.push_back(next);
            }
        }
    }
    fresh
}
