//! The generated half of a transcript: what the machine did, in few words.

use std::collections::BTreeMap;
use std::fmt::Write;

use redlock_core::{
    Command, CommandId, Error, Event, Instant, Intent, LeaseMachine, Output, ReleaseOutcome, Reply,
    ServerError, Token,
};

use super::parse::{Answer, Input, What};

pub(crate) struct Renderer {
    base: Token,
    sent: BTreeMap<CommandId, Intent>,
}

impl Renderer {
    pub(crate) const fn new(base: Token) -> Self {
        Self { base, sent: BTreeMap::new() }
    }

    pub(crate) fn play(
        &self,
        machine: &mut LeaseMachine,
        input: &Input,
        text: &mut String,
    ) -> Result<(), String> {
        let now = input.now;
        let result = match &input.what {
            What::Acquire(patience) => machine.acquire(now, *patience).map_err(Error::from),
            What::Extend(ttl) => machine.extend(now, *ttl),
            What::Release => machine.release(now).map_err(Error::from),
            What::Abandon => {
                machine.abandon(now);
                Ok(())
            }
            What::Timeout => {
                machine.handle_timeout(now);
                Ok(())
            }
            What::Reply(id, answer) => {
                machine.handle_reply(now, *id, self.reply(*id, answer)?);
                Ok(())
            }
            What::Hint(node) => {
                machine.handle_hint(now, *node);
                Ok(())
            }
            What::State => {
                self.state(machine, now, text);
                Ok(())
            }
        };
        if let Err(error) = result {
            line(text, &format!("error: {error}"));
        }
        Ok(())
    }

    /// The outputs; commands that differ only in id and node share a line.
    pub(crate) fn drain(&mut self, machine: &mut LeaseMachine, text: &mut String) {
        let mut group: Vec<Command> = Vec::new();
        loop {
            let output = machine.poll_output();
            if let Output::Send(command) = output {
                self.sent.insert(command.id, command.intent.clone());
                if group.first().is_some_and(|first| !alike(first, &command)) {
                    self.commands(&mut group, text);
                }
                group.push(command);
                continue;
            }
            self.commands(&mut group, text);
            match output {
                Output::Event(event) => line(text, &event_text(&event)),
                Output::Wait(until) => {
                    let timer = machine.next_timeout();
                    assert_eq!(until, timer.map(|(at, _)| at));
                    let timer = timer.map(|(at, kind)| format!("wait until {} ({kind:?})", time(at)));
                    return line(text, &timer.unwrap_or_else(|| "wait".into()));
                }
                Output::Send(_) => {}
            }
        }
    }

    fn commands(&self, group: &mut Vec<Command>, text: &mut String) {
        let Some(first) = group.first() else { return };
        let token = self.attempt(first.intent.token());
        let what = match &first.intent {
            Intent::SetNxPx { ttl, .. } => format!("set {token} for {:?}", ttl.as_duration()),
            Intent::FencedAcquire { ttl, .. } => format!("fenced set {token} for {:?}", ttl.as_duration()),
            Intent::CompareAndDelete { .. } => format!("delete {token}"),
            Intent::CompareAndPexpire { ttl, .. } => format!("extend {token} to {:?}", ttl.as_duration()),
        };
        let to: Vec<_> = group.iter().map(|command| format!("{} to {}", command.id, command.node)).collect();
        line(text, &format!("{what} by {}: {}", time(first.deadline), to.join(", ")));
        group.clear();
    }

    fn state(&self, machine: &LeaseMachine, now: Instant, text: &mut String) {
        let mut state = format!("{:?}, token {}", machine.state(), self.attempt(machine.token()));
        if let Some(end) = machine.valid_until() {
            let held = if machine.is_held(now) { "held" } else { "not held" };
            let _ = write!(state, ", {held}, valid until {}", time(end));
        }
        if let Some(fence) = machine.fencing_token() {
            let _ = write!(state, ", fencing token {fence}");
        }
        let watched: Vec<_> = machine.watched().map(|node| node.to_string()).collect();
        if !watched.is_empty() {
            let _ = write!(state, ", watch {}", watched.join(", "));
        }
        if machine.is_settled() {
            state.push_str(", settled");
        }
        let stats = machine.stats();
        for (count, what) in [
            (stats.stale_replies, "stale replies"),
            (stats.unknown_replies, "unknown replies"),
            (stats.clock_regressions, "clock regressions"),
            (stats.forgotten_cleanups, "forgotten clean-ups"),
        ] {
            if count > 0 {
                let _ = write!(state, ", {count} {what}");
            }
        }
        line(text, &state);
    }

    /// A token by the number of its attempt.
    fn attempt(&self, token: Token) -> String {
        match (0..100).find(|attempt| self.base.for_attempt(*attempt) == token) {
            Some(attempt) => format!("t{attempt}"),
            None => format!("{token:?}"),
        }
    }

    fn reply(&self, id: CommandId, answer: &Answer) -> Result<Result<Reply, redlock_core::Fault>, String> {
        Ok(Ok(match (answer, self.sent.get(&id)) {
            (Answer::Fault(fault), _) => return Ok(Err(fault.clone())),
            (Answer::Fence(number), _) => Reply::Text(number.to_string().into_bytes().into()),
            (Answer::Error(code), _) => Reply::Error(ServerError::new(code.as_str(), "why")),
            (Answer::Odd, _) => Reply::Array(Vec::new()),
            (Answer::Yes, Some(Intent::SetNxPx { .. })) => Reply::Ok,
            (Answer::No, Some(Intent::SetNxPx { .. })) => Reply::Nil,
            (Answer::Yes, Some(Intent::FencedAcquire { .. })) => return Err(format!("{id}: say fence=N")),
            (Answer::Yes, _) => Reply::Int(1),
            (Answer::No, _) => Reply::Int(0),
        }))
    }
}

fn event_text(event: &Event) -> String {
    match event {
        Event::Acquired { valid_until, fencing, attempt } => {
            let fence = fencing.map(|fence| format!(", fencing token {fence}")).unwrap_or_default();
            format!("acquired until {}, attempt {attempt}{fence}", time(*valid_until))
        }
        Event::AcquireFailed(error) => error.to_string(),
        Event::AttemptFailed { attempt, retry_at, cause } => {
            format!("attempt {attempt} failed, next at {}: {cause}", time(*retry_at))
        }
        Event::Extended { valid_until } => format!("extended until {}", time(*valid_until)),
        Event::ExtendFailed(error) => format!("extend failed: {}", Error::from(error.clone())),
        Event::Renewed { valid_until } => format!("renewed until {}", time(*valid_until)),
        Event::RenewFailed { failures, retry_at, cause } => {
            format!("renewal failure {failures}, next at {}: {cause}", time(*retry_at))
        }
        Event::Lost { reason } => format!("lost: {reason}"),
        Event::Released(ReleaseOutcome::Released) => "released".into(),
        Event::Released(ReleaseOutcome::AlreadyExpired) => "released, but already expired".into(),
        Event::ReleaseFailed(error) => format!("release failed: {error}"),
        _ => format!("{event:?}"),
    }
}

fn alike(one: &Command, other: &Command) -> bool {
    one.intent == other.intent && one.deadline == other.deadline
}

fn time(at: Instant) -> String {
    format!("{:?}", at.since_epoch())
}

fn line(text: &mut String, line: &str) {
    text.push_str("    ");
    text.push_str(line);
    text.push('\n');
}
