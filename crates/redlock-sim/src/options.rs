//! What a scenario is made of. Everything is drawn, and each kind of trouble is left out of some
//! scenarios altogether: some failures show only where others do not get in the way.

use std::time::Duration;

use redlock_core::{Config, DriftFactor, Renewal, Ttl};

use crate::Mode;
use crate::choices::Choices;
use crate::clock::{Clock, MS};

/// How many resources there can be.
pub(crate) const RESOURCES: usize = 2;

#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// How fast the servers' clocks go, in parts in a million too fast. One for each server.
    pub(crate) servers: Vec<i32>,
    /// Which server each node of the configuration is, by client.
    pub(crate) routes: Vec<Vec<usize>>,
    pub(crate) clients: Vec<ClientOptions>,
    pub(crate) fenced: [bool; RESOURCES],
    pub(crate) drift_ppm: u32,
    /// The ttl that all spans of the scenario are proportional to, in nanoseconds.
    pub(crate) ttl: u64,
    /// The longest ttl that any key can be given, in nanoseconds.
    pub(crate) longest_ttl: u64,
    pub(crate) network: NetworkOptions,
    pub(crate) habits: Habits,
    pub(crate) troubles: Vec<Trouble>,
    /// From one trouble to the next.
    pub(crate) respite: (u64, u64),
    /// How long things go wrong.
    pub(crate) safety: u64,
    /// For how long after its start a server gives no votes, if clients look at that.
    pub(crate) guard: Option<Duration>,
}

#[derive(Clone, Debug)]
pub(crate) struct ClientOptions {
    pub(crate) clock: Clock,
    pub(crate) config: Config,
    /// The resource of each of its handles.
    pub(crate) handles: Vec<usize>,
}

/// Chances are per mille, spans in true nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkOptions {
    pub(crate) delay: (u64, u64),
    /// Chance of a message that takes long, and how long.
    pub(crate) straggler: u64,
    pub(crate) straggle: u64,
    pub(crate) lose_request: u64,
    pub(crate) lose_reply: u64,
    /// Chance that the sender is told of a loss.
    pub(crate) tell: u64,
    pub(crate) repeat_reply: u64,
    pub(crate) repeat_request: u64,
    /// Chance of an answer that says nothing, before or after the command was carried out.
    pub(crate) garble: u64,
    /// Messages of one link stay in order.
    pub(crate) in_order: bool,
}

/// What users do, and how punctual their machines are. Chances are per mille.
#[derive(Clone, Debug)]
pub(crate) struct Habits {
    pub(crate) think: (u64, u64),
    pub(crate) extend: u64,
    /// Extensions ask for the configured ttl and no other.
    pub(crate) extend_alike: bool,
    /// Chance of giving up in the middle of something.
    pub(crate) abandon: u64,
    /// Chance of a request that the state does not allow.
    pub(crate) rude: u64,
    /// Chance of an acquire with a limit in time rather than in attempts.
    pub(crate) patient: u64,
    /// How late a timer may be handled, and the chance of handling one early.
    pub(crate) tardy: u64,
    pub(crate) early: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// One way between one client and one server goes dead.
    Cut,
    /// One server cannot be reached by anybody.
    Isolate,
    /// Everything takes longer.
    Slow,
    Freeze,
    CrashKeeping,
    /// The server's data is lost, and it stays away for longer than any key could have lived.
    CrashLosing,
    ReadOnly,
    /// A client's machine is suspended.
    Pause,
    /// A client's process ends, and a new one begins.
    Die,
    /// Breaks an assumption: data is lost, and the server is back at once.
    Forget,
    /// Breaks an assumption: a server's clock jumps forward.
    Jump,
}

const ALLOWED: [Trouble; 9] = [
    Trouble::Cut,
    Trouble::Isolate,
    Trouble::Slow,
    Trouble::Freeze,
    Trouble::CrashKeeping,
    Trouble::CrashLosing,
    Trouble::ReadOnly,
    Trouble::Pause,
    Trouble::Die,
];

impl Options {
    pub(crate) fn draw(choices: &mut Choices, mode: Mode) -> Self {
        let servers = choices.pick(&[1, 3, 3, 5]);
        let scale = choices.pick(&[100, 8, 20, 50, 1_000]);
        let ttl = scale * MS;
        let drift_ppm = choices.pick(&[10_000, 0, 1_000, 50_000, 200_000]);
        let resources = if choices.chance(200) { RESOURCES } else { 1 };
        let clients: Vec<ClientOptions> = (0..2 + choices.below(3))
            .map(|_| ClientOptions::draw(choices, scale, drift_ppm, resources))
            .collect();
        let longest = clients.iter().map(|client| client.config.ttl().as_millis()).max().unwrap_or(scale);
        let mut options = Self {
            servers: vec![0; servers],
            routes: vec![(0..servers).collect(); clients.len()],
            clients,
            fenced: [servers == 1 && choices.chance(600), servers == 1 && choices.chance(600)],
            drift_ppm,
            ttl,
            longest_ttl: longest_extension(ttl).max(longest * MS),
            network: NetworkOptions::draw(choices, ttl),
            habits: Habits::draw(choices, ttl),
            troubles: Vec::new(),
            respite: (ttl / 5, choices.pick(&[2 * ttl, ttl, 4 * ttl])),
            safety: ttl * choices.between(2, 6),
            guard: None,
        };
        options.troubles.extend(ALLOWED.into_iter().filter(|_| choices.chance(250)));
        options.draw_clocks(choices);
        options.break_with(choices, mode);
        if options.network.repeat_request > 0 && mode != Mode::TwiceSent {
            // A repeated extension may shorten what a later one has granted: see docs/simulator.md.
            options.habits.extend_alike = true;
        }
        options
    }

