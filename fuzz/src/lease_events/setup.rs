//! From the first bytes: who contends, under which settings, on which nodes.

use std::time::Duration;

use redlock_core::{Config, LeaseSpec, Renewal, Ttl};

use crate::bytes::Bytes;

#[derive(Debug)]
pub(crate) struct Setup {
    /// Whether the nodes are real ones in memory, or say what they like.
    pub(crate) honest: bool,
    /// Whether each machine has a twin that is drained late.
    pub(crate) twins: bool,
    pub(crate) nodes: Vec<NodeClock>,
    pub(crate) contenders: Vec<Settings>,
    pub(crate) drift: Drift,
}

/// How fast a node's clock runs, compared to that of the contenders.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NodeClock {
    Exact,
    /// As fast as the drift factor allows.
    Fast,
    Slow,
}

/// The drift factor, in millionths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drift(pub(crate) u32);

impl Drift {
    /// `ttl - ceil(ttl * factor) - 2 ms`, and nothing for what is less.
    pub(crate) fn validity(self, ttl: Ttl) -> Duration {
        let drift = (u128::from(ttl.as_millis()) * u128::from(self.0)).div_ceil(MILLION);
        let drift = u64::try_from(drift).expect("less than the ttl");
        Duration::from_millis(ttl.as_millis().saturating_sub(drift).saturating_sub(2))
    }

    /// By how much the fastest clock gains.
    pub(crate) fn parts_per_million(self) -> i32 {
        i32::try_from(self.0).expect("a fraction of a million")
    }

    fn factor(self) -> f64 {
        f64::from(self.0) / 1e6
    }
}

/// What a contender was configured with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) spec: LeaseSpec,
    pub(crate) renews: bool,
    pub(crate) renew_attempts: Option<u32>,
}

pub(crate) fn decode(bytes: &mut Bytes<'_>) -> Setup {
    let honest = bytes.flag();
    let twins = bytes.flag();
    let count = [1, 3, 5][usize::from(bytes.below(3))];
    let clock = [NodeClock::Exact, NodeClock::Fast, NodeClock::Slow];
    let nodes = (0..count).map(|_| clock[usize::from(bytes.below(3))]).collect();
    let drift = Drift([0, 10_000, 100_000, 333_333][usize::from(bytes.below(4))]);
    let fenced = count == 1 && bytes.flag();
    let contenders = (0..=bytes.below(3)).map(|_| settings(bytes, count, drift, fenced)).collect();
    Setup { honest, twins, nodes, contenders, drift }
}

fn settings(bytes: &mut Bytes<'_>, nodes: usize, drift: Drift, fenced: bool) -> Settings {
    let ttl = ttl(bytes);
    let mut builder = Config::builder().ttl(ttl).drift_factor(drift.factor());
    builder = builder.retry_delay(ms(u64::from(bytes.below(32))));
    let timeout = bytes.byte();
    if timeout != 0 {
        builder = builder.operation_timeout(Duration::from_micros(1_000 + 333 * u64::from(timeout)));
    }
    let (switches, amount) = (bytes.byte(), bytes.byte());
    let renewal = match switches & 3 {
        0 | 2 => Renewal::Off,
        1 => Renewal::ThirdOfTtl,
        _ => {
            let half = drift.validity(Ttl::new(ttl).expect("a ttl within bounds")) / 2;
            Renewal::Every(ms(1 + u64::from(amount)).min(half))
        }
    };
    builder = builder.auto_renew(renewal);
    let renew_attempts = (switches & 4 != 0).then_some(1 + u32::from(amount % 4));
    if let Some(attempts) = renew_attempts {
        builder = builder.renew_attempts(attempts);
    }
    if switches & 8 != 0 {
        builder = builder.max_hold(ms(1 + 2 * u64::from(amount)));
    }
    let config = builder.repair(switches & 16 != 0).build().expect("settings within their bounds");
    let names = (0..nodes).map(|number| format!("n{number}").into()).collect::<Vec<_>>();
    let mut spec = LeaseSpec::new("lock", names, config).expect("an odd number of nodes");
    if fenced {
        spec = spec.with_fencing("fence").expect("one node");
    }
    Settings { spec, renews: renewal != Renewal::Off, renew_attempts }
}

/// From 8 ms, of which any drift here leaves something, to about a second, or the longest there is.
fn ttl(bytes: &mut Bytes<'_>) -> Duration {
    match bytes.byte() {
        u8::MAX => Ttl::MAX,
        byte => ms(8 + 4 * u64::from(byte)),
    }
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const MILLION: u128 = 1_000_000;
