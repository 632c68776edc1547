//! The reply parser: from what a node said to what it means for the lease.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::str;

use crate::intent::Kind;
use crate::{Cause, CauseKind, Fault, FencingToken, Intent};

/// What a node answered, in the shapes of the Redis protocol (RESP2 and RESP3 alike).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// Nil, in any of its spellings.
    Nil,
    /// The status `OK`.
    Ok,
    /// Any other status line.
    Status(Box<str>),
    /// An integer.
    Int(i64),
    /// A bulk or verbatim string.
    Text(Box<[u8]>),
    /// An array, set or push; a map as an array of its keys and values in turn.
    Array(Vec<Self>),
    /// A boolean, which only RESP3 has.
    Bool(bool),
    /// An error of the server.
    Error(ServerError),
    /// Something else: a double, a big number. No intent has such an answer.
    Other,
}

/// An error that a server answered with: its leading code word and the rest of the line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerError {
    code: Box<str>,
    message: Box<str>,
}

impl ServerError {
    /// The error `-code message`.
    #[must_use]
    pub fn new(code: impl Into<Box<str>>, message: impl Into<Box<str>>) -> Self {
        Self { code: code.into(), message: message.into() }
    }

    /// The code word (`READONLY`, `OOM`, `ERR`, ...).
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// What follows the code word.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What the error means for the intent that was answered with it.
    ///
    /// Decided on the code word alone. Only codes with which a server refuses a command before it
    /// runs count as not executed; an error raised inside a script may follow a write, and Redis does
    /// not take writes back.
    #[must_use]
    pub fn into_fault(self, intent: &Intent) -> Fault {
        self.into_fault_of(intent.kind())
    }

    fn into_fault_of(self, kind: Kind) -> Fault {
        let refused = REFUSED_UNSEEN.contains(&self.code())
            || (REFUSED_BEFORE_WRITE.contains(&self.code()) && kind == Kind::SetNxPx);
        let detail = match &*self.message {
            "" => self.code.into_string(),
            message => format!("{} {message}", self.code),
        };
        let cause = Cause::with_detail(CauseKind::Server, detail);
        if refused { Fault::NotExecuted(cause) } else { Fault::Unknown(cause) }
    }
}

/// Codes with which a server turns a command away without looking into it, or a script before it has
/// written anything: the state that they report cannot change while a script runs.
const REFUSED_UNSEEN: [&str; 13] = [
    "ASK",
    "BUSY",
    "CLUSTERDOWN",
    "CROSSSLOT",
    "LOADING",
    "MASTERDOWN",
    "MOVED",
    "NOAUTH",
    "NOPERM",
    "NOSCRIPT",
    "READONLY",
    "TRYAGAIN",
    "WRONGPASS",
];

/// Codes that refuse a plain command for certain, but may come from the middle of a script.
const REFUSED_BEFORE_WRITE: [&str; 4] = ["MISCONF", "NOREPLICAS", "OOM", "WRONGTYPE"];

/// What an answer means for the lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Vote {
    /// Done; with the fencing token if the intent yields one.
    Yes(Option<FencingToken>),
    /// Refused: the key is somebody else's, or not there.
    No,
    /// Neither.
    Fault(Fault),
}

/// Reads an answer. Total over every shape, and strict: what is not exactly the intent's yes or no is
/// a fault of unknown outcome, never a yes.
///
/// ```
/// use redlock_core::{Intent, Reply, Token, Ttl, Vote, interpret};
///
/// let token = Token::from_bytes([7; 20]);
/// let set = Intent::SetNxPx { token, ttl: Ttl::from_millis(10_000).unwrap() };
/// assert_eq!(interpret(&set, Ok(Reply::Ok)), Vote::Yes(None));
/// assert_eq!(interpret(&set, Ok(Reply::Nil)), Vote::No);
/// assert!(matches!(interpret(&set, Ok(Reply::Int(1))), Vote::Fault(_)));
/// ```
#[must_use]
pub fn interpret(intent: &Intent, reply: Result<Reply, Fault>) -> Vote {
    read(intent.kind(), reply)
}

