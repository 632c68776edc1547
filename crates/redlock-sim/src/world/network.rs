//! The network: what becomes of each message.

use redlock_core::{Cause, CauseKind, Command, Fault, Reply, ServerError};

use super::agenda::{Answer, Happening, Request};
use super::words;
use super::{Step, World};
use crate::choices::Choices;
use crate::clock::show;
use crate::options::NetworkOptions;
use crate::summary::Mark;

#[derive(Debug)]
pub(super) struct Network {
    options: NetworkOptions,
    links: Vec<Link>,
    servers: usize,
    slow_until: u64,
    /// Nothing goes wrong any more.
    calm: bool,
}

/// The way between one client and one server.
#[derive(Clone, Debug, Default)]
struct Link {
    /// Until when requests, or answers, get lost.
    cut_until: [u64; 2],
    /// When the last request, or answer, arrives.
    last: [u64; 2],
}

/// A direction on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    There,
    Back,
}

impl Network {
    pub(super) fn new(options: NetworkOptions, clients: usize, servers: usize) -> Self {
        // One client more, who comes when everything else is over.
        let links = vec![Link::default(); (clients + 1) * servers];
        Self { options, links, servers, slow_until: 0, calm: false }
    }

    pub(super) fn cut(&mut self, client: usize, server: usize, way: Way, until: u64) {
        let cut = &mut self.link(client, server).cut_until[way as usize];
        *cut = until.max(*cut);
    }

    pub(super) fn slow_down(&mut self, until: u64) {
        self.slow_until = until;
    }

    /// From now on, every message arrives, and soon.
    pub(super) fn calm_down(&mut self) {
        self.calm = true;
    }

    /// Whether everything gets lost on this way now.
    pub(super) fn is_cut(&self, now: u64, client: usize, server: usize, way: Way) -> bool {
        self.links[client * self.servers + server].cut_until[way as usize] > now
    }

    fn link(&mut self, client: usize, server: usize) -> &mut Link {
        &mut self.links[client * self.servers + server]
    }

    /// When a message that is sent now arrives; `None` for never.
    fn carry(
        &mut self,
        choices: &mut Choices,
        now: u64,
        client: usize,
        server: usize,
        way: Way,
    ) -> Option<u64> {
        let (low, high) = self.options.delay;
        let link = &mut self.links[client * self.servers + server];
        if self.calm {
            return Some((now + low).max(link.last[way as usize].min(now + high)));
        }
        let lose = match way {
            Way::There => self.options.lose_request,
            Way::Back => self.options.lose_reply,
        };
        if link.cut_until[way as usize] > now || choices.chance(lose) {
            return None;
        }
        let mut delay = choices.between(low, high);
        if self.slow_until > now {
            delay *= 8;
        }
        if choices.chance(self.options.straggler) {
            delay += choices.between(0, self.options.straggle);
        }
        let mut at = now + delay;
        if self.options.in_order {
            at = at.max(link.last[way as usize]);
            link.last[way as usize] = at;
        }
        Some(at)
    }

    fn happens(&self, choices: &mut Choices, per_mille: u64) -> bool {
        !self.calm && choices.chance(per_mille)
    }
}

/// Sending and receiving.
impl World {
    /// A command leaves its machine.
    pub(super) fn send(&mut self, handle: usize, mut command: Command) {
        let now = self.stage.now;
        let asked = self.stage.shown(handle);
        let acting = &mut self.stage.handles[handle];
        acting.tamper.command(&mut command);
        let (client, life) = (acting.client, acting.life);
        let server = self.stage.clients[client].route[command.node.index()];
        self.oracle.sent(&self.stage, handle, server, &command);
        self.watch.sent(handle, server, &command, &mut self.summary);
        let local = self.stage.clients[client].clock.read(now);
        let guard = self.stage.clients[client].guards.get_mut(server);
        let connected =
            guard.map(|guard| guard.connect(now, local, &self.stage.servers[server], &command.intent));
        let (run, allowed) = connected.map_or((None, Ok(())), |(run, allowed)| (Some(run), allowed));
        if let Err(fault) = allowed {
            let request = Request { handle, life, server, command, asked, answered: true, run };
            return self.keep_back(&request, fault);
        }

        let network = &mut self.network;
        let mut arrives = network.carry(&mut self.choices, now, client, server, Way::There);
        // The connection may break while the command is under way. Then the answer is lost, and the command
        // may be stuck for a while.
        let breaks = network.happens(&mut self.choices, network.options.lose_reply / 2);
        if breaks && self.choices.chance(500) {
            arrives = arrives.map(|at| at + self.choices.between(0, network.options.straggle / 2));
        }
        let request = Request { handle, life, server, command, asked, answered: !breaks, run };
        self.trace.note(now, || words::sent(&self.stage, &request, arrives));
        if (arrives.is_none() || breaks) && network.happens(&mut self.choices, network.options.tell) {
            let cause = Cause::new(CauseKind::Disconnected);
            let never = arrives.is_none() && self.choices.chance(500);
            let fault = if never { Fault::NotExecuted(cause) } else { Fault::Unknown(cause) };
            let latest = self.choices.pick(&[network.options.delay.1, network.options.straggle]);
            let at = now + self.choices.between(network.options.delay.0, latest);
            self.agenda.add(at, Happening::Returns(Box::new(Answer::new(&request, Err(fault)))));
        }
        if breaks || arrives.is_none() {
            self.oracle.disturbed(&self.stage, &request);
        }
        let Some(at) = arrives else {
            self.oracle.over_with(&request);
            return;
        };
        if network.happens(&mut self.choices, network.options.repeat_request) {
            let again = at + self.choices.between(network.options.delay.0, network.options.straggle);
            self.summary.count(Mark::RequestRepeated);
            self.oracle.disturbed(&self.stage, &request);
            self.trace.note(now, || format!("  and again, arriving at {}", show(again)));
            self.agenda.add(again, Happening::Arrives(Box::new(request.clone())));
        }
        self.agenda.add(at, Happening::Arrives(Box::new(request)));
    }

