use std::fmt;

/// Something that can happen in a scenario. A test demands that each of them does: invariants that hold
/// only because nothing ever happens are worth nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Mark {
    /// A lease was acquired.
    Acquired,
    /// It took more than one attempt.
    AcquiredLater,
    /// It was acquired after somebody else's had run out or its process had died.
    TakenOver,
    /// An attempt failed because the resource was taken.
    Taken,
    /// An attempt failed because too few nodes answered.
    Unreachable,
    /// An attempt failed for both reasons.
    Mixed,
    /// A quorum was reached too late to be of use.
    ExpiredWhileAcquiring,
    /// An acquire with a limit in time ran out of it.
    WaitedInVain,
    /// An acquire was given up.
    Cancelled,
    /// An automatic renewal was done.
    Renewed,
    /// An automatic renewal failed.
    RenewFailed,
    /// An extension made the lease longer.
    Lengthened,
    /// An extension made the lease shorter.
    Shortened,
    /// An extension reached too few nodes.
    NotExtended,
    /// An extension ended because the lease was lost.
    ExtensionLost,
    /// An extension ended because the lease was released.
    ExtensionReleased,
    /// A lease was lost to its own clock.
    LostExpired,
    /// A lease was lost because a quorum said so.
    LostRefused,
    /// A lease was lost to the longest allowed hold.
    LostMaxHold,
    /// A lease was lost because renewal had failed too often.
    LostRenewal,
    /// A lease was given up.
    LostClosed,
    /// A release ended: done.
    Released,
    /// A release ended: there was nothing to release any more.
    AlreadyExpired,
    /// A release ended without certainty.
    ReleaseFailed,
    /// A fencing token was given out.
    Fenced,
    /// A command was carried out after one that was sent later.
    Overtaken,
    /// An acquire was carried out after the delete that was to undo it.
    SetAfterDelete,
    /// A second delete was sent to a node, for a key that had come late.
    DeletedAgain,
    /// An answer came when nobody waited for it any more.
    StaleReply,
    /// A clean-up was given up after everything it could have left had expired.
    ForgottenCleanup,
    /// A machine had nothing left to do, and had left nothing behind although everything had run.
    LeftNothing,
    /// A request reached its server twice.
    RequestRepeated,
    /// An answer reached its client twice.
    ReplyRepeated,
    /// One way of a link went dead.
    Cut,
    /// A server could not be reached.
    Isolated,
    /// The network became slow.
    Slowed,
    /// A server froze.
    Frozen,
    /// A server crashed and came back with its data.
    CrashedKeeping,
    /// A server crashed and came back without, after a long time.
    CrashedLosing,
    /// A server refused to write.
    ReadOnly,
    /// A client was suspended.
    Paused,
    /// A client was suspended while it held a lease.
    PausedHolding,
    /// A client's process died.
    Died,
    /// A request was refused because of the handle's state.
    RequestRefused,
    /// An acquire was kept back, because its server was in quarantine.
    KeptBack,
    /// A machine was told of a key that it would like to hear of.
    Hinted,
    /// Hints brought about an attempt.
    HintedAttempt,
    /// Such an attempt was won.
    AcquiredByHint,
    /// A hint did not arrive.
    HintLost,
    /// A hint arrived twice.
    HintRepeated,
    /// Somebody was told something out of the blue.
    HintMadeUp,
    /// A new client got the lease when everything was over.
    Healed,
}

impl Mark {
    /// Every mark.
    pub const ALL: [Self; 52] = [
        Self::Acquired,
        Self::AcquiredLater,
        Self::TakenOver,
        Self::Taken,
        Self::Unreachable,
        Self::Mixed,
        Self::ExpiredWhileAcquiring,
        Self::WaitedInVain,
        Self::Cancelled,
        Self::Renewed,
        Self::RenewFailed,
        Self::Lengthened,
        Self::Shortened,
        Self::NotExtended,
        Self::ExtensionLost,
        Self::ExtensionReleased,
        Self::LostExpired,
        Self::LostRefused,
        Self::LostMaxHold,
        Self::LostRenewal,
        Self::LostClosed,
        Self::Released,
        Self::AlreadyExpired,
        Self::ReleaseFailed,
        Self::Fenced,
        Self::Overtaken,
        Self::SetAfterDelete,
        Self::DeletedAgain,
        Self::StaleReply,
        Self::ForgottenCleanup,
        Self::LeftNothing,
        Self::RequestRepeated,
        Self::ReplyRepeated,
        Self::Cut,
        Self::Isolated,
        Self::Slowed,
        Self::Frozen,
        Self::CrashedKeeping,
        Self::CrashedLosing,
        Self::ReadOnly,
        Self::Paused,
        Self::PausedHolding,
        Self::Died,
        Self::RequestRefused,
        Self::KeptBack,
        Self::Hinted,
        Self::HintedAttempt,
        Self::AcquiredByHint,
        Self::HintLost,
        Self::HintRepeated,
        Self::HintMadeUp,
        Self::Healed,
    ];
}