/// [`interpret`] for whoever has not kept the intent.
pub(crate) fn read(kind: Kind, reply: Result<Reply, Fault>) -> Vote {
    // What is usual first, and without anything that would have to be freed.
    let reply = match kind {
        Kind::SetNxPx => match reply {
            Ok(Reply::Ok) => return Vote::Yes(None),
            Ok(Reply::Nil) => return Vote::No,
            reply => reply,
        },
        Kind::CompareAndDelete | Kind::CompareAndPexpire => match reply {
            Ok(Reply::Int(1)) => return Vote::Yes(None),
            Ok(Reply::Int(0)) => return Vote::No,
            reply => reply,
        },
        Kind::FencedAcquire => match reply {
            Ok(Reply::Int(0)) => return Vote::No,
            Ok(reply) => match fencing_token(&reply) {
                Some(token) => return Vote::Yes(Some(token)),
                None => Ok(reply),
            },
            Err(fault) => Err(fault),
        },
    };
    Vote::Fault(match reply {
        Ok(Reply::Error(error)) => error.into_fault_of(kind),
        Ok(reply) => {
            let detail = format!("{} to {}", shape(&reply), kind.name());
            Fault::Unknown(Cause::with_detail(CauseKind::UnexpectedReply, detail))
        }
        Err(fault) => fault,
    })
}

/// A counter as text or integer. Text must be plain decimal digits: what the counter's `INCR` left
/// behind has no sign, no blank and no leading zero.
fn fencing_token(reply: &Reply) -> Option<FencingToken> {
    match reply {
        Reply::Int(number) => FencingToken::new(u64::try_from(*number).ok()?),
        Reply::Text(text) => {
            let canonical = text.iter().all(u8::is_ascii_digit) && !text.starts_with(b"0");
            let number = str::from_utf8(text).ok()?.parse().ok()?;
            canonical.then(|| FencingToken::new(number)).flatten()
        }
        _ => None,
    }
}