    /// A request is not sent, because its server is in quarantine.
    fn keep_back(&mut self, request: &Request, fault: Fault) {
        let now = self.stage.now;
        self.summary.count(Mark::KeptBack);
        self.trace.note(now, || {
            format!(
                "  {} is not sent to server {}: {fault}",
                words::command(&self.stage, request),
                request.server
            )
        });
        self.oracle.over_with(request);
        self.agenda.add(now, Happening::Returns(Box::new(Answer::new(request, Err(fault)))));
    }

    /// A request reaches its server.
    pub(super) fn arrive(&mut self, mut request: Request) -> Step {
        let now = self.stage.now;
        let server = request.server;
        if request.run.is_some_and(|run| run != self.stage.servers[server].restarts()) {
            // Its connection ended with the server that it was made to.
            self.oracle.over_with(&request);
            self.answer(&request, Err(Fault::Unknown(Cause::new(CauseKind::Disconnected))));
            return Ok(());
        }
        if self.network.happens(&mut self.choices, self.network.options.garble) {
            self.oracle.disturbed(&self.stage, &request);
            if self.choices.chance(500) {
                // Turned away before it was looked at.
                self.oracle.over_with(&request);
                let loading = ServerError::new("LOADING", "Redis is loading the dataset in memory");
                self.answer(&request, Ok(Reply::Error(loading)));
                return Ok(());
            }
            request.answered = false;
            self.answer(&Request { answered: true, ..request.clone() }, Ok(Reply::Other));
        }
        if let Err(refused) = self.stage.servers[server].take(now, request) {
            let (request, fault) = *refused;
            self.oracle.over_with(&request);
            self.oracle.disturbed(&self.stage, &request);
            self.answer(&request, Err(fault));
        }
        self.collect(server)
    }

    /// Takes what a server has done, and sends the answers on their way.
    pub(super) fn collect(&mut self, server: usize) -> Step {
        let now = self.stage.now;
        while let Some((request, result)) = self.stage.servers[server].next_answer(now) {
            self.trace.note(now, || words::done(&self.stage, &request, &result));
            self.oracle.over_with(&request);
            match &result {
                Ok(Reply::Error(_)) | Err(_) => self.oracle.disturbed(&self.stage, &request),
                Ok(reply) => {
                    self.watch.executed(&self.stage, &request, reply, &mut self.summary);
                    self.oracle.executed(&self.stage, &request)?;
                    self.spread(&request, reply);
                }
            }
            self.answer(&request, result);
        }
        Ok(())
    }

    /// An answer leaves its server.
    fn answer(&mut self, request: &Request, result: Result<Reply, Fault>) {
        if !request.answered {
            return;
        }
        let now = self.stage.now;
        let client = self.stage.handles[request.handle].client;
        let network = &mut self.network;
        let Some(at) = network.carry(&mut self.choices, now, client, request.server, Way::Back) else {
            self.oracle.disturbed(&self.stage, request);
            self.trace
                .note(now, || format!("  the answer to {} gets lost", words::command(&self.stage, request)));
            return;
        };
        let answer = Answer::new(request, result);
        if network.happens(&mut self.choices, network.options.repeat_reply) {
            let again = at + self.choices.between(network.options.delay.0, network.options.straggle);
            self.summary.count(Mark::ReplyRepeated);
            self.agenda.add(again, Happening::Returns(Box::new(answer.clone())));
        }
        self.agenda.add(at, Happening::Returns(Box::new(answer)));
    }

    /// An answer reaches its client.
    pub(super) fn come_back(&mut self, answer: Answer) -> Step {
        let client = &mut self.stage.clients[self.stage.handles[answer.handle].client];
        if client.paused {
            client.inbox.push_back(answer.into());
            return Ok(());
        }
        let handle = answer.handle;
        if self.hear(answer) { self.drain(handle) } else { Ok(()) }
    }

    /// Feeds an answer to its machine, if that still exists.
    pub(super) fn hear(&mut self, answer: Answer) -> bool {
        let Answer { handle, life, id, node, asked, acquires, is_vote, result } = answer;
        if self.stage.handles[handle].life != life {
            return false;
        }
        let now = self.stage.now;
        let acting = &mut self.stage.handles[handle];
        let local = self.stage.clients[acting.client].clock.read(now);
        let taken_for = acting.tamper.answer(local, asked, id, node, is_vote, acquires);
        self.trace.note(now, || words::heard(&self.stage, handle, id, taken_for, &result));
        let shown = self.before_input(handle);
        let acting = &mut self.stage.handles[handle];
        acting.machine.handle_reply(shown, taken_for, result);
        true
    }
}
