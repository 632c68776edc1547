//! Who and what there is in a scenario.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use redlock_core::{Config, Instant, LeaseMachine, LeaseSpec, Token};

use super::agenda::Message;
use super::guard::Guard;
use super::server::Server;
use crate::Mode;
use crate::clock::Clock;
use crate::invariant::Broken;
use crate::options::Options;
use crate::tamper::Tamper;

/// A process with a clock of its own.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) clock: Clock,
    /// Which server each node is, as far as this client is concerned.
    pub(crate) route: Vec<usize>,
    /// One for each server, if the client has a restart guard.
    pub(crate) guards: Vec<Guard>,
    pub(crate) paused: bool,
    /// Names the pause that it is in, or was last in.
    pub(crate) trouble: u64,
    /// What came for it while it was paused.
    pub(crate) inbox: VecDeque<Message>,
}

/// A lock handle: one machine, and its user.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) client: usize,
    pub(crate) resource: usize,
    pub(crate) life: u32,
    pub(crate) machine: LeaseMachine,
    pub(crate) tamper: Tamper,
    /// When the machine wants to be woken, as it said last.
    pub(crate) wakes: Option<Instant>,
    /// The true time for which its timer is set.
    pub(crate) armed: Option<u64>,
    /// What its user will still do.
    pub(crate) deeds: u32,
}

#[derive(Debug)]
pub(crate) struct Stage {
    /// True nanoseconds since the scenario began.
    pub(crate) now: u64,
    pub(crate) mode: Mode,
    pub(crate) clients: Vec<Client>,
    pub(crate) handles: Vec<Handle>,
    pub(crate) servers: Vec<Server>,
    guard: Option<Duration>,
    /// What machines are made of: one for each handle.
    specs: Vec<LeaseSpec>,
}

const RESOURCES: [&str; 2] = ["orders", "stock"];
const COUNTERS: [&str; 2] = ["orders:fence", "stock:fence"];
const NODES: [&str; 5] = ["redis-a", "redis-b", "redis-c", "redis-d", "redis-e"];
const CLIENTS: [&str; 6] = ["A", "B", "C", "D", "E", "F"];

impl Stage {
    pub(crate) fn new(
        options: &Options,
        mode: Mode,
        offsets_ms: impl Fn(usize) -> u64,
    ) -> Result<Self, Broken> {
        let drifts = options.servers.iter().enumerate();
        let mut stage = Self {
            now: 0,
            mode,
            clients: Vec::with_capacity(CLIENTS.len()),
            handles: Vec::with_capacity(2 * CLIENTS.len()),
            servers: drifts.map(|(index, drift)| Server::new(*drift, offsets_ms(index))).collect(),
            guard: options.guard,
            specs: Vec::with_capacity(2 * CLIENTS.len()),
        };
        for (client, route) in options.clients.iter().zip(&options.routes) {
            let number = stage.add_client(client.clock.clone(), route.clone());
            for resource in &client.handles {
                stage.add_handle(number, *resource, client.config.clone(), options.fenced[*resource])?;
            }
        }
        Ok(stage)
    }

    pub(crate) fn add_client(&mut self, clock: Clock, route: Vec<usize>) -> usize {
        let (guards, inbox) = (self.new_guards(), VecDeque::new());
        let client = Client { clock, route, guards, paused: false, trouble: 0, inbox };
        self.clients.push(client);
        self.clients.len() - 1
    }

    pub(crate) fn add_handle(
        &mut self,
        client: usize,
        resource: usize,
        config: Config,
        fenced: bool,
    ) -> Result<usize, Broken> {
        let nodes = self.clients[client].route.len();
        let names: Vec<Arc<str>> = NODES.iter().take(nodes).map(|name| Arc::from(*name)).collect();
        let mut spec = LeaseSpec::new(RESOURCES[resource], names, config).map_err(Broken::setup)?;
        if fenced {
            spec = spec.with_fencing(COUNTERS[resource]).map_err(Broken::setup)?;
        }
        let handle = self.handles.len();
        let (machine, tamper) = self.make_machine(&spec, handle, 0);
        let (life, wakes, armed, deeds) = (0, None, None, 0);
        self.handles.push(Handle { client, resource, life, machine, tamper, wakes, armed, deeds });
        self.specs.push(spec);
        Ok(handle)
    }

