//! What may happen in a world, as values that proptest can generate and shrink.

use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use redlock_core::{Config, LeaseState, Patience};

use super::world::{Kind, Plan, World};

#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    plan: Plan,
    configs: Vec<Config>,
    /// Whether commands and answers may be lost, not only late.
    lossy: bool,
    steps: Vec<Step>,
}

/// One thing that happens. Numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Step {
    Request {
        who: u8,
        wish: Wish,
    },
    /// A command is carried out; its answer may follow at once.
    Execute {
        pick: Pick,
        answer: bool,
    },
    /// All commands of `who` to these nodes are carried out and answered, oldest first.
    Sweep {
        who: u8,
        nodes: u8,
    },
    LoseRequest {
        pick: Pick,
        told: bool,
    },
    LoseReply {
        pick: Pick,
        told: bool,
    },
    Pass {
        millis: u8,
    },
    PassToTimer {
        who: u8,
    },
    Timeout {
        who: u8,
    },
    /// `who` hears that its key may have gone at these nodes. What it then asks for may be done at once.
    Hint {
        who: u8,
        nodes: u8,
        sweep: bool,
    },
}

/// One of the commands under way.
#[derive(Clone, Copy, Debug)]
struct Pick {
    kind: Kind,
    number: u16,
}

/// What a contender asks for: whichever of these its state allows.
#[derive(Clone, Debug)]
struct Wish {
    attempts: u8,
    /// Patience in milliseconds, instead of a number of attempts.
    patience: Option<u8>,
    extend: Option<u8>,
    abandon: bool,
}

/// What a scenario is mostly about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Focus {
    /// Many acquires, short leases.
    Contention,
    /// Long leases, many extensions.
    Extension,
}

impl Scenario {
    /// Plays the scenario, with `check` after every step.
    pub(crate) fn play(
        &self,
        mut check: impl FnMut(&mut World) -> Result<(), TestCaseError>,
    ) -> Result<World, TestCaseError> {
        let mut world = World::new(&self.plan, self.configs.clone());
        for step in &self.steps {
            step.take(&mut world, self.lossy);
            check(&mut world)?;
        }
        Ok(world)
    }
}

impl Step {
    fn take(&self, world: &mut World, lossy: bool) {
        let someone = |who: u8| usize::from(who) % world.contenders.len();
        let some = |pick: Pick| world.pick(pick.kind, pick.number.into()).into_iter();
        match *self {
            Self::Request { who, ref wish } => wish.ask(world, someone(who)),
            Self::Execute { pick, answer: true } => some(pick).for_each(|at| world.answer(at)),
            Self::Execute { pick, answer: false } => some(pick).for_each(|at| world.execute(at)),
            Self::Sweep { who, nodes } => world.sweep(someone(who), nodes),
            Self::LoseRequest { .. } | Self::LoseReply { .. } if !lossy => {}
            Self::LoseRequest { pick, told } => some(pick).for_each(|at| world.lose_request(at, told)),
            Self::LoseReply { pick, told } => some(pick).for_each(|at| world.lose_reply(at, told)),
            Self::Pass { millis } => world.pass(millis.into()),
            Self::PassToTimer { who } => world.pass_to_timer(someone(who)),
            Self::Timeout { who } => world.timeout(someone(who)),
            Self::Hint { who, nodes, sweep } => {
                let who = someone(who);
                (0..8).filter(|node| nodes & (1 << node) != 0).for_each(|node| world.hint(who, node));
                if sweep {
                    world.sweep(who, nodes);
                }
            }
        }
    }
}

impl Wish {
    fn ask(&self, world: &mut World, who: usize) {
        let now = world.instant();
        let machine = &mut world.contenders[who];
        let patience = match self.patience {
            Some(millis) => Patience::Until(now.saturating_add(Duration::from_millis(millis.into()))),
            None => Patience::Attempts(self.attempts.into()),
        };
        match (machine.state(), self.extend) {
            (LeaseState::Idle, _) | (LeaseState::Lost(_), Some(_)) => machine.acquire(now, patience).unwrap(),
            // Refused when time has made it lost, or when another is under way.
            (LeaseState::Held, Some(millis)) => {
                let _ = machine.extend(now, Duration::from_millis(millis.into()));
            }
            (_, None) if self.abandon => machine.abandon(now),
            (LeaseState::Held | LeaseState::Lost(_), None) => machine.release(now).unwrap(),
            _ => {}
        }
        world.drain(who);
    }
}