    /// Draws the speed of each clock. Any two differ by the drift factor at most: the fastest is
    /// `1 + drift / 2`, the slowest `1 - drift / 2`, and the ratio of these is less than
    /// `1 / (1 - drift)`, which is what a lease can stand.
    fn draw_clocks(&mut self, choices: &mut Choices) {
        let limit = i32::try_from(self.drift_ppm / 2).unwrap_or_default();
        let worst = choices.chance(400);
        let mut rate = |worst_case: i32| {
            let speed = i32::try_from(choices.below(u64::from(limit.unsigned_abs()) + 1)).unwrap_or_default();
            let slow = choices.chance(500);
            if worst {
                worst_case
            } else if slow {
                -speed
            } else {
                speed
            }
        };
        for server in &mut self.servers {
            *server = rate(limit);
        }
        for client in &mut self.clients {
            let drift = rate(-limit);
            client.clock = Clock::new(0, drift);
        }
        for client in &mut self.clients {
            client.clock.begin_at(choices.below(10_000) * MS);
        }
    }

    /// Changes what the mode says, and makes room for it to show.
    fn break_with(&mut self, choices: &mut Choices, mode: Mode) {
        match mode {
            Mode::Sound => return,
            Mode::ClockJump => self.troubles = vec![Trouble::Jump],
            Mode::RestartEmpty => self.troubles = vec![Trouble::Forget],
            Mode::GuardedRestart => {
                self.troubles = vec![Trouble::Forget];
                self.guard_restarts();
            }
            Mode::ShortGuard => {
                self.troubles = vec![Trouble::Forget];
                self.guard = Some(Duration::from_nanos(self.ttl / 4));
            }
            Mode::SameServer | Mode::SharedServer => self.share_a_server(choices, mode),
            Mode::OldReplies | Mode::OneToken => {
                self.network.in_order = false;
                self.network.straggler = 200;
            }
            Mode::ExcessDrift => {
                for server in &mut self.servers {
                    *server = 300_000;
                }
                for client in &mut self.clients {
                    client.clock = Clock::new(0, -300_000);
                }
            }
            Mode::ReplyTime => self.network.delay.1 = self.ttl / 3,
            Mode::TwiceSent => {
                self.network.repeat_request = 500;
                self.network.straggle = self.ttl;
                self.habits.extend = 700;
                self.habits.extend_alike = false;
                self.habits.patient = 1_000;
                self.habits.think.1 = self.ttl / 4;
                self.troubles.clear();
            }
            Mode::StoppedClock => self.troubles = vec![Trouble::Pause],
        }
        // Everybody wants the same thing.
        self.clients.iter_mut().for_each(|client| client.handles.fill(0));
    }

    /// Gives everybody the shortest restart guard that settings with the longest ttl accept.
    fn guard_restarts(&mut self) {
        let longest = Duration::from_nanos(self.longest_ttl);
        for client in &mut self.clients {
            let drift = client.config.drift();
            let guard = longest + Ttl::new(longest).map_or(Duration::ZERO, |ttl| drift.drift(ttl));
            client.config = client.config.to_builder().restart_guard(guard).build().unwrap_or_default();
            self.guard = client.config.restart_guard();
        }
    }

    /// How long the lease can take to become free when nothing goes wrong any more and everybody is at
    /// rest: as long as the longest key lives.
    pub(crate) fn longest_wait(&self) -> Duration {
        Duration::from_nanos(2 * self.longest_ttl)
    }

    fn share_a_server(&mut self, choices: &mut Choices, mode: Mode) {
        if self.servers.len() == 1 {
            self.servers = vec![0; 3];
            self.routes = vec![vec![0, 1, 2]; self.clients.len()];
            self.fenced = [false; RESOURCES];
        }
        // The lease must outlive the key at the server that is counted once.
        self.troubles = vec![Trouble::Cut, Trouble::Cut, Trouble::Isolate];
        for client in &mut self.clients {
            let renewed = client.config.to_builder().auto_renew(Renewal::ThirdOfTtl).build();
            client.config = renewed.unwrap_or_default();
        }
        let from = choices.index(self.servers.len());
        let to = (from + 1) % self.servers.len();
        for route in &mut self.routes {
            if mode == Mode::SharedServer || choices.chance(500) {
                route[from] = to;
            }
        }
    }
}

