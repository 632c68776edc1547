//! What goes wrong with servers, links and clients, and how it is put right.

use super::agenda::{Happening, Message, Relief};
use super::network::Way;
use super::server::Condition;
use super::stage::Stage;
use super::{Step, World};
use crate::Mode;
use crate::clock::{MILLION, MS, show};
use crate::options::Trouble;
use crate::summary::Mark;

impl World {
    /// Something goes wrong.
    pub(super) fn strike(&mut self) -> Step {
        if self.healing || self.options.troubles.is_empty() {
            return Ok(());
        }
        let (low, high) = self.options.respite;
        let next = self.stage.now + self.choices.between(low, high);
        self.agenda.add(next, Happening::Strikes);
        let trouble = self.choices.pick(&self.options.troubles);
        let span = self.choices.between(self.options.ttl / 10, 2 * self.options.ttl);
        let server = self.choices.index(self.stage.servers.len());
        match trouble {
            Trouble::Cut => self.cut(server, span),
            Trouble::Isolate => self.isolate(server, span),
            Trouble::Slow => {
                self.count(Mark::Slowed, |_| "the network becomes slow".to_owned());
                self.network.slow_down(self.stage.now + span);
            }
            Trouble::Pause => {
                let client = self.choices.index(self.stage.clients.len());
                self.pause(client, span);
            }
            Trouble::Die => {
                let client = self.choices.index(self.stage.clients.len());
                self.die(client);
            }
            Trouble::Freeze | Trouble::CrashKeeping | Trouble::CrashLosing | Trouble::ReadOnly => {
                return self.take_down(server, trouble, span);
            }
            Trouble::Forget => {
                self.trace.note(self.stage.now, || format!("server {server} restarts without its data"));
                self.stage.servers[server].forget();
                return self.collect(server);
            }
            Trouble::Jump => {
                self.trace.note(self.stage.now, || {
                    format!("the clock of server {server} jumps by {} ms", show(span))
                });
                self.stage.servers[server].jump(span);
            }
        }
        Ok(())
    }

    fn cut(&mut self, server: usize, span: u64) {
        let client = self.choices.index(self.stage.clients.len());
        let way = self.choices.pick(&[Way::There, Way::Back]);
        let until = self.stage.now + span;
        self.count(Mark::Cut, |_| {
            let (name, what) =
                (Stage::client_name(client), if way == Way::There { "requests" } else { "answers" });
            format!("{what} between {name} and server {server} get lost until {}", show(until))
        });
        self.network.cut(client, server, way, until);
    }

    fn isolate(&mut self, server: usize, span: u64) {
        let until = self.stage.now + span;
        self.count(Mark::Isolated, |_| format!("server {server} cannot be reached until {}", show(until)));
        for client in 0..self.stage.clients.len() {
            self.network.cut(client, server, Way::There, until);
            self.network.cut(client, server, Way::Back, until);
        }
    }

    fn take_down(&mut self, server: usize, trouble: Trouble, span: u64) -> Step {
        if self.stage.servers[server].condition != Condition::Well {
            return Ok(());
        }
        let number = self.next_trouble();
        let patient = &mut self.stage.servers[server];
        patient.trouble = number;
        let (mark, what, span) = match trouble {
            Trouble::Freeze => {
                patient.freeze();
                (Mark::Frozen, "freezes", span)
            }
            Trouble::CrashKeeping => {
                patient.crash(true);
                (Mark::CrashedKeeping, "crashes, but keeps its data", span)
            }
            Trouble::CrashLosing => {
                patient.crash(false);
                // Longer than any key can live, on the slowest clock that drift allows.
                let longest = self.options.longest_ttl;
                let drift = longest / MILLION * u64::from(self.options.drift_ppm) + 2 * MS;
                (Mark::CrashedLosing, "crashes, and loses its data", longest + drift + span / 4)
            }
            _ => {
                patient.make_read_only();
                (Mark::ReadOnly, "becomes read-only", span)
            }
        };
        let until = self.stage.now + span;
        self.count(mark, |_| format!("server {server} {what}; until {}", show(until)));
        self.agenda.add(until, Happening::Relents(Relief::Server { server, trouble: number }));
        // What it was doing when it crashed has failed.
        self.collect(server)
    }

