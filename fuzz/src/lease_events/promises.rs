//! What a machine has promised, and whether it keeps it. Knows what was asked, what was sent and what was
//! answered; works the rest out by itself.

use redlock_core::{
    Command, CommandId, Event, FencingToken, Instant, Intent, LeaseMachine, LeaseState, LossReason,
    NotAcquiredReason, Patience, ReleaseOutcome, Token, Ttl,
};

use super::reply::Said;
use super::sent::SentLog;
use super::setup::{Drift, Settings};

#[derive(Debug)]
pub(crate) struct Promises {
    settings: Settings,
    drift: Drift,
    now: Instant,
    /// Requests that have not ended.
    acquiring: Option<Patience>,
    extending: bool,
    releasing: bool,
    /// The last word is that the caller has gone away.
    abandoned: bool,
    /// The end of the lease that is held.
    end: Option<Instant>,
    /// When it was acquired.
    since: Instant,
    fencing: Option<FencingToken>,
    /// Attempts made for the last acquire.
    made: u32,
    /// When the pause ends that is going on.
    pausing: Option<Instant>,
    /// The input is a hint that came in this pause.
    hint_in: Option<Instant>,
    /// The attempt was made because of hints; the pause that it was made in goes on.
    hinted_in: Option<Instant>,
    /// Attempts made because of hints, and the hints that there were.
    made_by_hints: u32,
    hints: u32,
    attempt: Pass,
    extension: Pass,
    /// The token of every attempt, and the nodes that were told to delete it, a bit each.
    tokens: Vec<(Token, u8)>,
}

/// One command to every node.
#[derive(Debug, Default)]
struct Pass {
    started: Instant,
    ttl: Option<Ttl>,
    ids: Vec<CommandId>,
}

/// What was asked.
impl Promises {
    pub(crate) fn new(settings: Settings, drift: Drift) -> Self {
        Self {
            settings,
            drift,
            now: Instant::EPOCH,
            acquiring: None,
            extending: false,
            releasing: false,
            abandoned: false,
            end: None,
            since: Instant::EPOCH,
            fencing: None,
            made: 0,
            pausing: None,
            hint_in: None,
            hinted_in: None,
            made_by_hints: 0,
            hints: 0,
            attempt: Pass::default(),
            extension: Pass::default(),
            tokens: Vec::new(),
        }
    }

    pub(crate) const fn acquire_asked(&mut self, patience: Patience) {
        self.acquiring = Some(patience);
        self.made = 0;
        self.made_by_hints = 0;
        self.hints = 0;
        self.abandoned = false;
    }

    pub(crate) const fn extension_asked(&mut self) {
        self.extending = true;
    }

    /// `over`: the lease that is released will turn out to be lost.
    pub(crate) const fn release_asked(&mut self, over: bool) {
        self.releasing = true;
        if !over {
            self.end = None;
        }
    }

    pub(crate) const fn abandoned(&mut self) {
        self.abandoned = true;
    }

    pub(crate) const fn hinted(&mut self) {
        self.hint_in = self.pausing;
        self.hints += 1;
    }

    /// Whether an attempt has failed and the next is waited for.
    pub(crate) const fn pausing(&self) -> bool {
        self.pausing.is_some()
    }

    pub(crate) const fn acquiring(&self) -> Option<Patience> {
        self.acquiring
    }

    pub(crate) const fn extension_pending(&self) -> bool {
        self.extending
    }

    pub(crate) const fn is_pending(&self) -> bool {
        self.acquiring.is_some() || self.extending || self.releasing
    }

    pub(crate) const fn end(&self) -> Option<Instant> {
        self.end
    }
}

/// What was sent.
impl Promises {
    pub(crate) const fn begin_input(&mut self, now: Instant) {
        self.now = now;
    }

    pub(crate) fn command(&mut self, command: &Command) {
        let Command { id, node, deadline, key, intent } = command;
        assert!(node.index() < self.nodes() && **key == **self.settings.spec.resource());
        assert!(*deadline > self.now, "{intent:?} is given no time");
        let known = self.tokens.iter().any(|(token, _)| *token == intent.token());
        match intent {
            Intent::SetNxPx { token, ttl } | Intent::FencedAcquire { token, ttl, .. } => {
                let current = self.is_current(*token);
                if current && self.end.is_some() {
                    assert!(self.settings.spec.config().repair(), "a repair that was not asked for");
                    assert!(matches!(intent, Intent::SetNxPx { .. }), "a repair that takes a fencing token");
                    return;
                }
                assert!(self.acquiring.is_some(), "an attempt that was not asked for");
                assert_eq!(*ttl, self.settings.spec.config().ttl());
                let fenced = matches!(intent, Intent::FencedAcquire { .. });
                assert_eq!(fenced, self.settings.spec.fencing_key().is_some());
                if node.index() == 0 {
                    assert!(!known, "a token for two attempts");
                    self.tokens.push((*token, 0));
                    self.made += 1;
                    self.pausing = None;
                    self.hinted_in = self.hint_in;
                    self.made_by_hints += u32::from(self.hint_in.is_some());
                }
                assert!(self.is_current(*token));
                self.attempt.ask(node.index(), *id, self.now, *ttl);
            }
            Intent::CompareAndPexpire { token, ttl } => {
                assert!(self.is_current(*token) && self.end.is_some(), "an extension of nothing");
                self.extension.ask(node.index(), *id, self.now, *ttl);
            }
            Intent::CompareAndDelete { token } => {
                assert!(known, "a delete of what nobody has set");
                assert!(!self.is_current(*token) || self.end.is_none(), "a delete of a key that is held");
                let told = self.tokens.iter_mut().find(|(sent, _)| sent == token);
                told.expect("a known token").1 |= 1 << node.index();
            }
        }
    }