/// The longest ttl that an extension asks for.
pub(crate) const fn longest_extension(ttl: u64) -> u64 {
    ttl + ttl / 2
}

impl ClientOptions {
    /// The settings of somebody who comes when everything is over.
    pub(crate) fn patient(options: &Options) -> Config {
        let span = Duration::from_nanos(options.ttl);
        let builder = Config::builder().ttl(span).drift_factor(f64::from(options.drift_ppm) / 1e6);
        builder.retry_delay(span / 10).operation_timeout(span).build().unwrap_or_default()
    }

    fn draw(choices: &mut Choices, scale: u64, drift_ppm: u32, resources: usize) -> Self {
        let handles = 1 + usize::from(choices.chance(150));
        Self {
            clock: Clock::new(0, 0),
            config: draw_config(choices, scale, drift_ppm),
            handles: (0..handles).map(|_| choices.index(resources)).collect(),
        }
    }
}

fn draw_config(choices: &mut Choices, scale: u64, drift_ppm: u32) -> Config {
    let factor = f64::from(drift_ppm) / 1e6;
    let millis = (scale * choices.pick(&[2, 1, 4]) / 2).max(5);
    let span = |nanos| Duration::from_nanos(nanos);
    let mut builder = Config::builder()
        .ttl(Duration::from_millis(millis))
        .drift_factor(factor)
        .attempts(choices.between(1, 4) as u32)
        .retry_delay(span(choices.between(scale * MS / 10, scale * MS / 2)))
        .repair(choices.chance(300));
    if choices.chance(500) {
        builder = builder.operation_timeout(span(choices.between(MS, (millis * MS).max(MS))));
    }
    let drift = DriftFactor::new(factor).unwrap_or_default();
    let validity = Ttl::from_millis(millis).and_then(|ttl| drift.validity(ttl)).unwrap_or_default();
    let validity = u64::try_from(validity.as_nanos()).unwrap_or_default();
    if choices.chance(600) {
        let own = choices.chance(500) && validity > MS;
        let interval = own.then(|| span(choices.between((validity / 10).max(MS), validity - 1)));
        builder = builder.auto_renew(interval.map_or(Renewal::ThirdOfTtl, Renewal::Every));
    }
    if choices.chance(250) {
        builder = builder.renew_attempts(choices.between(1, 3) as u32);
    }
    if choices.chance(250) {
        builder = builder.max_hold(span(choices.between(MS, 4 * millis * MS)));
    }
    builder.build().unwrap_or_default()
}

impl NetworkOptions {
    fn draw(choices: &mut Choices, ttl: u64) -> Self {
        let slowest = ttl / choices.pick(&[100, 50, 20, 5]);
        let in_order = choices.chance(300);
        let repeat_request = if choices.chance(100) { 150 } else { 0 };
        let mut maybe = |often| match choices.below(16) {
            0..8 => 0,
            8..13 => often / 5,
            13..15 => often,
            _ => 3 * often,
        };
        Self {
            delay: (slowest / 10, slowest),
            straggler: maybe(200),
            straggle: 2 * ttl,
            lose_request: maybe(200),
            lose_reply: maybe(200),
            tell: maybe(500),
            repeat_reply: maybe(200),
            repeat_request,
            garble: maybe(100),
            in_order,
        }
    }
}

impl Habits {
    fn draw(choices: &mut Choices, ttl: u64) -> Self {
        Self {
            think: (ttl / 20, ttl * choices.pick(&[2, 1, 4, 8]) / 4),
            extend: if choices.chance(700) { 350 } else { 0 },
            extend_alike: choices.chance(100),
            abandon: if choices.chance(500) { 150 } else { 0 },
            rude: if choices.chance(300) { 100 } else { 0 },
            patient: choices.pick(&[300, 0, 1_000]),
            tardy: if choices.chance(400) { ttl / choices.pick(&[50, 10, 2]) } else { 0 },
            early: if choices.chance(200) { 100 } else { 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_settings_are_valid_and_of_the_scenarios_scale() {
        for seed in 0..2_000 {
            let options = Options::draw(&mut Choices::from_seed(seed), Mode::Sound);
            for client in &options.clients {
                let millis = client.config.ttl().as_millis();
                assert!(millis <= 2 * options.ttl / MS, "seed {seed}: {client:?}");
            }
        }
    }

    #[test]
    fn clocks_differ_by_the_drift_at_most() {
        for seed in 0..2_000 {
            let options = Options::draw(&mut Choices::from_seed(seed), Mode::Sound);
            let limit = i32::try_from(options.drift_ppm / 2).unwrap();
            assert!(options.servers.iter().all(|server| server.abs() <= limit));
        }
    }

    #[test]
    fn no_bytes_make_the_tamest_scenario() {
        let options = Options::draw(&mut Choices::from_bytes(&[]), Mode::Sound);
        assert_eq!(options.servers, [0]);
        assert_eq!(options.clients.len(), 2);
        assert_eq!(options.troubles, []);
        assert_eq!(options.network.lose_request, 0);
    }
}
