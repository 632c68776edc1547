//! A path as people read it.

use std::fmt::Write;

use redlock_core::{Event, Fault, Instant, Intent, Reply, Token};
use stateright::Path;

use crate::setup::{base, instant};
use crate::{Action, Request, Setup, World};

/// The path, one line for each thing that happens, and what comes of it.
pub(crate) fn timeline(setup: &Setup, path: Path<World, Action>) -> String {
    let steps = path.into_vec();
    let mut text = String::new();
    for pair in steps.windows(2) {
        let [(world, Some(action)), (next, _)] = pair else { continue };
        let told = next.news.events.iter().map(|(who, event)| format!("{}: {}", name(*who), tell(event)));
        let mut line = |at: Instant, what: String| writeln!(text, "{:>3} ms  {what}", millis(at)).unwrap();
        match action {
            Action::Tick | Action::Close => told.for_each(|what| line(next.instant(), what)),
            _ => line(
                world.instant(),
                told.fold(describe(setup, world, *action), |line, what| line + "; " + &what),
            ),
        }
    }
    if let Some((last, _)) = steps.last() {
        let holders: Vec<String> = last.holders().map(|who| holding(last, who)).collect();
        writeln!(text, "{:>3} ms  held by: {}", millis(last.instant()), holders.join(", ")).unwrap();
        if let Some(flaw) = last.flaw {
            writeln!(text, "        {flaw}").unwrap();
        }
    }
    text
}

fn describe(setup: &Setup, world: &World, action: Action) -> String {
    let sent =
        |who, node, position: usize| command(&world.line(setup, who, node).flights[position].command.intent);
    match action {
        Action::Tick | Action::Close => "time goes on".to_owned(),
        Action::Ask { who, request } => format!("{} asks to {}", name(who), asked(request)),
        Action::Hint { who, node } => format!("{} is told that its key may have gone at n{node}", name(who)),
        Action::Wake { who } => format!("{} handles a timer", name(who)),
        Action::Execute { who, node, position } => {
            let after = world.after(setup, action);
            let answer = after.line(setup, who, node).flights[position].answer.as_ref();
            format!("n{node} carries out {}: {}", sent(who, node, position), answered(answer))
        }
        Action::Exchange { who, node, ahead } => {
            let first = if ahead > 0 { format!("{ahead} of the other's, then ") } else { String::new() };
            format!("n{node} carries out {first}{} and answers", sent(who, node, 0))
        }
        Action::Answer { who, node, position } => {
            let answer = world.line(setup, who, node).flights[position].answer.as_ref();
            let to = sent(who, node, position);
            format!("{} hears from n{node} on {to}: {}", name(who), answered(answer))
        }
        Action::Refuse { who, node, position } => format!("n{node} refuses {}", sent(who, node, position)),
        Action::Break { who, node } => format!("the connection of {} to n{node} breaks", name(who)),
        Action::Haunt { who, node, position } => {
            format!(
                "n{node} carries out a lost {}",
                command(&world.line(setup, who, node).ghosts[position].intent)
            )
        }
        Action::Lapse { server } => format!("the key at server {server} goes early"),
        Action::Forget { server } => format!("server {server} restarts without its data"),
        Action::Jump { server } => format!("the clock of server {server} jumps forward"),
    }
}

fn asked(request: Request) -> String {
    match request {
        Request::Acquire => "acquire".to_owned(),
        Request::Extend(ttl) => format!("extend by {} ms", millis(instant(ttl))),
        Request::Release => "release".to_owned(),
        Request::Abandon => "be left alone".to_owned(),
    }
}

fn answered(answer: Option<&Result<Reply, Fault>>) -> &'static str {
    match answer {
        Some(Ok(Reply::Ok | Reply::Int(1) | Reply::Text(_))) => "yes",
        Some(Ok(_)) => "no",
        Some(Err(_)) | None => "fault",
    }
}

fn tell(event: &Event) -> String {
    match event {
        Event::Acquired { valid_until, .. } => format!("acquired until {} ms", millis(*valid_until)),
        Event::AttemptFailed { attempt, .. } => format!("attempt {attempt} failed"),
        Event::AcquireFailed(failure) => format!("not acquired, {}", failure.reason),
        Event::Extended { valid_until } => format!("extended until {} ms", millis(*valid_until)),
        Event::Renewed { valid_until } => format!("renewed until {} ms", millis(*valid_until)),
        Event::Lost { reason } => format!("lost, {reason}"),
        other => format!("{other:?}"),
    }
}

fn command(intent: &Intent) -> String {
    let verb = match intent {
        Intent::SetNxPx { .. } | Intent::FencedAcquire { .. } => "set",
        Intent::CompareAndDelete { .. } => "delete",
        Intent::CompareAndPexpire { .. } => "extend",
    };
    format!("{verb} {}", token(intent.token()))
}

/// The client's letter and the number of the attempt.
fn token(token: Token) -> String {
    let bytes = token.as_bytes();
    format!("{}{}", char::from(bytes[0]), bytes[Token::LEN - 1])
}

fn holding(world: &World, who: usize) -> String {
    let end = world.clients[who].machine.valid_until().map(millis).unwrap_or_default();
    format!("{} until {end} ms", name(who))
}

fn name(who: usize) -> char {
    char::from(base(who).as_bytes()[0])
}

fn millis(at: Instant) -> u128 {
    at.since_epoch().as_millis()
}