    /// What a process knows of the servers when it begins.
    pub(crate) fn new_guards(&self) -> Vec<Guard> {
        self.guard.map_or_else(Vec::new, |guard| self.servers.iter().map(|_| Guard::new(guard)).collect())
    }

    /// The handle's process begins anew: nothing is left of what the machine knew.
    pub(crate) fn begin_anew(&mut self, handle: usize) {
        let life = self.handles[handle].life + 1;
        let (machine, tamper) = self.make_machine(&self.specs[handle], handle, life);
        let handle = &mut self.handles[handle];
        handle.life = life;
        handle.machine = machine;
        handle.tamper = tamper;
        handle.wakes = None;
        handle.armed = None;
    }

    fn make_machine(&self, spec: &LeaseSpec, handle: usize, life: u32) -> (LeaseMachine, Tamper) {
        let base = base_token(handle, life);
        let seed = (handle as u64) << 32 | u64::from(life);
        let tamper = Tamper::new(self.mode, base, spec.nodes().len());
        (LeaseMachine::new(spec.clone(), base, seed), tamper)
    }
}

/// What can be asked about it.
impl Stage {
    /// The time that a handle's machine is shown now.
    pub(crate) fn shown(&self, handle: usize) -> Instant {
        let handle = &self.handles[handle];
        handle.tamper.shown(self.clients[handle.client].clock.read(self.now))
    }

    /// The true time at which a handle's machine will be shown this.
    pub(crate) fn when(&self, handle: usize, shown: Instant) -> u64 {
        let handle = &self.handles[handle];
        self.clients[handle.client].clock.when(handle.tamper.local(shown))
    }

    /// Whether a handle claims to hold its lease now, by its own clock.
    pub(crate) fn is_held(&self, handle: usize) -> bool {
        self.handles[handle].machine.is_held(self.shown(handle))
    }

    /// The key that a handle's lock stands under.
    pub(crate) fn key(&self, handle: usize) -> &str {
        self.handles[handle].machine.spec().resource()
    }

    pub(crate) fn handles_of(&self, resource: usize) -> impl Iterator<Item = usize> {
        (0..self.handles.len()).filter(move |handle| self.handles[*handle].resource == resource)
    }

    /// A handle's name: its client's letter, with a stroke for a second handle.
    pub(crate) fn name(&self, handle: usize) -> String {
        let client = self.handles[handle].client;
        let strokes = self.handles[..handle].iter().filter(|other| other.client == client).count();
        format!("{}{}", CLIENTS[client], "'".repeat(strokes))
    }

    pub(crate) fn client_name(client: usize) -> &'static str {
        CLIENTS[client]
    }

    /// A token's name: its handle's and the number of the attempt, such as `A3`; behind a tilde, which
    /// of the handle's lives that was in, unless it was the first.
    pub(crate) fn token_name(&self, token: Token) -> String {
        let [handle, e, f, g, h, .., a, b, c, d] = *token.as_bytes();
        let (life, attempt) = (u32::from_be_bytes([e, f, g, h]), u32::from_be_bytes([a, b, c, d]));
        let life = if life == 0 { String::new() } else { format!("~{}", life + 1) };
        format!("{}{attempt}{life}", self.name(handle.into()))
    }
}

/// Distinct for each machine, and such that a trace can name its owner.
fn base_token(handle: usize, life: u32) -> Token {
    let mut bytes = [0; Token::LEN];
    bytes[0] = u8::try_from(handle).unwrap_or(u8::MAX);
    bytes[1..5].copy_from_slice(&life.to_be_bytes());
    Token::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_machines_share_a_token() {
        assert_ne!(base_token(1, 0), base_token(0, 0));
        assert_ne!(base_token(1, 0), base_token(1, 1));
        assert_eq!(base_token(3, 2).for_attempt(7).as_bytes()[0], 3);
        assert_eq!(base_token(3, 2).for_attempt(7).as_bytes()[19], 7);
    }
}
