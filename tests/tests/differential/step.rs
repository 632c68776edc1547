//! What can be done to a node, and what it tells.

use std::fmt;
use std::time::Duration;

use redlock_core::{Fault, Intent, Reply, Token, Ttl};

/// One thing that is done to a node.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// An intent, as the driver sends it.
    CarryOut {
        lock: Key,
        fence: Key,
        what: What,
        name: Name,
        lifetime: Lifetime,
    },
    Get(Key),
    Pttl(Key),
    /// By hand, past the library.
    Set {
        key: Key,
        value: Value,
        lifetime: Option<Lifetime>,
    },
    Del(Key),
    /// Makes the key's time be over.
    Expire(Key),
    /// Lets pass more than a [`Lifetime::Moment`].
    Pause,
}

/// What a step told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    Nothing,
    Reply(Result<Reply, Fault>),
    Value(Option<String>),
    Pttl(i64),
    Existed(bool),
}

/// The keys are few, so that steps meet. Each may be a lock, a counter, or both.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Key {
    A,
    B,
    C,
}

pub(crate) const ALL_KEYS: [Key; 3] = [Key::A, Key::B, Key::C];

/// The kind of an [`Intent`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    SetNxPx,
    FencedAcquire,
    CompareAndDelete,
    CompareAndPexpire,
}

pub(crate) const ALL_WHATS: [What; 4] =
    [What::SetNxPx, What::FencedAcquire, What::CompareAndDelete, What::CompareAndPexpire];

impl What {
    pub(crate) const fn acquires(self) -> bool {
        matches!(self, Self::SetNxPx | Self::FencedAcquire)
    }

    pub(crate) fn intent(self, fence: &str, name: Name, lifetime: Lifetime) -> Intent {
        let (token, ttl) = (name.token(), lifetime.ttl());
        match self {
            Self::SetNxPx => Intent::SetNxPx { token, ttl },
            Self::FencedAcquire => Intent::FencedAcquire { fence: fence.into(), token, ttl },
            Self::CompareAndDelete => Intent::CompareAndDelete { token },
            Self::CompareAndPexpire => Intent::CompareAndPexpire { token, ttl },
        }
    }
}

/// Whose token.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Name {
    Ours,
    Theirs,
}

impl Name {
    pub(crate) const fn token(self) -> Token {
        match self {
            Self::Ours => Token::from_bytes([0xab; Token::LEN]),
            Self::Theirs => Token::from_bytes([0x0d; Token::LEN]),
        }
    }
}

/// How long a key is to live.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lifetime {
    /// So short that a [`Step::Pause`] outlasts it.
    Moment,
    Minutes(u16),
    /// The longest there is.
    Longest,
}

impl Lifetime {
    pub(crate) fn ttl(self) -> Ttl {
        let millis = match self {
            Self::Moment => MOMENT_MS,
            Self::Minutes(minutes) => u64::from(minutes) * 60_000,
            Self::Longest => return Ttl::new(Ttl::MAX).unwrap(),
        };
        Ttl::from_millis(millis).unwrap()
    }
}

const MOMENT_MS: u64 = 100;

/// How long a [`Step::Pause`] takes.
pub(crate) const PAUSE: Duration = Duration::from_millis(MOMENT_MS + 30);

/// What can be set by hand.
#[derive(Clone)]
pub(crate) struct Value(pub(crate) String);

impl Value {
    /// The values that a lock or a counter may be taken amiss for.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let [ours, theirs] = [Name::Ours, Name::Theirs].map(|name| Self::from(name).0);
        let near = [ours.to_uppercase(), ours[1..].to_owned(), format!("{ours}\n"), format!("{ours}\0")];
        let odd = ODD.map(str::to_owned);
        [ours, theirs].into_iter().chain(near).chain(odd).map(Self)
    }
}

impl From<Name> for Value {
    fn from(name: Name) -> Self {
        Self(name.token().to_hex().as_str().to_owned())
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Counters at the ends of what some number can hold, and what only looks like a counter.
const ODD: [&str; 34] = [
    "",
    "0",
    "-0",
    "1",
    "9",
    "-1",
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "9223372036854775806",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775807",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "100000000000000000000000000000000000000000",
    "-",
    "+",
    "+1",
    "--1",
    "00",
    "01",
    "-01",
    " 1",
    "1 ",
    "1\n",
    "1\0",
    "1.0",
    "1e3",
    "0x1",
    "\u{661}",
    "somebody else",
];