    /// Whether this is the last attempt's token.
    fn is_current(&self, token: Token) -> bool {
        self.tokens.last().is_some_and(|(last, _)| *last == token)
    }

    /// Every attempt was taken back at every node.
    pub(crate) fn check_taken_back(&self) {
        let all = (1 << self.nodes()) - 1;
        let left = self.tokens.iter().find(|(_, told)| *told != all);
        assert!(left.is_none(), "not every node was told to delete the token: {left:?}");
    }

    fn nodes(&self) -> usize {
        self.settings.spec.nodes().len()
    }
}

impl Pass {
    fn ask(&mut self, node: usize, id: CommandId, now: Instant, ttl: Ttl) {
        if node == 0 {
            *self = Self { started: now, ttl: Some(ttl), ids: Vec::new() };
        }
        assert_eq!(
            (self.ids.len(), self.started, self.ttl),
            (node, now, Some(ttl)),
            "one pass, one question"
        );
        self.ids.push(id);
    }

    /// How many nodes said so.
    fn count(&self, sent: &mut SentLog, said: impl Fn(Said) -> bool) -> usize {
        self.ids.iter().filter(|id| sent.find(**id).and_then(|sent| sent.said).is_some_and(&said)).count()
    }
}

/// What was told.
impl Promises {
    pub(crate) fn event(&mut self, event: &Event, sent: &mut SentLog) {
        match event {
            Event::Acquired { valid_until, fencing, attempt } => {
                assert!(self.acquiring.take().is_some(), "acquired unasked");
                assert_eq!((self.end, *attempt), (None, self.made));
                self.check_quorum(&self.attempt, sent);
                let longest = self.longest(&self.attempt);
                assert!(self.now < longest, "acquired at {:?}, after {longest:?}", self.now);
                self.since = self.now;
                let capped = self.capped(longest);
                assert!(*valid_until <= capped, "acquired until {valid_until:?}, not {capped:?}");
                self.check_fencing(*fencing, sent);
                self.fencing = *fencing;
                self.end = Some(*valid_until);
            }
            Event::AcquireFailed(failed) => {
                self.pausing = None;
                assert!(self.acquiring.take().is_some(), "failed unasked");
                if failed.reason == NotAcquiredReason::Taken {
                    let refused = self.attempt.count(sent, |said| said == Said::No);
                    assert!(refused > self.nodes() - self.quorum(), "taken at {refused} nodes");
                }
                assert_eq!(failed.reason == NotAcquiredReason::Cancelled, self.abandoned);
            }
            Event::AttemptFailed { attempt, retry_at, .. } => {
                assert!(self.acquiring.is_some() && *attempt == self.made);
                match self.hinted_in.take() {
                    Some(planned) => assert_eq!(*retry_at, planned, "hints have moved the next attempt"),
                    None => assert!(*retry_at > self.now),
                }
                self.pausing = Some(*retry_at);
                let yes = self.attempt.count(sent, |said| matches!(said, Said::Yes(_)));
                assert!(yes < self.quorum() || self.now >= self.longest(&self.attempt), "given up too early");
            }
            Event::Extended { valid_until } => {
                assert!(self.extending, "extended unasked");
                self.extending = false;
                self.extended(*valid_until, sent);
            }
            Event::Renewed { valid_until } => {
                assert!(self.settings.renews, "renewed unasked");
                self.extended(*valid_until, sent);
            }
            Event::ExtendFailed(_) => {
                assert!(self.extending, "not extended, and not asked to");
                self.extending = false;
            }
            Event::RenewFailed { retry_at, .. } => {
                assert!(self.settings.renews && self.end.is_some() && *retry_at > self.now);
            }
            Event::Lost { reason } => self.lost(*reason, sent),
            Event::Released(outcome) => {
                assert!(self.releasing, "released unasked");
                self.releasing = false;
                self.check_released(*outcome, sent);
            }
            Event::ReleaseFailed(_) => {
                assert!(self.releasing, "not released, and not asked to");
                self.releasing = false;
            }
            other => panic!("what is {other:?}?"),
        }
    }

