//! Everything there is at one moment, and how one thing that happens changes it.

use std::sync::Arc;

use redlock_core::{
    Cause, CauseKind, Command, Event, Fault, FencingToken, Instant, Intent, LeaseState, NodeId, Output,
    ReleaseOutcome, Reply, Token, quorum,
};

use crate::client::Client;
use crate::line::{Flight, Line};
use crate::news::News;
use crate::options::other;
use crate::property::is_backed;
use crate::server::Server;
use crate::setup::{Setup, base, instant};
use crate::{Action, Sabotage, Timers, Trouble};

/// Everything there is at one moment. Parts are shared between worlds that differ elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub(crate) now: u8,
    /// Time is about to go on; only nodes from this one on still do something.
    pub(crate) closing: Option<usize>,
    pub(crate) clients: Vec<Arc<Client>>,
    pub(crate) servers: Vec<Arc<Server>>,
    /// From every client to every node: `who * nodes + node`.
    pub(crate) lines: Vec<Arc<Line>>,
    /// The highest fencing token that anybody got.
    fence: Option<FencingToken>,
    pub(crate) trouble_left: Trouble,
    pub(crate) hints_left: u8,
    pub(crate) sabotage_left: bool,
    /// What a machine did that it promises not to do.
    pub(crate) flaw: Option<&'static str>,
    pub(crate) news: News,
}

impl World {
    pub(crate) fn new(setup: &Setup) -> Self {
        let clients = 0..setup.plans.len();
        Self {
            now: 0,
            closing: None,
            lines: clients.clone().flat_map(|_| (0..setup.nodes).map(|_| Arc::default())).collect(),
            clients: clients.map(|who| Arc::new(Client::new(setup, who))).collect(),
            servers: (0..setup.servers()).map(|_| Arc::default()).collect(),
            fence: None,
            trouble_left: setup.trouble,
            hints_left: setup.hints,
            sabotage_left: matches!(setup.sabotage, Sabotage::Forgetful | Sabotage::ClockJump),
            flaw: None,
            news: News::default(),
        }
    }

    pub(crate) fn instant(&self) -> Instant {
        instant(self.now)
    }

    /// The world after `action`.
    pub(crate) fn after(&self, setup: &Setup, action: Action) -> Self {
        let mut next = Self { news: News::default(), ..self.clone() };
        match action {
            Action::Tick => next.tick(setup),
            Action::Close => next.closing = Some(0),
            Action::Exchange { who, node, ahead } => next.exchange(setup, who, node, ahead),
            Action::Ask { who, request } => {
                let now = next.now;
                next.change(setup, who, |client| client.ask(setup, who, now, request));
            }
            Action::Hint { who, node } => next.hint(setup, who, node),
            Action::Wake { who } => next.wake(setup, who),
            Action::Execute { who, node, position } => {
                next.execute(setup, who, node, position);
                if next.closing.is_some() {
                    next.closing = Some(node);
                }
            }
            Action::Answer { who, node, position } => {
                let flight = next.line_mut(setup, who, node).flights.remove(position);
                next.answer(setup, who, node, flight);
            }
            Action::Refuse { who, node, position } => {
                next.trouble_left.refusals -= 1;
                let refused = Fault::NotExecuted(Cause::new(CauseKind::Unreachable));
                next.line_mut(setup, who, node).flights[position].answer = Some(Err(refused));
            }
            Action::Break { who, node } => next.break_line(setup, who, node),
            Action::Haunt { who, node, position } => {
                let command = next.line_mut(setup, who, node).ghosts.remove(position);
                let _ = next.carry_out(setup, node, &command.intent);
            }
            Action::Lapse { server } => {
                let now = next.instant();
                Arc::make_mut(&mut next.servers[server]).lapse(now);
            }
            Action::Forget { server } => {
                next.sabotage_left = false;
                Arc::make_mut(&mut next.servers[server]).forget();
            }
            Action::Jump { server } => {
                next.sabotage_left = false;
                let now = next.instant();
                Arc::make_mut(&mut next.servers[server]).jump(setup, now);
            }
        }
        next
    }
}

