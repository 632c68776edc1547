//! What must be true, one promise a file. The observers see what goes in and comes out, the servers'
//! keys and the true time; they know nothing of how a machine decides.

mod backing;
mod bounds;
mod deadline;
mod exclusion;
mod expiry;
mod fencing;
mod leftover;
mod refusal;
mod terminal;
mod verdict;
mod wakeup;

use redlock_core::{Command, Event, Instant, LeaseMachine, LossReason, Patience, ReleaseOutcome};

use crate::Mode;
use crate::options::Options;
use crate::world::{Request, Stage};

pub(crate) use bounds::Drained;

/// A promise that does not hold.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) invariant: &'static str,
    pub(crate) what: String,
}

impl Broken {
    pub(crate) fn new(invariant: &'static str, what: String) -> Self {
        Self { invariant, what }
    }

    /// The scenario itself makes no sense.
    pub(crate) fn setup(error: impl ToString) -> Self {
        Self::new("setup", error.to_string())
    }
}

/// What a user asks for, as far as it has an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Acquire(Patience),
    Extend,
    Release,
}

impl Wish {
    pub(crate) const COUNT: usize = 3;

    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Acquire(_) => 0,
            Self::Extend => 1,
            Self::Release => 2,
        }
    }

    pub(crate) const fn name(index: usize) -> &'static str {
        ["acquire", "extend", "release"][index]
    }
}

/// All observers together.
#[derive(Debug)]
pub(crate) struct Oracle {
    /// With an assumption broken, only the promise itself is judged.
    strict: bool,
    /// Requests may arrive twice, so that a node that was left clean may not stay so.
    repeats: bool,
    longest_ttl: u64,
    fencing: fencing::Fencing,
    terminal: terminal::Terminal,
    deadline: deadline::Deadline,
    bounds: bounds::Bounds,
    leftover: leftover::Leftover,
    verdict: verdict::Verdict,
}

impl Oracle {
    pub(crate) fn new(options: &Options, mode: Mode) -> Self {
        Self {
            strict: mode == Mode::Sound,
            repeats: options.network.repeat_request > 0,
            longest_ttl: options.longest_ttl,
            fencing: fencing::Fencing::default(),
            terminal: terminal::Terminal::default(),
            deadline: deadline::Deadline::default(),
            bounds: bounds::Bounds::default(),
            leftover: leftover::Leftover::default(),
            verdict: verdict::Verdict::default(),
        }
    }

    /// One more handle, or a handle whose process began anew.
    pub(crate) fn begin(&mut self, handle: usize) {
        self.terminal.begin(handle);
        self.deadline.begin(handle);
        self.bounds.begin(handle);
        self.leftover.begin(handle);
        self.verdict.begin(handle);
    }
}

/// Messages.
impl Oracle {
    pub(crate) fn sent(&mut self, stage: &Stage, handle: usize, server: usize, command: &Command) {
        self.deadline.sent(stage, handle, command);
        if command.intent.acquires() {
            self.leftover.asked(handle, command.intent.token());
            self.verdict.under_way(handle, server, command);
        }
    }

    /// The request was carried out, or never will be.
    pub(crate) fn over_with(&mut self, request: &Request) {
        self.verdict.over(request);
    }

    /// Every key and counter is gone, by an accident that leases must stand.
    pub(crate) fn data_lost(&mut self) {
        self.fencing.forget();
    }

    /// Something went wrong with this command.
    pub(crate) fn disturbed(&mut self, stage: &Stage, request: &Request) {
        if stage.handles[request.handle].life == request.life {
            self.leftover.disturbed(request.handle);
        }
    }

    /// A command was carried out.
    pub(crate) fn executed(&self, stage: &Stage, request: &Request) -> Result<(), Broken> {
        if !self.strict {
            return Ok(());
        }
        expiry::check(stage, request.server, &request.command.key, self.longest_ttl)?;
        let resource = stage.handles[request.handle].resource;
        stage.handles_of(resource).try_for_each(|handle| backing::check(stage, handle))
    }
}

/// Inputs and outputs.
impl Oracle {
    pub(crate) fn before_input(&mut self, handle: usize, machine: &LeaseMachine, shown: Instant) {
        self.deadline.before_input(handle, shown);
        self.bounds.before_input(handle, machine);
    }

    /// A request was accepted.
    pub(crate) fn asked(
        &mut self,
        handle: usize,
        machine: &LeaseMachine,
        shown: Instant,
        wish: Wish,
        was_held: bool,
    ) {
        self.terminal.asked(handle, wish, was_held);
        self.deadline.asked(handle, machine, shown, wish);
    }

    pub(crate) fn event(&mut self, stage: &Stage, handle: usize, event: &Event) -> Result<(), Broken> {
        if !self.strict {
            return Ok(());
        }
        let ended = self.terminal.event(stage, handle, event)?;
        ended.into_iter().for_each(|wish| self.deadline.ended(handle, wish));
        match event {
            Event::Acquired { fencing: Some(fencing), .. } => self.fencing.acquired(stage, handle, *fencing),
            Event::Released(ReleaseOutcome::Released) if !self.repeats => {
                self.verdict.released(stage, handle)
            }
            Event::Lost { reason: LossReason::Refused } => refusal::check(stage, handle),
            _ => Ok(()),
        }
    }

    /// A machine has taken inputs, and everything that it had to say was taken from it.
    pub(crate) fn drained(
        &mut self,
        stage: &Stage,
        handle: usize,
        drained: &Drained,
    ) -> Result<bool, Broken> {
        exclusion::check(stage, handle)?;
        if !self.strict {
            return Ok(false);
        }
        backing::check(stage, handle)?;
        self.bounds.check(stage, handle, drained)?;
        wakeup::check(stage, handle, drained)?;
        self.deadline.check(stage, handle, drained)?;
        if drained.abandoned {
            self.terminal.abandoned(stage, handle)?;
        }
        if !stage.handles[handle].machine.is_settled() {
            return Ok(false);
        }
        self.terminal.at_rest(stage, handle)?;
        self.leftover.settled(stage, handle, &self.verdict)
    }

    /// The scenario is over, and every key has had the time to expire.
    pub(crate) fn over(&self, stage: &Stage) -> Result<(), Broken> {
        if !self.strict {
            return Ok(());
        }
        for handle in 0..stage.handles.len() {
            if !stage.handles[handle].machine.is_settled() {
                let state = stage.handles[handle].machine.state();
                return Err(Broken::new(
                    "terminal",
                    format!("{} never comes to rest: {state:?}", stage.name(handle)),
                ));
            }
            self.terminal.at_rest(stage, handle)?;
            expiry::gone(stage, handle)?;
        }
        Ok(())
    }
}
