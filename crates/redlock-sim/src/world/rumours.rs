//! Hints: what waiting clients are told of a key, and what becomes of that on the way.
//!
//! A server tells everybody who waits for a key when that is changed, whatever the change is, and when it
//! expires. Some of that gets lost, comes twice or comes late, and some of what is told is not true.

use redlock_core::{Command, Intent, NodeId, Reply};

use super::agenda::{Happening, Hint, Request};
use super::network::Way;
use super::server::Condition;
use super::{Step, World};
use crate::choices::Choices;
use crate::summary::Mark;

/// What waiting clients are told of keys. Chances are per mille, spans in true nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct HintOptions {
    /// Whether anybody wants to be told at all.
    pub(super) wanted: bool,
    pub(super) delay: (u64, u64),
    pub(super) lose: u64,
    pub(super) repeat: u64,
    /// Chance of a hint that takes long, and how long.
    pub(super) straggler: u64,
    pub(super) straggle: u64,
    /// Chance, at each command that is carried out, of a hint that nothing has led to.
    pub(super) made_up: u64,
    /// How late servers may find out that a key has expired.
    pub(super) expiry: u64,
}

#[derive(Debug)]
pub(super) struct Rumours {
    options: HintOptions,
    /// Apart from all other choices: what becomes of commands does not depend on what is told.
    choices: Choices,
}

impl HintOptions {
    /// Drawn apart from all else, so that without hints a seed means what it meant before there were any.
    pub(super) fn draw(choices: &mut Choices, ttl: u64) -> Self {
        Self {
            wanted: choices.chance(700),
            delay: (ttl / 500, choices.pick(&[ttl / 50, ttl / 200, ttl / 10])),
            lose: choices.pick(&[0, 100, 500]),
            repeat: choices.pick(&[0, 100, 500]),
            straggler: choices.pick(&[0, 100, 500]),
            straggle: ttl,
            made_up: choices.pick(&[0, 50, 500]),
            expiry: choices.pick(&[0, ttl / 50, ttl / 4]),
        }
    }
}

impl Rumours {
    pub(super) const fn new(options: HintOptions, choices: Choices) -> Self {
        Self { options, choices }
    }
}

impl World {
    /// A server has done what it was asked to.
    pub(super) fn spread(&mut self, request: &Request, reply: &Reply) {
        if !self.rumours.options.wanted {
            return;
        }
        if changes(&request.command, reply) {
            let key = &request.command.key;
            for handle in 0..self.stage.handles.len() {
                if self.stage.key(handle) == key.as_ref() {
                    self.watched_at(handle, request.server)
                        .into_iter()
                        .for_each(|node| self.tell(handle, node));
                }
            }
        }
        let (options, choices) = (&self.rumours.options, &mut self.rumours.choices);
        if !self.healing && choices.chance(options.made_up) {
            let handle = choices.index(self.stage.handles.len());
            let nodes = self.stage.clients[self.stage.handles[handle].client].route.len();
            let node = self.rumours.choices.index(nodes);
            self.summary.count(Mark::HintMadeUp);
            self.tell(handle, NodeId::new(u8::try_from(node).unwrap_or_default()));
        }
    }

    /// A handle begins to wait: it looks at the keys that are in its way.
    pub(super) fn look_out(&mut self, handle: usize) {
        if !self.rumours.options.wanted {
            return;
        }
        for server in 0..self.stage.servers.len() {
            for node in self.watched_at(handle, server) {
                match self.stage.servers[server].stays_until(self.stage.now, self.stage.key(handle)) {
                    None => self.tell(handle, node),
                    Some(until) => {
                        let life = self.stage.handles[handle].life;
                        let late = self.rumours.choices.between(0, self.rumours.options.expiry);
                        let expires = Happening::Expires(Hint { handle, life, node });
                        self.agenda.add(until.saturating_add(late), expires);
                    }
                }
            }
        }
    }

