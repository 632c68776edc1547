//! What happens, in words, for the trace.

use std::time::Duration;

use redlock_core::{CommandId, Event, Fault, Instant, Intent, Patience, Reply};

use super::agenda::Request;
use super::rumours::HintOptions;
use super::stage::Stage;
use crate::clock::show;
use crate::options::Options;

/// What a scenario is made of.
pub(super) fn options(options: &Options, hints: &HintOptions) -> String {
    let speeds: Vec<String> = options.servers.iter().map(|ppm| speed((*ppm).into())).collect();
    let mut text = format!(
        "servers with clocks {}; drift factor {}",
        speeds.join(", "),
        percent(options.drift_ppm.into())
    );
    for (number, client) in options.clients.iter().enumerate() {
        let config = &client.config;
        let handles = if client.handles.len() == 1 {
            "one handle".to_owned()
        } else {
            format!("{} handles", client.handles.len())
        };
        text += &format!(
            "\n{}: {handles}, clock {}, ttl {} ms, {} attempts, retry delay {} ms, operation timeout {} ms",
            Stage::client_name(number),
            speed(client.clock.drift_ppm()),
            config.ttl().as_millis(),
            config.attempts(),
            millis(config.retry_delay()),
            millis(config.operation_timeout()),
        );
        if let Some(max_hold) = config.max_hold() {
            text += &format!(", longest hold {} ms", millis(max_hold));
        }
        let route = &options.routes[number];
        if route.iter().enumerate().any(|(node, server)| node != *server) {
            text += &format!(", whose nodes are the servers {route:?}");
        }
    }
    let network = &options.network;
    let (low, high) = network.delay;
    text += &format!("\nnetwork: {} to {} ms", show(low), show(high));
    let chances = [
        ("stragglers", network.straggler),
        ("lost requests", network.lose_request),
        ("lost answers", network.lose_reply),
        ("repeated answers", network.repeat_reply),
        ("repeated requests", network.repeat_request),
        ("garbled answers", network.garble),
    ];
    for (name, chance) in chances.into_iter().filter(|(_, chance)| *chance > 0) {
        text += &format!(", {name} {}", percent(i64::try_from(chance * 1_000).unwrap_or_default()));
    }
    if network.in_order {
        text += ", in order";
    }
    if hints.wanted {
        let (low, high) = hints.delay;
        text += &format!("\nhints: {} to {} ms", show(low), show(high));
        let chances = [
            ("lost", hints.lose),
            ("repeated", hints.repeat),
            ("late", hints.straggler),
            ("made up", hints.made_up),
        ];
        for (name, chance) in chances.into_iter().filter(|(_, chance)| *chance > 0) {
            text += &format!(", {name} {}", percent(i64::try_from(chance * 1_000).unwrap_or_default()));
        }
    }
    text += &format!(
        "\ntroubles: {:?}; timers late by up to {} ms\n",
        options.troubles,
        show(options.habits.tardy)
    );
    text
}

/// How fast a clock is.
fn speed(ppm: i64) -> String {
    if ppm == 0 { "exact".to_owned() } else { format!("{:+.3} %", ppm as f64 / 10_000.0) }
}

fn percent(ppm: i64) -> String {
    format!("{} %", ppm as f64 / 10_000.0)
}

fn millis(span: Duration) -> String {
    show(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

pub(super) fn acquire(patience: Patience, shown: Instant) -> String {
    match patience {
        Patience::Attempts(0 | 1) => "asks for the lease, once".to_owned(),
        Patience::Attempts(attempts) => format!("asks for the lease, {attempts} times"),
        Patience::Until(end) => format!("asks for the lease, for {} ms", millis(end.saturating_since(shown))),
    }
}

pub(super) fn extend(ttl: Duration) -> String {
    format!("asks to extend to {} ms", millis(ttl))
}

/// A command as `A #3 set-nx-px A1 100 ms`.
pub(super) fn command(stage: &Stage, request: &Request) -> String {
    let intent = &request.command.intent;
    let ttl = match intent {
        Intent::SetNxPx { ttl, .. }
        | Intent::FencedAcquire { ttl, .. }
        | Intent::CompareAndPexpire { ttl, .. } => {
            format!(" {} ms", ttl.as_millis())
        }
        Intent::CompareAndDelete { .. } => String::new(),
    };
    let (name, id, token) =
        (stage.name(request.handle), request.command.id, stage.token_name(intent.token()));
    format!("{name} {id} {} {token}{ttl}", intent.name())
}

pub(super) fn sent(stage: &Stage, request: &Request, arrives: Option<u64>) -> String {
    let fate = arrives.map_or_else(|| "never arrives".to_owned(), |at| format!("arrives at {}", show(at)));
    let breaks = if request.answered { "" } else { ", and its answer gets lost" };
    format!("  {} -> server {}: {fate}{breaks}", command(stage, request), request.server)
}

pub(super) fn done(stage: &Stage, request: &Request, result: &Result<Reply, Fault>) -> String {
    format!("server {}: {} = {}", request.server, command(stage, request), outcome(result))
}

pub(super) fn heard(
    stage: &Stage,
    handle: usize,
    id: CommandId,
    taken_for: CommandId,
    result: &Result<Reply, Fault>,
) -> String {
    let mistake =
        if id == taken_for { String::new() } else { format!(", taken for the answer to {taken_for}") };
    format!("{} hears {id} = {}{mistake}", stage.name(handle), outcome(result))
}

pub(super) fn event(stage: &Stage, handle: usize, event: &Event) -> String {
    let until = |end: &Instant| format!("until {}", show(stage.when(handle, *end)));
    let what = match event {
        Event::Acquired { valid_until, fencing, .. } => {
            let fencing = fencing.map_or_else(String::new, |token| format!(", fencing token {token}"));
            format!("HOLDS the lease {}{fencing}", until(valid_until))
        }
        Event::AcquireFailed(failure) => format!("does not get the lease: {}", failure.reason),
        Event::AttemptFailed { attempt, cause, .. } => {
            format!("fails at attempt {attempt}: {}", cause.reason)
        }
        Event::Extended { valid_until } => format!("has extended, HOLDS {}", until(valid_until)),
        Event::ExtendFailed(error) => {
            format!("has not extended: {}", redlock_core::Error::from(error.clone()))
        }
        Event::Renewed { valid_until } => format!("has renewed, HOLDS {}", until(valid_until)),
        Event::RenewFailed { failures, .. } => format!("has not renewed, {failures} in a row"),
        Event::Lost { reason } => format!("has LOST the lease: {reason}"),
        Event::Released(outcome) => format!("has released: {outcome:?}"),
        Event::ReleaseFailed(error) => format!("does not know whether it has released: {error}"),
        _ => format!("{event:?}"),
    };
    format!("{} {what}", stage.name(handle))
}

fn outcome(result: &Result<Reply, Fault>) -> String {
    match result {
        Ok(Reply::Ok) => "OK".to_owned(),
        Ok(Reply::Nil) => "nil".to_owned(),
        Ok(Reply::Int(number)) => number.to_string(),
        Ok(Reply::Text(text)) => format!("\"{}\"", String::from_utf8_lossy(text)),
        Ok(Reply::Error(error)) => format!("-{} {}", error.code(), error.message()),
        Ok(_) => "something odd".to_owned(),
        Err(Fault::NotExecuted(cause)) => format!("{cause}, not carried out"),
        Err(Fault::Unknown(cause)) => format!("{cause}, fate unknown"),
    }
}