/// The things that happen.
impl World {
    fn tick(&mut self, setup: &Setup) {
        self.now += 1;
        self.closing = None;
        let now = self.instant();
        for server in &mut self.servers {
            Arc::make_mut(server).pass(now);
        }
        if setup.timers == Timers::Punctual {
            // One that is not due is handled as well. That changes nothing but the machine's idea of
            // the time, and so keeps machines equal that behave alike.
            (0..self.clients.len()).for_each(|who| self.wake(setup, who));
        }
    }

    fn wake(&mut self, setup: &Setup, who: usize) {
        let now = self.instant();
        self.change(setup, who, |client| client.machine.handle_timeout(now));
        if self.clients[who].machine.next_timeout().is_some_and(|(at, _)| at <= now) {
            self.flaw = Some("a timer is due again at once");
        }
    }

    /// One that changes nothing costs nothing: the world is the one that it was.
    fn hint(&mut self, setup: &Setup, who: usize, node: usize) {
        let (now, before) = (self.instant(), Arc::clone(&self.clients[who]));
        let node = NodeId::new(u8::try_from(node).unwrap());
        self.change(setup, who, |client| client.machine.handle_hint(now, node));
        let after = &self.clients[who].machine;
        if *after == before.machine {
            return;
        }
        self.hints_left -= 1;
        if after.state() != before.machine.state() || !self.news.events.is_empty() {
            self.flaw = Some("a hint has brought news");
        }
        self.news.hinted = after.token() != before.machine.token();
    }

    fn execute(&mut self, setup: &Setup, who: usize, node: usize, position: usize) {
        let intent = self.line(setup, who, node).flights[position].command.intent.clone();
        let reply = self.carry_out(setup, node, &intent);
        self.line_mut(setup, who, node).flights[position].answer = Some(Ok(reply));
    }

    fn exchange(&mut self, setup: &Setup, who: usize, node: usize, ahead: usize) {
        for who in std::iter::repeat_n(other(who), ahead).chain([who]) {
            let position = self.line(setup, who, node).executable(setup.order).next().unwrap();
            self.execute(setup, who, node, position);
            // Nobody sees the world as it is now: it has to be looked at here.
            if !is_backed(setup, self) {
                self.flaw = Some("a key went while its holder was sure of it");
            }
        }
        let flight = self.line_mut(setup, who, node).flights.remove(0);
        self.answer(setup, who, node, flight);
    }

    fn carry_out(&mut self, setup: &Setup, node: usize, intent: &Intent) -> Reply {
        let now = self.instant();
        Arc::make_mut(&mut self.servers[setup.server(node)]).execute(setup, now, intent)
    }

    fn answer(&mut self, setup: &Setup, who: usize, node: usize, flight: Flight) {
        let Flight { command, answer } = flight;
        let Some(answer) = answer else { return };
        let now = self.instant();
        let id = match self.line(setup, who, node).newest_acquire {
            Some(newest) if command.intent.acquires() => newest,
            _ => command.id,
        };
        let acquired = command.intent.acquires().then_some(command.intent.token());
        let sent = self.change(setup, who, |client| client.machine.handle_reply(now, id, answer));
        self.news.deleted_again = acquired.is_some_and(|token| sent.contains(&token));
    }

    /// Everything unanswered gets an unknown fate. What was not carried out yet still may be.
    fn break_line(&mut self, setup: &Setup, who: usize, node: usize) {
        self.trouble_left.breaks -= 1;
        let now = self.instant();
        for flight in std::mem::take(&mut self.line_mut(setup, who, node).flights) {
            let id = flight.command.id;
            if flight.answer.is_none() {
                self.line_mut(setup, who, node).ghosts.push(flight.command);
            }
            let broken = Err(Fault::Unknown(Cause::new(CauseKind::Disconnected)));
            self.change(setup, who, |client| client.machine.handle_reply(now, id, broken));
        }
    }

