//! The written half of a transcript: settings and inputs.

use std::time::Duration;

use redlock_core::{
    Cause, CauseKind, CommandId, Config, Fault, Instant, LeaseMachine, LeaseSpec, NodeId, Patience, Token,
};

use super::render::Renderer;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

#[derive(Clone)]
pub(crate) struct Settings {
    nodes: usize,
    fencing: bool,
    seed: u64,
    config: redlock_core::ConfigBuilder,
}

/// What is fed to the machine.
pub(crate) struct Input {
    pub(crate) now: Instant,
    pub(crate) what: What,
}

pub(crate) enum What {
    Acquire(Patience),
    Extend(Duration),
    Release,
    Abandon,
    Timeout,
    Reply(CommandId, Answer),
    Hint(NodeId),
    /// Show what the getters say.
    State,
}

#[derive(Clone)]
pub(crate) enum Answer {
    Yes,
    No,
    Fence(u64),
    Fault(Fault),
    Error(String),
    Odd,
}

impl Default for Settings {
    fn default() -> Self {
        Self { nodes: 3, fencing: false, seed: 1, config: Config::builder().ttl(Duration::from_secs(10)) }
    }
}

impl Settings {
    pub(crate) fn machine(&self) -> (LeaseMachine, Renderer) {
        let names = NAMES.map(Into::into)[..self.nodes].to_vec();
        let spec = LeaseSpec::new("lock", names, self.config.clone().build().unwrap()).unwrap();
        let spec = if self.fencing { spec.with_fencing("fence").unwrap() } else { spec };
        let base = Token::from_bytes([7; Token::LEN]);
        (LeaseMachine::new(spec, base, self.seed), Renderer::new(base))
    }
}

/// Reads a line of settings: `name value, name value, ...`.
pub(crate) fn settings(line: &str, into: &mut Settings) -> Result<(), String> {
    for setting in line.split(", ") {
        let (name, value) = setting.split_once(' ').unwrap_or((setting, ""));
        let config = into.config.clone();
        into.config = match name {
            "ttl" => config.ttl(span(value)?),
            "retry_delay" => config.retry_delay(span(value)?),
            "drift" => config.drift_factor(value.parse().map_err(|_| format!("drift {value}?"))?),
            "operation_timeout" => config.operation_timeout(span(value)?),
            "auto_renew" if value.is_empty() => config.auto_renew(redlock_core::Renewal::ThirdOfTtl),
            "auto_renew" => config.auto_renew(span(value)?),
            "renew_attempts" => config.renew_attempts(number(value)?),
            "max_hold" => config.max_hold(span(value)?),
            "repair" => config.repair(true),
            _ => config,
        };
        match name {
            "nodes" => into.nodes = number(value)?,
            "fencing" => into.fencing = true,
            "seed" => into.seed = number(value)?,
            "ttl" | "retry_delay" | "drift" | "operation_timeout" | "auto_renew" | "renew_attempts"
            | "max_hold" | "repair" => {}
            _ => return Err(format!("unknown setting {setting:?}")),
        }
    }
    Ok(())
}

/// Reads `TIME INPUT; INPUT; ...`: all at the same time, drained together.
pub(crate) fn inputs(line: &str) -> Result<Vec<Input>, String> {
    let (time, line) = line.split_once(' ').ok_or("an input is missing")?;
    let now = instant(time)?;
    line.split("; ").map(|input| Ok(Input { now, what: what(input)? })).collect()
}

fn what(input: &str) -> Result<What, String> {
    let (verb, rest) = input.split_once(' ').unwrap_or((input, ""));
    Ok(match verb {
        "acquire" => What::Acquire(match rest.split_once('=') {
            Some(("attempts", count)) => Patience::Attempts(number(count)?),
            Some(("until", end)) => Patience::Until(instant(end)?),
            _ => return Err(format!("{input:?}: attempts=N or until=TIME")),
        }),
        "extend" => What::Extend(span(rest)?),
        "release" => What::Release,
        "abandon" => What::Abandon,
        "timeout" => What::Timeout,
        "state" => What::State,
        "hint" => What::Hint(NodeId::new(number(rest)?)),
        "reply" => {
            let (id, text) = rest.split_once(' ').ok_or_else(|| format!("{input:?}: which, and what?"))?;
            let id = CommandId::new(number(id.strip_prefix('#').unwrap_or(id))?);
            What::Reply(id, answer(text)?)
        }
        _ => return Err(format!("unknown input {input:?}")),
    })
}

fn answer(text: &str) -> Result<Answer, String> {
    let unknown = |kind| Answer::Fault(Fault::Unknown(Cause::new(kind)));
    Ok(match text.split_once('=').unwrap_or((text, "")) {
        ("yes", _) => Answer::Yes,
        ("no", _) => Answer::No,
        ("fence", value) => Answer::Fence(number(value)?),
        ("refused", _) => {
            let cause = Cause::with_detail(CauseKind::Unreachable, "connection refused");
            Answer::Fault(Fault::NotExecuted(cause))
        }
        ("timeout", _) => unknown(CauseKind::Timeout),
        ("broken", _) => unknown(CauseKind::Disconnected),
        ("error", code) => Answer::Error(code.into()),
        ("odd", _) => Answer::Odd,
        _ => return Err(format!("unknown answer {text:?}")),
    })
}

fn instant(text: &str) -> Result<Instant, String> {
    span(text).map(Instant::from_epoch)
}

fn span(text: &str) -> Result<Duration, String> {
    if text == "max" {
        return Ok(Duration::MAX);
    }
    let unit = text.trim_start_matches(|character: char| character.is_ascii_digit());
    let count = number(&text[..text.len() - unit.len()])?;
    match unit {
        "us" => Ok(Duration::from_micros(count)),
        "ms" => Ok(Duration::from_millis(count)),
        "s" => Ok(Duration::from_secs(count)),
        _ => Err(format!("{text:?} is no time")),
    }
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{text:?} is no number"))
}
