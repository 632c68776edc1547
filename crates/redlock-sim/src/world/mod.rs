//! The world that machines live in, and the loop that makes things happen in it.

mod agenda;
mod guard;
mod network;
mod rumours;
mod server;
mod stage;
mod trouble;
mod user;
mod watch;
mod words;

use redlock_core::{Event, Instant, Output, Patience};

pub(crate) use agenda::Request;
pub(crate) use server::Server;
pub(crate) use stage::Stage;

use agenda::{Agenda, Happening};
use network::Network;
use rumours::{HintOptions, Rumours};
use watch::Watch;

use crate::Mode;
use crate::choices::Choices;
use crate::clock::Clock;
use crate::invariant::{Broken, Drained, Oracle};
use crate::options::{ClientOptions, Options};
use crate::summary::{Mark, Summary};
use crate::trace::Trace;

/// Whether a promise was broken on the way.
type Step = Result<(), Broken>;

/// More happenings than any scenario has that comes to an end.
const ENDLESS: u64 = 200_000;

#[derive(Debug)]
pub(crate) struct World {
    stage: Stage,
    options: Options,
    choices: Choices,
    agenda: Agenda,
    network: Network,
    rumours: Rumours,
    oracle: Oracle,
    watch: Watch,
    /// By handle: the inputs whose outputs have not been taken yet.
    drained: Vec<Drained>,
    happenings: u64,
    /// How many troubles had a name.
    troubles: u64,
    /// Nothing goes wrong any more.
    healing: bool,
    pub(crate) summary: Summary,
    pub(crate) trace: Trace,
}

/// From the beginning to the end.
impl World {
    pub(crate) fn new(mut choices: Choices, mode: Mode, mut trace: Trace) -> Result<Self, Broken> {
        let mut apart = choices.apart();
        let options = Options::draw(&mut choices, mode);
        let hints = HintOptions::draw(&mut apart, options.ttl);
        trace.preface(|| words::options(&options, &hints));
        let offset = choices.below(100_000);
        let stage = Stage::new(&options, mode, |server| offset * server as u64)?;
        let mut world = Self {
            network: Network::new(options.network.clone(), options.clients.len(), options.servers.len()),
            rumours: Rumours::new(hints, apart),
            oracle: Oracle::new(&options, mode),
            stage,
            options,
            choices,
            agenda: Agenda::default(),
            watch: Watch::default(),
            drained: Vec::new(),
            happenings: 0,
            troubles: 0,
            healing: false,
            summary: Summary::default(),
            trace,
        };
        for handle in 0..world.stage.handles.len() {
            world.begin(handle);
            world.begin_acting(handle);
        }
        Ok(world)
    }

    /// The true time, in nanoseconds since the beginning.
    pub(crate) const fn now(&self) -> u64 {
        self.stage.now
    }

    /// Runs the scenario to its end.
    pub(crate) fn run(&mut self) -> Step {
        match self.live() {
            // With an assumption broken, only the promise itself is of interest.
            Err(broken) if self.stage.mode != Mode::Sound && broken.invariant != "exclusion" => {}
            outcome => outcome?,
        }
        self.summary.close(self.happenings);
        Ok(())
    }

    fn live(&mut self) -> Step {
        let respite = self.choices.between(0, self.options.respite.1);
        self.agenda.add(respite, Happening::Strikes);
        self.agenda.add(self.options.safety, Happening::Heals);
        self.run_down()?;
        if self.stage.mode == Mode::Sound {
            self.try_anew()?;
            self.stage.now += 2 * self.options.longest_ttl;
            self.oracle.over(&self.stage)?;
        }
        Ok(())
    }

    /// Runs until nothing is left to happen.
    fn run_down(&mut self) -> Step {
        while let Some((at, what)) = self.agenda.next() {
            // Nobody waits for it any more, and it is not worth waiting for.
            if matches!(what, Happening::Expires(hint) if !self.awaits(hint)) {
                continue;
            }
            self.stage.now = at.max(self.stage.now);
            self.happenings += 1;
            if self.happenings > ENDLESS {
                return Err(Broken::new("terminal", "this goes on for ever".to_owned()));
            }
            match what {
                Happening::Arrives(request) => self.arrive(*request)?,
                Happening::Returns(answer) => self.come_back(*answer)?,
                Happening::Hints(hint) => self.come_round(hint)?,
                Happening::Expires(hint) => self.expire(hint),
                Happening::Wakes(handle) => self.timer(handle)?,
                Happening::Acts(handle) => self.act(handle)?,
                Happening::Strikes => self.strike()?,
                Happening::Relents(relief) => self.relent(relief)?,
                Happening::Heals => self.heal()?,
            }
        }
        Ok(())
    }