    /// Lets something happen to a client and takes what comes of it. Returns the tokens of the deletes that
    /// it sends.
    fn change(&mut self, setup: &Setup, who: usize, act: impl FnOnce(&mut Client)) -> Vec<Token> {
        let client = Arc::make_mut(&mut self.clients[who]);
        let before = client.machine.valid_until();
        let gave_back = client.gave_back();
        act(client);
        let mut deletes = Vec::new();
        let mut granted = false;
        loop {
            match Arc::make_mut(&mut self.clients[who]).machine.poll_output() {
                Output::Send(command) => {
                    if let Intent::CompareAndDelete { token } = command.intent {
                        deletes.push(token);
                    }
                    self.send(setup, who, command);
                }
                Output::Event(event) => {
                    granted |= matches!(
                        event,
                        Event::Acquired { .. } | Event::Extended { .. } | Event::Renewed { .. }
                    );
                    if gave_back && matches!(event, Event::Lost { .. }) {
                        self.flaw = Some("lost after it was given back");
                    }
                    self.observe(setup, who, event);
                }
                Output::Wait(_) => break,
            }
        }
        let after = self.clients[who].machine.valid_until();
        if after > before && !granted {
            self.flaw = Some("validity has grown without a quorum");
        }
        self.news.shortened |= after.is_some() && after < before;
        deletes
    }

    fn send(&mut self, setup: &Setup, who: usize, mut command: Command) {
        let node = command.node.index();
        if setup.sabotage == Sabotage::OneToken {
            replace_token(&mut command.intent, base(who));
        }
        let line = self.line_mut(setup, who, node);
        if setup.sabotage == Sabotage::AttemptIgnored && command.intent.acquires() {
            line.newest_acquire = Some(command.id);
        }
        // The model's network has no use for it, and worlds that behave alike should be equal.
        command.deadline = Instant::EPOCH;
        line.flights.push(Flight { command, answer: None });
    }

    fn observe(&mut self, setup: &Setup, who: usize, event: Event) {
        if !Arc::make_mut(&mut self.clients[who]).observe(&event) {
            self.flaw = Some("a request has ended twice");
        }
        match &event {
            Event::Acquired { fencing, .. } => {
                if setup.fenced && *fencing <= self.fence {
                    self.flaw = Some("a fencing token is not higher than the last one");
                }
                self.fence = *fencing;
            }
            Event::Released(ReleaseOutcome::Released) => {
                let free = self.free_nodes(setup, self.clients[who].machine.token());
                if free < quorum(setup.nodes) {
                    self.flaw = Some("released, but no quorum is free of the token for good");
                }
            }
            Event::Lost { .. } if self.clients[who].machine.state() == LeaseState::Held => {
                self.flaw = Some("lost, but held");
            }
            _ => {}
        }
        self.news.events.push((who, event));
    }

    /// How many nodes neither have this token nor can come to have it by a command that is under way.
    fn free_nodes(&self, setup: &Setup, token: Token) -> usize {
        let has = |node: usize| self.servers[setup.server(node)].holds(self.instant(), token);
        let expects = |node: usize| {
            (0..self.clients.len())
                .flat_map(|who| self.line(setup, who, node).open())
                .any(|command| command.intent.acquires() && command.intent.token() == token)
        };
        (0..setup.nodes).filter(|node| !has(*node) && !expects(*node)).count()
    }

    pub(crate) fn line(&self, setup: &Setup, who: usize, node: usize) -> &Line {
        &self.lines[who * setup.nodes + node]
    }

    fn line_mut(&mut self, setup: &Setup, who: usize, node: usize) -> &mut Line {
        Arc::make_mut(&mut self.lines[who * setup.nodes + node])
    }
}

fn replace_token(intent: &mut Intent, with: Token) {
    match intent {
        Intent::SetNxPx { token, .. }
        | Intent::FencedAcquire { token, .. }
        | Intent::CompareAndDelete { token }
        | Intent::CompareAndPexpire { token, .. } => *token = with,
    }
}