/// The reply's shape without its content, which might be anything.
const fn shape(reply: &Reply) -> &'static str {
    match reply {
        Reply::Nil => "nil",
        Reply::Ok => "OK",
        Reply::Status(_) => "a status",
        Reply::Int(_) => "an integer out of range",
        Reply::Text(_) => "a text",
        Reply::Array(_) => "an array",
        Reply::Bool(_) => "a boolean",
        Reply::Error(_) => "an error",
        Reply::Other => "a value of another type",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Token, Ttl};
    use alloc::sync::Arc;
    use alloc::vec;
    use proptest::prelude::*;

    #[test]
    fn an_error_is_its_code_word_and_the_rest() {
        let error = ServerError::new("OOM", "command not allowed");
        assert_eq!((error.code(), error.message()), ("OOM", "command not allowed"));
    }

    fn intents() -> [Intent; 4] {
        let token = Token::from_bytes([1; 20]);
        let ttl = Ttl::from_millis(1_000).unwrap();
        [
            Intent::SetNxPx { token, ttl },
            Intent::FencedAcquire { fence: Arc::from("fence"), token, ttl },
            Intent::CompareAndDelete { token },
            Intent::CompareAndPexpire { token, ttl },
        ]
    }

    fn text(text: &str) -> Reply {
        Reply::Text(text.as_bytes().into())
    }

    #[test]
    fn the_table_of_answers() {
        let [set, fenced, delete, extend] = intents();
        let fence = |number| Vote::Yes(FencingToken::new(number));
        let table = [
            (&set, Reply::Ok, Vote::Yes(None)),
            (&set, Reply::Nil, Vote::No),
            (&fenced, text("1"), fence(1)),
            (&fenced, text("9007199254740993"), fence(9_007_199_254_740_993)),
            (&fenced, text("18446744073709551615"), fence(u64::MAX)),
            (&fenced, Reply::Int(7), fence(7)),
            (&fenced, Reply::Int(0), Vote::No),
            (&delete, Reply::Int(1), Vote::Yes(None)),
            (&delete, Reply::Int(0), Vote::No),
            (&extend, Reply::Int(1), Vote::Yes(None)),
            (&extend, Reply::Int(0), Vote::No),
        ];
        for (intent, reply, vote) in table {
            assert_eq!(interpret(intent, Ok(reply.clone())), vote, "{} {reply:?}", intent.name());
        }
    }

    #[test]
    fn odd_fencing_counters_are_faults_of_unknown_outcome() {
        let [_, fenced, ..] = intents();
        let odd = [
            "",
            "0",
            "00",
            "01",
            "+1",
            "-1",
            " 1",
            "1 ",
            "1.0",
            "1e3",
            "0x1",
            "18446744073709551616",
            "\u{661}",
        ];
        for reply in odd.into_iter().map(text).chain([Reply::Int(-1), Reply::Int(i64::MIN), Reply::Nil]) {
            let vote = interpret(&fenced, Ok(reply.clone()));
            assert!(matches!(vote, Vote::Fault(Fault::Unknown(_))), "{reply:?}: {vote:?}");
        }
    }

    #[test]
    fn an_error_inside_a_script_may_follow_a_write() {
        let [set, fenced, delete, extend] = intents();
        for code in REFUSED_UNSEEN {
            for intent in [&set, &fenced, &delete, &extend] {
                let vote = interpret(intent, Ok(Reply::Error(ServerError::new(code, ""))));
                assert!(matches!(vote, Vote::Fault(Fault::NotExecuted(_))), "{code}");
            }
        }
        for code in REFUSED_BEFORE_WRITE {
            let error = ServerError::new(code, "why");
            assert!(matches!(error.clone().into_fault(&set), Fault::NotExecuted(_)), "{code}");
            assert!(matches!(error.into_fault(&fenced), Fault::Unknown(_)), "{code}");
        }
        let unknown = ServerError::new("ERR", "something").into_fault(&set);
        assert_eq!(unknown.cause().code(), Some("ERR"));
        assert!(matches!(unknown, Fault::Unknown(_)));
    }

    fn replies() -> impl Strategy<Value = Reply> {
        let leaf = prop_oneof![
            Just(Reply::Nil),
            Just(Reply::Ok),
            Just(Reply::Other),
            any::<bool>().prop_map(Reply::Bool),
            any::<i64>().prop_map(Reply::Int),
            ".{0,8}".prop_map(|status| Reply::Status(status.into())),
            "[0-9+-]{0,22}".prop_map(|digits| text(&digits)),
            proptest::collection::vec(any::<u8>(), 0..24).prop_map(|bytes| Reply::Text(bytes.into())),
            ("[A-Z]{0,9}", ".{0,9}").prop_map(|(code, rest)| Reply::Error(ServerError::new(code, rest))),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| proptest::collection::vec(inner, 0..4).prop_map(Reply::Array))
    }

    proptest! {
        #[test]
        fn a_shape_that_is_not_known_is_never_a_yes(reply in replies(), which in 0..4_usize) {
            let intent = &intents()[which];
            let vote = interpret(intent, Ok(reply.clone()));
            let known_yes = match (which, &reply) {
                (0, Reply::Ok) | (2 | 3, Reply::Int(1)) => true,
                (1, Reply::Int(number)) => *number > 0,
                (1, Reply::Text(bytes)) => {
                    bytes.first().is_some_and(|digit| (b'1'..=b'9').contains(digit))
                        && str::from_utf8(bytes).is_ok_and(|digits| digits.parse::<u64>().is_ok())
                }
                _ => false,
            };
            prop_assert_eq!(matches!(vote, Vote::Yes(_)), known_yes);
            let known_no = matches!((which, &reply), (0, Reply::Nil) | (1..=3, Reply::Int(0)));
            prop_assert_eq!(vote == Vote::No, known_no);
        }
    }

    #[test]
    fn nested_answers_are_faults() {
        for intent in &intents() {
            let nested = Reply::Array(vec![Reply::Array(vec![Reply::Ok]), Reply::Int(1)]);
            assert!(matches!(interpret(intent, Ok(nested)), Vote::Fault(Fault::Unknown(_))));
        }
    }
}