    /// When all is over, somebody who had no part in it gets the lease, and can give it back.
    fn try_anew(&mut self) -> Step {
        let route = (0..self.stage.servers.len()).collect();
        let client = self.stage.add_client(Clock::new(0, 0), route);
        let config = ClientOptions::patient(&self.options);
        let handle = self.stage.add_handle(client, 0, config, self.options.fenced[0])?;
        self.begin(handle);
        let patience = Patience::Until(self.stage.shown(handle).saturating_add(self.options.longest_wait()));
        let before = self.summary.times(Mark::Acquired);
        self.acquire_with(handle, patience)?;
        self.agenda.add(self.stage.now, Happening::Acts(handle));
        self.run_down()?;
        if self.summary.times(Mark::Acquired) == before {
            return Err(Broken::new("healing", format!("{} cannot get the lease", self.stage.name(handle))));
        }
        self.summary.count(Mark::Healed);
        Ok(())
    }

    /// One more handle, or one whose process began anew.
    fn begin(&mut self, handle: usize) {
        self.oracle.begin(handle);
        self.watch.begin(&self.stage, handle);
        self.drained.resize_with(self.stage.handles.len(), Drained::default);
        self.drained[handle] = Drained::default();
    }
}

/// Inputs and outputs of machines.
impl World {
    /// The timer of a handle goes off.
    fn timer(&mut self, handle: usize) -> Step {
        let now = self.stage.now;
        let sleeper = &mut self.stage.handles[handle];
        if sleeper.armed == Some(now) {
            sleeper.armed = None;
        }
        if self.stage.clients[sleeper.client].paused {
            return Ok(());
        }
        if !self.healing && self.choices.chance(self.options.habits.early) {
            return self.tell_time(handle);
        }
        self.wake(handle)
    }

    /// Tells a machine the time if it wants to know it by now.
    fn wake(&mut self, handle: usize) -> Step {
        let due = self.stage.handles[handle].wakes;
        if due.is_some_and(|at| at <= self.stage.shown(handle)) {
            return self.tell_time(handle);
        }
        self.arm(handle);
        Ok(())
    }

    fn tell_time(&mut self, handle: usize) -> Step {
        let shown = self.before_input(handle);
        self.stage.handles[handle].machine.handle_timeout(shown);
        self.drained[handle].timed = true;
        self.drain(handle)
    }

    /// Notes that a machine is about to get an input, and returns the time to give it.
    fn before_input(&mut self, handle: usize) -> Instant {
        let shown = self.stage.shown(handle);
        self.oracle.before_input(handle, &self.stage.handles[handle].machine, shown);
        self.drained[handle].inputs += 1;
        shown
    }

    /// Takes everything that a machine has to say, and judges it.
    fn drain(&mut self, handle: usize) -> Step {
        let mut drained = std::mem::take(&mut self.drained[handle]);
        let mut waits = false;
        loop {
            match self.stage.handles[handle].machine.poll_output() {
                Output::Send(command) => {
                    drained.commands += 1;
                    self.send(handle, command);
                }
                Output::Event(event) => {
                    drained.granted |= matches!(
                        event,
                        Event::Acquired { .. } | Event::Extended { .. } | Event::Renewed { .. }
                    );
                    self.trace.note(self.stage.now, || words::event(&self.stage, handle, &event));
                    waits |= matches!(event, Event::AttemptFailed { .. });
                    self.watch.event(&self.stage, handle, &event, &mut self.summary);
                    self.oracle.event(&self.stage, handle, &event)?;
                }
                Output::Wait(wait) => {
                    drained.wait = wait;
                    break;
                }
            }
            drained.outputs += 1;
        }
        self.watch.drained(&self.stage, handle, &mut self.summary);
        if self.oracle.drained(&self.stage, handle, &drained)? {
            self.summary.count(Mark::LeftNothing);
        }
        self.stage.handles[handle].wakes = drained.wait;
        self.arm(handle);
        if waits {
            self.look_out(handle);
        }
        Ok(())
    }

    /// Sets the timer of a handle, unless it is set for an earlier moment.
    fn arm(&mut self, handle: usize) {
        let Some(at) = self.stage.handles[handle].wakes else { return };
        let mut due = self.stage.when(handle, at).max(self.stage.now);
        if !self.healing && self.options.habits.tardy > 0 {
            due += self.choices.between(0, self.options.habits.tardy);
        }
        let sleeper = &mut self.stage.handles[handle];
        if sleeper.armed.is_none_or(|armed| due < armed) {
            sleeper.armed = Some(due);
            self.agenda.add(due, Happening::Wakes(handle));
        }
    }
}
