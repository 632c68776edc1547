//! Arbitrary inputs for one machine: any request at any time, any answer to any command.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use redlock_core::{Cause, CauseKind, Config, Fault, Intent, LeaseSpec, Reply, ServerError};

/// One input, when it comes, and whether the lazy driver drains after it.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) time: Time,
    pub(crate) input: Input,
    pub(crate) drain: bool,
}

/// How the clock moves before an input.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Time {
    Forward(Duration),
    Back(Duration),
    /// To the next timer, plus this much.
    Timer(Duration),
}

#[derive(Clone, Debug)]
pub(crate) enum Input {
    Acquire {
        attempts: u32,
        patience: Option<Duration>,
    },
    Extend(Duration),
    Release,
    Abandon,
    Timeout,
    /// About these nodes, one after the other, and whether there are so many or not.
    Hint {
        nodes: u8,
    },
    /// To a command that is not answered yet, counted from the newest.
    Reply {
        age: u16,
        answer: Answer,
    },
    /// To any command so far, answered or not.
    Again {
        age: u16,
        answer: Answer,
    },
    /// To a command that there never was.
    Bogus {
        beyond: u32,
        answer: Answer,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Yes,
    No,
    NotExecuted,
    Unknown,
    /// Whatever shape.
    Odd(Reply),
}

impl Answer {
    /// As an answer to this intent.
    pub(crate) fn to(&self, intent: &Intent) -> Result<Reply, Fault> {
        match self {
            Self::Yes => Ok(match intent {
                Intent::SetNxPx { .. } => Reply::Ok,
                Intent::FencedAcquire { .. } => Reply::Text(b"7".as_slice().into()),
                Intent::CompareAndDelete { .. } | Intent::CompareAndPexpire { .. } => Reply::Int(1),
            }),
            Self::No if matches!(intent, Intent::SetNxPx { .. }) => Ok(Reply::Nil),
            Self::No => Ok(Reply::Int(0)),
            Self::NotExecuted => Err(Fault::NotExecuted(Cause::new(CauseKind::Unreachable))),
            Self::Unknown => Err(Fault::Unknown(Cause::new(CauseKind::Disconnected))),
            Self::Odd(reply) => Ok(reply.clone()),
        }
    }
}

fn answer() -> impl Strategy<Value = Answer> {
    let odd = prop_oneof![
        Just(Reply::Nil),
        Just(Reply::Ok),
        Just(Reply::Other),
        any::<i64>().prop_map(Reply::Int),
        "[0-9+-]{0,21}".prop_map(|text| Reply::Text(text.into_bytes().into())),
        select(vec!["READONLY", "LOADING", "ERR", "OOM"])
            .prop_map(|code| Reply::Error(ServerError::new(code, "why"))),
        vec(Just(Reply::Int(1)), 0..3).prop_map(Reply::Array),
    ];
    prop_oneof![
        16 => Just(Answer::Yes),
        3 => Just(Answer::No),
        1 => Just(Answer::NotExecuted),
        1 => Just(Answer::Unknown),
        1 => odd.prop_map(Answer::Odd),
    ]
}

fn instant() -> impl Strategy<Value = Duration> {
    prop_oneof![2 => Just(Duration::ZERO), 1 => (0..3_000_u64).prop_map(Duration::from_micros)]
}

fn span() -> impl Strategy<Value = Duration> {
    prop_oneof![
        4 => instant(),
        4 => (0..2_000_u64).prop_map(Duration::from_millis),
        1 => (0..1_u64 << 40).prop_map(Duration::from_secs),
    ]
}

fn ttl() -> impl Strategy<Value = Duration> {
    prop_oneof![
        4 => (4..200_u64).prop_map(Duration::from_millis),
        12 => (200..20_000_u64).prop_map(Duration::from_millis),
        1 => (4_000..9_000_u64).prop_map(Duration::from_micros),
        1 => any::<Duration>(),
    ]
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let time = prop_oneof![
        30 => instant().prop_map(Time::Forward),
        1 => span().prop_map(Time::Forward),
        1 => span().prop_map(Time::Back),
        1 => span().prop_map(Time::Timer),
        3 => Just(Time::Timer(Duration::ZERO)),
    ];
    let age = || prop_oneof![6 => 0..6_u16, 1 => any::<u16>()];
    let input = prop_oneof![
        5 => (0..4_u32, option::of(span())).prop_map(|(attempts, patience)| Input::Acquire { attempts, patience }),
        8 => ttl().prop_map(Input::Extend),
        1 => Just(Input::Release),
        1 => Just(Input::Abandon),
        4 => Just(Input::Timeout),
        8 => any::<u8>().prop_map(|nodes| Input::Hint { nodes }),
        40 => (age(), answer()).prop_map(|(age, answer)| Input::Reply { age, answer }),
        2 => (age(), answer()).prop_map(|(age, answer)| Input::Again { age, answer }),
        1 => (any::<u32>(), answer()).prop_map(|(beyond, answer)| Input::Bogus { beyond, answer }),
    ];
    (time, input, any::<bool>()).prop_map(|(time, input, drain)| Step { time, input, drain })
}

/// Any valid settings on 1, 3 or 5 nodes.
pub(crate) fn spec() -> impl Strategy<Value = LeaseSpec> {
    let ms = |range: Range<u64>| range.prop_map(Duration::from_millis);
    let renewal = option::weighted(0.7, option::of(ms(1..400)));
    let drift = prop_oneof![3 => Just(0.01), 1 => 0.0..0.9_f64];
    let limits = (option::of(1..4_u32), option::weighted(0.2, ms(1..3_000)), any::<bool>());
    let config = (ttl(), ms(0..500), drift, option::of(ms(1..600)), renewal, limits).prop_filter_map(
        "settings that contradict each other",
        |(ttl, retry_delay, drift, operation_timeout, renewal, (renew_attempts, max_hold, repair))| {
            let mut builder =
                Config::builder().ttl(ttl).retry_delay(retry_delay).drift_factor(drift).repair(repair);
            if let Some(timeout) = operation_timeout {
                builder = builder.operation_timeout(timeout);
            }
            if let Some(interval) = renewal {
                builder = builder.auto_renew(interval.map_or(redlock_core::Renewal::ThirdOfTtl, Into::into));
            }
            if let Some(attempts) = renew_attempts {
                builder = builder.renew_attempts(attempts);
            }
            if let Some(max_hold) = max_hold {
                builder = builder.max_hold(max_hold);
            }
            builder.build().ok()
        },
    );
    (config, select(vec![1, 3, 5]), any::<bool>()).prop_map(|(config, nodes, fenced)| {
        let names: Arc<[Arc<str>]> = (0..nodes).map(|node| format!("n{node}").into()).collect();
        let spec = LeaseSpec::new("lock", names, config).unwrap();
        if fenced && nodes == 1 { spec.with_fencing("fence").unwrap() } else { spec }
    })
}