fn config(focus: Focus) -> impl Strategy<Value = Config> {
    let ms = Duration::from_millis;
    let (ttl, most) = match focus {
        Focus::Contention => (12..48_u64, 20_u64),
        Focus::Extension => (30..60_u64, 8),
    };
    let renewal = prop_oneof![Just(None), Just(Some(None)), (1..12_u64).prop_map(|every| Some(Some(every)))];
    let options = (renewal, option::weighted(0.1, 1..60_u64), option::weighted(0.1, 1..3_u32), any::<bool>());
    (ttl, 0..20_u64, 1..most, options).prop_map(
        move |(ttl, retry_delay, operation_timeout, (renewal, max_hold, renew_attempts, repair))| {
            let mut builder = Config::builder()
                .ttl(ms(ttl))
                .retry_delay(ms(retry_delay))
                .operation_timeout(ms(operation_timeout))
                .repair(repair);
            if let Some(interval) = renewal {
                builder =
                    builder.auto_renew(interval.map_or(redlock_core::Renewal::ThirdOfTtl, |interval| {
                        ms(interval.min(ttl / 2)).into()
                    }));
            }
            if let Some(max_hold) = max_hold {
                builder = builder.max_hold(ms(max_hold));
            }
            if let Some(limit) = renew_attempts {
                builder = builder.renew_attempts(limit);
            }
            builder.build().unwrap()
        },
    )
}

fn wish(focus: Focus) -> impl Strategy<Value = Wish> {
    let ttl = prop_oneof![4..16_u8, 16..60_u8];
    let extends = match focus {
        Focus::Contention => 0.8,
        Focus::Extension => 0.95,
    };
    (1..4_u8, option::weighted(0.3, 0..30_u8), option::weighted(extends, ttl), prop::bool::weighted(0.3))
        .prop_map(|(attempts, patience, extend, abandon)| Wish { attempts, patience, extend, abandon })
}

fn step(focus: Focus) -> impl Strategy<Value = Step> {
    let slow = match focus {
        Focus::Contention => 6_u8,
        Focus::Extension => 4,
    };
    let kinds = match focus {
        Focus::Contention => [Kind::Any, Kind::Current, Kind::Outdated, Kind::Extension],
        Focus::Extension => [Kind::Current, Kind::Extension, Kind::Extension, Kind::Extension],
    };
    let kind = move || select(kinds.to_vec());
    let pick = || (kind(), any::<u16>()).prop_map(|(kind, number)| Pick { kind, number });
    let who = || any::<u8>();
    prop_oneof![
        6 => (who(), wish(focus)).prop_map(|(who, wish)| Step::Request { who, wish }),
        6 => (pick(), any::<bool>()).prop_map(|(pick, answer)| Step::Execute { pick, answer }),
        6 => (who(), any::<u8>(), any::<u8>()).prop_map(|(who, a, b)| Step::Sweep { who, nodes: a | b }),
        1 => (pick(), any::<bool>()).prop_map(|(pick, told)| Step::LoseRequest { pick, told }),
        1 => (pick(), any::<bool>()).prop_map(|(pick, told)| Step::LoseReply { pick, told }),
        3 => (1..slow).prop_map(|millis| Step::Pass { millis }),
        1 => who().prop_map(|who| Step::PassToTimer { who }),
        1 => who().prop_map(|who| Step::Timeout { who }),
        6 => (who(), any::<u8>(), any::<u8>(), prop::bool::weighted(0.8))
            .prop_map(|(who, a, b, sweep)| Step::Hint { who, nodes: a | b, sweep }),
    ]
}

pub(crate) fn scenario(focus: Focus, lossy: bool) -> impl Strategy<Value = Scenario> {
    let fast_nodes = prop_oneof![vec(any::<bool>(), 1), vec(any::<bool>(), 3), vec(any::<bool>(), 5)];
    let plan = (fast_nodes, select(vec![0, 10]), any::<bool>(), any::<bool>());
    let plan = plan.prop_map(|(fast_nodes, drift_percent, fenced, punctual)| Plan {
        fast_nodes,
        drift_percent,
        fenced,
        punctual,
    });
    let contenders = match focus {
        Focus::Contention => 2..=3,
        Focus::Extension => 1..=2,
    };
    (plan, vec(config(focus), contenders), vec(step(focus), 20..160)).prop_map(
        move |(plan, configs, steps)| {
            let factor = if plan.drift_percent == 0 { 0.0 } else { 0.1 };
            let drifting = |config: Config| config.to_builder().drift_factor(factor).build().unwrap();
            Scenario { plan, configs: configs.into_iter().map(drifting).collect(), lossy, steps }
        },
    )
}