impl Mark {
    /// Whether this is next to impossible while every assumption holds. A quorum says "not your token" to
    /// the holder of a lease when the servers have forgotten what they granted; and only restart guards keep
    /// anything back.
    #[must_use]
    pub const fn is_exceptional(self) -> bool {
        matches!(self, Self::LostRefused | Self::KeptBack)
    }
}

/// What happened, in one scenario or many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    scenarios: u64,
    happenings: u64,
    times: [u64; Mark::ALL.len()],
    /// In how many scenarios it happened at all.
    seen: [u64; Mark::ALL.len()],
}

impl Default for Summary {
    fn default() -> Self {
        Self { scenarios: 0, happenings: 0, times: [0; Mark::ALL.len()], seen: [0; Mark::ALL.len()] }
    }
}

impl Summary {
    /// How many scenarios ran.
    #[must_use]
    pub const fn scenarios(&self) -> u64 {
        self.scenarios
    }

    /// How many messages, timers, deeds and troubles there were.
    #[must_use]
    pub const fn happenings(&self) -> u64 {
        self.happenings
    }

    /// How often this happened.
    #[must_use]
    pub const fn times(&self, mark: Mark) -> u64 {
        self.times[mark as usize]
    }

    /// In how many scenarios this happened.
    #[must_use]
    pub const fn scenarios_with(&self, mark: Mark) -> u64 {
        self.seen[mark as usize]
    }

    /// What never happened, although it was to be expected.
    pub fn missing(&self) -> impl Iterator<Item = Mark> {
        let absent = |mark: &Mark| self.times(*mark) == 0 && !mark.is_exceptional();
        Mark::ALL.into_iter().filter(absent)
    }

    /// Adds what happened elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.scenarios += other.scenarios;
        self.happenings += other.happenings;
        self.times.iter_mut().zip(other.times).for_each(|(sum, more)| *sum += more);
        self.seen.iter_mut().zip(other.seen).for_each(|(sum, more)| *sum += more);
    }

    pub(crate) const fn count(&mut self, mark: Mark) {
        self.count_many(mark, 1);
    }

    pub(crate) const fn count_many(&mut self, mark: Mark, times: u64) {
        self.times[mark as usize] += times;
    }

    /// The scenario is over.
    pub(crate) fn close(&mut self, happenings: u64) {
        self.scenarios = 1;
        self.happenings = happenings;
        self.seen = self.times.map(|times| u64::from(times > 0));
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<24}{:>14}{:>14}", "", "times", "scenarios")?;
        for mark in Mark::ALL {
            let never = if self.times(mark) == 0 && !mark.is_exceptional() { "  NEVER" } else { "" };
            let name = format!("{mark:?}");
            writeln!(f, "{name:<24}{:>14}{:>14}{never}", self.times(mark), self.scenarios_with(mark))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_listed_in_the_order_of_their_numbers() {
        for (number, mark) in Mark::ALL.into_iter().enumerate() {
            assert_eq!(mark as usize, number, "{mark:?}");
        }
    }

    #[test]
    fn sums_count_scenarios_and_times() {
        let mut one = Summary::default();
        one.count(Mark::Acquired);
        one.count(Mark::Acquired);
        one.close(9);
        let mut both = one.clone();
        both.add(&one);
        assert_eq!(both.scenarios(), 2);
        assert_eq!(both.times(Mark::Acquired), 4);
        assert_eq!(both.scenarios_with(Mark::Acquired), 2);
        assert!(both.missing().all(|mark| mark != Mark::Acquired));
        assert!(both.to_string().contains("Renewed                              0             0  NEVER"));
    }
}
