//! What the library has to tell, in words for standard error.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::metadata::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber, subscriber};

use crate::voice::Voice;

/// Hears what the library logs: renewals, failed attempts, nodes that go and come back.
///
/// The loss of a lease comes with its reason, but without what the nodes said in the last renewals; that is
/// remembered here.
#[derive(Clone)]
pub(crate) struct Narrator {
    voice: Voice,
    heard: Arc<Mutex<Heard>>,
}

#[derive(Default)]
struct Heard {
    /// Why the last attempt failed.
    last_failure: String,
    /// Why renewals have failed since the last one that did not.
    trouble: Option<String>,
}

impl Narrator {
    /// Begins to listen.
    pub(crate) fn listen(voice: Voice) -> Self {
        let narrator = Self { voice, heard: Arc::default() };
        // It fails only if somebody else listens already, and nobody does.
        let _ = subscriber::set_global_default(narrator.clone());
        narrator
    }

    /// Why the last renewals failed, if they did.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).trouble.clone()
    }
}

impl Subscriber for Narrator {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::DEBUG && metadata.target().starts_with(LIBRARY)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }

    fn event(&self, event: &Event<'_>) {
        let mut telling = Telling::default();
        event.record(&mut telling);
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        match telling.message.as_str() {
            "renewal failed" => heard.trouble = Some(telling.cause.clone()),
            "renewed" | "acquired" => heard.trouble = None,
            _ => {}
        }
        if !self.voice.is_verbose() || TOLD_ELSEWHERE.contains(&telling.message.as_str()) {
            return;
        }
        if telling.message == "attempt failed" {
            // Attempt after attempt fails for the same reason, said by other nodes.
            let reason = telling.cause.split(": ").next().unwrap_or_default();
            if heard.last_failure == reason {
                return;
            }
            reason.clone_into(&mut heard.last_failure);
        }
        self.voice.say(telling.line());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// One event, as far as it interests people.
#[derive(Default)]
struct Telling {
    message: String,
    node: String,
    valid_for: String,
    cause: String,
}

impl Telling {
    fn line(&self) -> String {
        let mut line = self.message.clone();
        if !self.node.is_empty() {
            line = format!("{}: {line}", self.node);
        }
        if !self.valid_for.is_empty() {
            line.push_str(&format!(", valid for {}", self.valid_for));
        }
        if !self.cause.is_empty() {
            line.push_str(&format!(": {}", self.cause));
        }
        line
    }
}

impl Visit for Telling {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "valid_for" => self.valid_for = format!("{value:.1?}"),
            "cause" | "error" => self.cause = format!("{value:?}"),
            "node" => self.node = format!("{value:?}"),
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "node" {
            value.clone_into(&mut self.node);
        }
    }
}

/// Where the library's events come from.
const LIBRARY: &str = "redlock_driver";

/// What the program says in its own words.
const TOLD_ELSEWHERE: [&str; 6] =
    ["acquired", "not acquired", "lost", "given up", "released", "not known to be released"];
