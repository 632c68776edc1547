//! What may happen in a world, as values that proptest can generate and shrink.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use redlock_core::{Config, LeaseState, Patience};

use super::world::{Kind, World};

/// One thing that happens. Numbers are taken modulo what there is.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A request that fits the state: see [`Wish`].
    Request { who: u8, wish: Wish },
    /// A command is carried out; its answer may follow at once.
    Execute { pick: Pick, answer: bool },
    /// All commands of `who` to these nodes are carried out and answered, oldest first.
    Sweep { who: u8, nodes: u8 },
    LoseRequest { pick: Pick, told: bool },
    LoseReply { pick: Pick, told: bool },
    Pass { millis: u8 },
    PassToTimer { who: u8 },
    Timeout { who: u8 },
}

/// One of the commands under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    kind: Kind,
    number: u16,
}

/// What a contender asks for: the first of these that its state allows.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    attempts: u8,
    /// Patience in milliseconds, instead of a number of attempts.
    patience: Option<u8>,
    extend: Option<u8>,
    abandon: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// Which nodes' clocks are fast.
    nodes: Vec<bool>,
    fenced: bool,
    punctual: bool,
    configs: Vec<Config>,
    steps: Vec<Step>,
}

impl Scenario {
    /// Plays the scenario, with `check` after every step.
    pub(crate) fn play(&self, mut check: impl FnMut(&mut World) -> Result<(), TestCaseError>) -> Result<World, TestCaseError> {
        let mut world = World::new(&self.nodes, self.fenced, self.punctual, self.configs.clone());
        for step in &self.steps {
            step.take(&mut world);
            check(&mut world)?;
        }
        Ok(world)
    }
}

impl Step {
    fn take(&self, world: &mut World) {
        let someone = |who: u8| usize::from(who) % world.contenders.len();
        let some = |pick: Pick| world.pick(pick.kind, pick.number.into());
        match self {
            Self::Request { who, wish } => wish.ask(world, someone(*who)),
            Self::Execute { pick, answer: true } => some(*pick).into_iter().for_each(|at| world.answer(at)),
            Self::Execute { pick, answer: false } => some(*pick).into_iter().for_each(|at| world.execute(at)),
            Self::Sweep { who, nodes } => {
                let who = someone(*who);
                while let Some(at) = world.oldest_of(who, *nodes) {
                    world.answer(at);
                }
            }
            Self::LoseRequest { pick, told } => {
                some(*pick).into_iter().for_each(|at| world.lose_request(at, *told));
            }
            Self::LoseReply { pick, told } => {
                some(*pick).into_iter().for_each(|at| world.lose_reply(at, *told));
            }
            Self::Pass { millis } => world.pass(u64::from(*millis)),
            Self::PassToTimer { who } => world.pass_to_timer(someone(*who)),
            Self::Timeout { who } => world.timeout(someone(*who)),
        }
    }
}

impl Wish {
    fn ask(&self, world: &mut World, who: usize) {
        let now = world.instant();
        let machine = &mut world.contenders[who];
        let acquire = match self.patience {
            Some(millis) => Patience::Until(now.saturating_add(Duration::from_millis(millis.into()))),
            None => Patience::Attempts(self.attempts.into()),
        };
        // The state is that of the last input: by now the lease may be lost, and then these fail.
        match (machine.state(), self.extend) {
            (LeaseState::Held, Some(millis)) => {
                let _ = machine.extend(now, Duration::from_millis(millis.into()));
            }
            (LeaseState::Idle, _) => machine.acquire(now, acquire).unwrap(),
            (LeaseState::Lost(_), Some(_)) => machine.acquire(now, acquire).unwrap(),
            (_, None) if self.abandon => machine.abandon(now),
            (LeaseState::Held | LeaseState::Lost(_), None) => machine.release(now).unwrap(),
            _ => {}
        }
        world.drain(who);
    }
}

fn config() -> impl Strategy<Value = Config> {
    let renewal = prop_oneof![Just(None), Just(Some(None)), (1..12_u64).prop_map(|ms| Some(Some(ms)))];
    let drift = prop_oneof![Just(0.0), Just(0.1)];
    let max_hold = prop::option::weighted(0.1, 1..60_u64);
    (12..48_u64, 0..10_u64, 1..20_u64, renewal, drift, max_hold, any::<bool>()).prop_map(
        |(ttl, retry_delay, operation_timeout, renewal, drift, max_hold, repair)| {
            let ms = Duration::from_millis;
            let mut builder = Config::builder()
                .ttl(ms(ttl))
                .retry_delay(ms(retry_delay))
                .operation_timeout(ms(operation_timeout))
                .drift_factor(drift)
                .repair(repair);
            if let Some(interval) = renewal {
                builder = builder.auto_renew(interval.map(|interval| ms(interval.min(ttl / 2))));
            }
            if let Some(max_hold) = max_hold {
                builder = builder.max_hold(ms(max_hold));
            }
            builder.build().unwrap()
        },
    )
}

fn wish() -> impl Strategy<Value = Wish> {
    let ttl = prop_oneof![4..16_u8, 16..60_u8];
    (1..4_u8, prop::option::weighted(0.3, 0..30_u8), prop::option::weighted(0.8, ttl), prop::bool::weighted(0.3))
        .prop_map(|(attempts, patience, extend, abandon)| Wish { attempts, patience, extend, abandon })
}

fn step(lossy: bool) -> impl Strategy<Value = Step> {
    let loss = u32::from(lossy);
    let kind = prop::sample::select(vec![Kind::Any, Kind::Current, Kind::Outdated, Kind::Extension]);
    let pick = || (kind.clone(), any::<u16>()).prop_map(|(kind, number)| Pick { kind, number });
    let who = || any::<u8>();
    prop_oneof![
        6 => (who(), wish()).prop_map(|(who, wish)| Step::Request { who, wish }),
        6 => (pick(), any::<bool>()).prop_map(|(pick, answer)| Step::Execute { pick, answer }),
        6 => (who(), any::<u8>(), any::<u8>()).prop_map(|(who, a, b)| Step::Sweep { who, nodes: a | b }),
        loss => (pick(), any::<bool>()).prop_map(|(pick, told)| Step::LoseRequest { pick, told }),
        loss => (pick(), any::<bool>()).prop_map(|(pick, told)| Step::LoseReply { pick, told }),
        3 => (1..6_u8).prop_map(|millis| Step::Pass { millis }),
        1 => who().prop_map(|who| Step::PassToTimer { who }),
        1 => who().prop_map(|who| Step::Timeout { who }),
    ]
}

/// `lossy`: commands and answers may be lost, not only late.
pub(crate) fn scenario(lossy: bool) -> impl Strategy<Value = Scenario> {
    let nodes = prop_oneof![Just(1_usize), Just(3), Just(5)];
    let nodes = nodes.prop_flat_map(|count| vec(any::<bool>(), count));
    let few = (nodes, any::<bool>(), any::<bool>(), vec(config(), 2..=3), vec(step(lossy), 20..160));
    few.prop_map(|(nodes, fenced, punctual, configs, steps)| Scenario { nodes, fenced, punctual, configs, steps })
}