    /// Whether a key that may have expired is of interest to anybody.
    pub(super) fn awaits(&self, hint: Hint) -> bool {
        let handle = &self.stage.handles[hint.handle];
        handle.life == hint.life && handle.machine.watched().any(|node| node == hint.node)
    }

    /// A key that somebody waits for has expired, unless its life was prolonged.
    pub(super) fn expire(&mut self, hint: Hint) {
        let server = self.stage.clients[self.stage.handles[hint.handle].client].route[hint.node.index()];
        let silent = matches!(
            self.stage.servers[server].condition,
            Condition::Frozen | Condition::Down | Condition::Away
        );
        match self.stage.servers[server].stays_until(self.stage.now, self.stage.key(hint.handle)) {
            None if silent => {}
            None => self.tell(hint.handle, hint.node),
            Some(until) => self.agenda.add(until.max(self.stage.now + 1), Happening::Expires(hint)),
        }
    }

    /// The nodes of a handle that are this server and whose key it would like to hear of.
    fn watched_at(&self, handle: usize, server: usize) -> Vec<NodeId> {
        let handle = &self.stage.handles[handle];
        let route = &self.stage.clients[handle.client].route;
        handle.machine.watched().filter(|node| route[node.index()] == server).collect()
    }

    /// A hint leaves its server.
    fn tell(&mut self, handle: usize, node: NodeId) {
        let Rumours { options, choices } = &mut self.rumours;
        let (client, life) = (self.stage.handles[handle].client, self.stage.handles[handle].life);
        let server = self.stage.clients[client].route[node.index()];
        let (low, high) = options.delay;
        let mut at = self.stage.now + choices.between(low, high);
        if !self.healing {
            if self.network.is_cut(self.stage.now, client, server, Way::Back) || choices.chance(options.lose)
            {
                return self.summary.count(Mark::HintLost);
            }
            if choices.chance(options.straggler) {
                at += choices.between(0, options.straggle);
            }
            if choices.chance(options.repeat) {
                let again = at + choices.between(0, options.straggle);
                self.summary.count(Mark::HintRepeated);
                self.agenda.add(again, Happening::Hints(Hint { handle, life, node }));
            }
        }
        self.agenda.add(at, Happening::Hints(Hint { handle, life, node }));
    }

    /// A hint reaches its client.
    pub(super) fn come_round(&mut self, hint: Hint) -> Step {
        let client = &mut self.stage.clients[self.stage.handles[hint.handle].client];
        if client.paused {
            client.inbox.push_back(hint.into());
            return Ok(());
        }
        if self.take_hint(hint) { self.drain(hint.handle) } else { Ok(()) }
    }

    /// Feeds a hint to its machine, if that still exists.
    pub(super) fn take_hint(&mut self, hint: Hint) -> bool {
        let Hint { handle, life, node } = hint;
        if self.stage.handles[handle].life != life {
            return false;
        }
        if self.awaits(hint) {
            self.summary.count(Mark::Hinted);
            self.trace.note(self.stage.now, || {
                format!("{} is told that its key may have gone at {node}", self.stage.name(handle))
            });
        }
        let shown = self.before_input(handle);
        let machine = &mut self.stage.handles[handle].machine;
        let before = machine.token();
        machine.handle_hint(shown, node);
        self.drained[handle].hints += 1;
        let token = machine.token();
        if token != before {
            self.summary.count(Mark::HintedAttempt);
            self.watch.hinted(handle, token);
        }
        true
    }
}

/// Whether a command has changed a key.
fn changes(command: &Command, reply: &Reply) -> bool {
    match command.intent {
        Intent::SetNxPx { .. } => *reply == Reply::Ok,
        Intent::FencedAcquire { .. } => matches!(reply, Reply::Text(_)),
        Intent::CompareAndDelete { .. } | Intent::CompareAndPexpire { .. } => *reply == Reply::Int(1),
    }
}