    fn pause(&mut self, client: usize, span: u64) {
        if self.stage.clients[client].paused {
            return;
        }
        let until = self.stage.now + span;
        let holds = (0..self.stage.handles.len())
            .any(|handle| self.stage.handles[handle].client == client && self.stage.is_held(handle));
        if holds {
            self.summary.count(Mark::PausedHolding);
        }
        self.count(Mark::Paused, |_| {
            format!("{} is suspended until {}", Stage::client_name(client), show(until))
        });
        let number = self.next_trouble();
        let now = self.stage.now;
        let patient = &mut self.stage.clients[client];
        patient.paused = true;
        patient.trouble = number;
        if self.stage.mode == Mode::StoppedClock {
            patient.clock.stop(now);
        }
        self.agenda.add(until, Happening::Relents(Relief::Client { client, trouble: number }));
    }

    /// The client's process ends, and the next one knows nothing of it. Its keys stay where they are.
    fn die(&mut self, client: usize) {
        self.count(Mark::Died, |_| {
            format!("the process of {} dies; another begins", Stage::client_name(client))
        });
        for handle in 0..self.stage.handles.len() {
            if self.stage.handles[handle].client == client {
                self.watch.died(&self.stage, handle);
                self.stage.begin_anew(handle);
                self.begin(handle);
            }
        }
        self.stage.clients[client].guards = self.stage.new_guards();
        self.stage.clients[client].inbox.clear();
    }

    /// A trouble is over.
    pub(super) fn relent(&mut self, relief: Relief) -> Step {
        match relief {
            Relief::Server { server, trouble } if self.stage.servers[server].trouble == trouble => {
                self.recover(server)
            }
            Relief::Client { client, trouble } if self.stage.clients[client].trouble == trouble => {
                self.resume(client)
            }
            Relief::Server { .. } | Relief::Client { .. } => Ok(()),
        }
    }

    fn recover(&mut self, server: usize) -> Step {
        let now = self.stage.now;
        let patient = &mut self.stage.servers[server];
        match patient.condition {
            Condition::Well => return Ok(()),
            Condition::Away => self.oracle.data_lost(),
            Condition::Frozen | Condition::ReadOnly | Condition::Down => {}
        }
        patient.recover(now);
        self.trace.note(now, || format!("server {server} is well again"));
        self.collect(server)
    }

    /// A suspended client goes on: whatever has come in the meantime comes now, and timers are late.
    fn resume(&mut self, client: usize) -> Step {
        let now = self.stage.now;
        if !std::mem::take(&mut self.stage.clients[client].paused) {
            return Ok(());
        }
        self.stage.clients[client].clock.start(now);
        self.trace.note(now, || format!("{} goes on", Stage::client_name(client)));
        let (timers_first, all_at_once) = (self.choices.chance(300), self.choices.chance(500));
        let handles: Vec<usize> = (0..self.stage.handles.len())
            .filter(|handle| self.stage.handles[*handle].client == client)
            .collect();
        if timers_first {
            handles.iter().try_for_each(|handle| self.wake(*handle))?;
        }
        while let Some(message) = self.stage.clients[client].inbox.pop_front() {
            let (handle, heard) = match message {
                Message::Answer(answer) => (answer.handle, self.hear(answer)),
                Message::Hint(hint) => (hint.handle, self.take_hint(hint)),
            };
            if heard && !all_at_once {
                self.drain(handle)?;
            }
        }
        handles.into_iter().try_for_each(|handle| {
            self.drain(handle)?;
            self.wake(handle)
        })
    }

    /// From now on nothing goes wrong any more, and everything that was wrong is put right. Only a server
    /// that has lost its data still has to stay away for its time.
    pub(super) fn heal(&mut self) -> Step {
        self.trace.note(self.stage.now, || "nothing goes wrong any more".to_owned());
        self.healing = true;
        self.network.calm_down();
        for server in 0..self.stage.servers.len() {
            if self.stage.servers[server].condition != Condition::Away {
                self.recover(server)?;
            }
        }
        (0..self.stage.clients.len()).try_for_each(|client| self.resume(client))?;
        (0..self.stage.handles.len()).try_for_each(|handle| self.act(handle))
    }

    fn next_trouble(&mut self) -> u64 {
        self.troubles += 1;
        self.troubles
    }

    fn count(&mut self, mark: Mark, line: impl FnOnce(&Stage) -> String) {
        self.summary.count(mark);
        self.trace.note(self.stage.now, || line(&self.stage));
    }
}