    fn extended(&mut self, valid_until: Instant, sent: &mut SentLog) {
        self.check_quorum(&self.extension, sent);
        let end = self.end.expect("a lease to extend");
        let longest = self.capped(self.longest(&self.extension)).max(end);
        assert!(valid_until <= longest, "extended until {valid_until:?}, not {longest:?}");
        assert!(valid_until > self.now, "extended until {valid_until:?}, at {:?}", self.now);
        self.end = Some(valid_until);
    }

    fn lost(&mut self, reason: LossReason, sent: &SentLog) {
        let end = self.end.take().expect("a lease to lose");
        let config = self.settings.spec.config();
        match reason {
            LossReason::Expired => assert!(self.now >= end, "expired at {:?}, not {end:?}", self.now),
            LossReason::MaxHold => assert!(self.now >= end && config.max_hold().is_some()),
            LossReason::RenewalFailed => {
                assert!(self.settings.renews && self.settings.renew_attempts.is_some());
            }
            LossReason::Refused => {
                let without = self.nodes_that(sent, |said| matches!(said, Said::No | Said::NotExecuted));
                assert!(without > self.nodes() - self.quorum(), "refused by {without} nodes");
            }
            LossReason::Closed => assert!(self.abandoned, "closed by nobody"),
            other => panic!("what is {other:?}?"),
        }
    }

    /// After each input: what the machine shows agrees with what it has said.
    pub(crate) fn end_input(&mut self, machine: &LeaseMachine) {
        let state = machine.state();
        self.hint_in = None;
        assert!(self.made_by_hints <= self.hints, "more attempts than hints");
        if let Some(Patience::Attempts(attempts)) = self.acquiring {
            assert!(self.made - self.made_by_hints <= attempts.max(1), "more attempts than were asked for");
        }
        assert_eq!(state == LeaseState::Acquiring, self.acquiring.is_some(), "{state:?}");
        assert_eq!(state == LeaseState::Releasing, self.releasing, "{state:?}");
        assert_eq!(state == LeaseState::Held, self.end.is_some(), "{state:?}");
        assert!(!self.extending || state == LeaseState::Held, "an extension without an end");
        for pass in [&self.attempt, &self.extension] {
            assert!(pass.ids.is_empty() || pass.ids.len() == self.nodes(), "not every node was asked");
        }
        let end = machine.valid_until();
        assert!(end <= self.end, "{end:?} was not promised");
        assert!(end.is_none_or(|end| self.now < end), "over, and not lost");
        assert_eq!(machine.fencing_token(), self.fencing.filter(|_| end.is_some()));
        self.end = end;
    }
}

/// What can be worked out.
impl Promises {
    fn quorum(&self) -> usize {
        self.nodes() / 2 + 1
    }

    fn check_quorum(&self, pass: &Pass, sent: &mut SentLog) {
        let yes = pass.count(sent, |said| matches!(said, Said::Yes(_)));
        assert!(yes >= self.quorum(), "{yes} nodes said yes");
    }

    /// The latest end that a pass can bring.
    fn longest(&self, pass: &Pass) -> Instant {
        let ttl = pass.ttl.expect("a pass that was made");
        pass.started.saturating_add(self.drift.validity(ttl))
    }

    fn capped(&self, end: Instant) -> Instant {
        let max_hold = self.settings.spec.config().max_hold();
        max_hold.map_or(end, |max_hold| self.since.saturating_add(max_hold).min(end))
    }

    fn check_fencing(&self, fencing: Option<FencingToken>, sent: &mut SentLog) {
        let number = fencing.map(FencingToken::get);
        assert_eq!(number.is_some(), self.settings.spec.fencing_key().is_some());
        if number.is_some() {
            assert_eq!(
                self.attempt.count(sent, |said| said == Said::Yes(number)),
                1,
                "{number:?} is nobody's"
            );
        }
    }

    /// A quorum is free of the token, or, if it was gone before, too few can have had it.
    fn check_released(&self, outcome: ReleaseOutcome, sent: &SentLog) {
        let denied = self.nodes_that(sent, |said| matches!(said, Said::No | Said::NotExecuted));
        match outcome {
            ReleaseOutcome::Released => {
                let free = self.nodes_that(sent, |said| said != Said::Unknown);
                assert!(free >= self.quorum(), "released, with {free} nodes free");
            }
            ReleaseOutcome::AlreadyExpired => {
                let over = self.end.is_none() && !self.releasing;
                assert!(over || denied > self.nodes() - self.quorum(), "expired, says who?");
            }
        }
    }

    /// How many nodes have ever said so to a command with the current token.
    fn nodes_that(&self, sent: &SentLog, said: impl Fn(Said) -> bool) -> usize {
        let token = self.tokens.last().map(|(token, _)| *token);
        let fits = |index: &usize| {
            let mut here = sent.all().iter().filter(|sent| sent.command.node.index() == *index);
            here.any(|sent| Some(sent.command.intent.token()) == token && sent.said.is_some_and(&said))
        };
        (0..self.nodes()).filter(fits).count()
    }
}
