//! Which assumption is broken, if any.

use std::fmt;
use std::str::FromStr;

/// What a scenario takes for granted. All modes but three break something that leases rest on, and
/// must lead to two holders at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Mode {
    /// Everything that a lease may count on is true.
    #[default]
    Sound,
    /// The servers' clocks jump forward.
    ClockJump,
    /// Servers restart without their data and come back at once.
    RestartEmpty,
    /// The same, but all clients have a restart guard for the longest ttl that there is. That makes up for
    /// it: servers give no votes until what they forgot has expired.
    GuardedRestart,
    /// The same with a guard of a quarter of a ttl, which is too short.
    ShortGuard,
    /// For some of the clients, two of the nodes are one server. For others they are two.
    SameServer,
    /// Two of the nodes are one server, for everybody. This costs availability and does not lead to two
    /// holders: any two majorities of nodes still share a node, and that is one server, which gives a
    /// key to one client only.
    SharedServer,
    /// Answers to an earlier attempt count for the current one.
    OldReplies,
    /// Clocks differ in speed by more than the configured drift.
    ExcessDrift,
    /// Validity counts from the answer, not from the question.
    ReplyTime,
    /// All attempts use the same token.
    OneToken,
    /// The network carries a request to a server twice.
    TwiceSent,
    /// The clocks of clients stand still while their machine is suspended.
    StoppedClock,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 13] = [
        Self::Sound,
        Self::ClockJump,
        Self::RestartEmpty,
        Self::GuardedRestart,
        Self::ShortGuard,
        Self::SameServer,
        Self::SharedServer,
        Self::OldReplies,
        Self::ExcessDrift,
        Self::ReplyTime,
        Self::OneToken,
        Self::TwiceSent,
        Self::StoppedClock,
    ];

    /// Whether two holders are to be expected.
    #[must_use]
    pub const fn is_unsafe(self) -> bool {
        !matches!(self, Self::Sound | Self::SharedServer | Self::GuardedRestart)
    }

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::ClockJump => "clock-jump",
            Self::RestartEmpty => "restart-empty",
            Self::GuardedRestart => "guarded-restart",
            Self::ShortGuard => "short-guard",
            Self::SameServer => "same-server",
            Self::SharedServer => "shared-server",
            Self::OldReplies => "old-replies",
            Self::ExcessDrift => "excess-drift",
            Self::ReplyTime => "reply-time",
            Self::OneToken => "one-token",
            Self::TwiceSent => "twice-sent",
            Self::StoppedClock => "stopped-clock",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("no such mode: {name}; there are {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_found_by_its_name() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert!(
            "soundly".parse::<Mode>().unwrap_err().starts_with("no such mode: soundly; there are sound, ")
        );
    }
}
