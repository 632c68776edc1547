//! Bytes that a server might send, all the way to what a lease makes of them.

mod oracle;

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use redis::{Arg, Cmd, RedisResult, Value, parse_redis_value};
use redlock_core::{
    CauseKind, Command, CommandId, Fault, Instant, Intent, NodeId, Reply, Token, Ttl, Vote, interpret,
};
use redlock_driver::{Connection, Node, Transport};

use oracle::{Meaning, Says, Shape};

/// Answers each of the four intents with `data`, through the parser of the `redis` crate, the driver and the
/// core's [`interpret`]; those that compare, in every way that the driver has to write them.
///
/// - Nothing panics.
/// - A yes or a no is one by the [oracle](oracle) too, which knows neither of the three, with the same fencing
///   token; and the other way round, if the parser takes the bytes at all.
/// - "Certainly not executed" only ever follows from an error with one of a few code words.
/// - A server's error says the same, whether the client hands it out as a value or as an error.
/// - Nothing is sent a second time but a script after `NOSCRIPT`, and what compares after a refusal in one form in
///   the next.
/// - No token turns up in the text of a fault, except as the server's code word.
pub fn reply_bytes(data: &[u8]) {
    let parsed = parse_redis_value(data);
    let (shape, is_answer) = (oracle::read(data), parsed.is_ok());
    let error = match &parsed {
        Ok(error @ Value::ServerError(_)) => Some(Canned::new(error.clone().extract_error())),
        _ => None,
    };
    let answer = Canned::new(parsed);
    for (intent, way) in intents()
        .into_iter()
        .flat_map(|intent| Way::of(&intent).iter().map(move |way| (intent.clone(), *way)))
    {
        let (reply, calls) = answer.ask(&intent, way);
        let extends = matches!(intent, Intent::CompareAndPexpire { .. });
        let says = if is_answer { oracle::says(&shape) } else { Says::Else };
        let meaning = oracle::meaning(&shape, &intent, extends && way == Way::Commands);
        let vote = interpret(&intent, reply.clone());
        check_vote(&vote, &meaning, is_answer);
        if let Vote::Fault(fault) = &vote {
            check_fault(fault, &shape, &intent, is_answer);
        }
        assert_eq!(calls, expected_calls(&intent, way, says), "calls for {} by {way:?}", intent.name());

        if let Some(error) = &error {
            assert_eq!(error.ask(&intent, way), (reply, calls), "the same error, as a value and as an error");
        }
    }
}

/// How often the server is asked, if it always says the same.
fn expected_calls(intent: &Intent, way: Way, says: Says) -> usize {
    let in_full = usize::from(says == Says::NoScript);
    let (compare_refused, script_refused) = (
        matches!(says, Says::NoRight | Says::NoSuchCommand | Says::NoSuchOption),
        matches!(says, Says::NoRight | Says::NoSuchCommand),
    );
    match (intent, way) {
        (Intent::SetNxPx { .. }, _) => 1,
        (Intent::FencedAcquire { .. }, _) => 1 + in_full,
        // A command, the other one, the script.
        (Intent::CompareAndDelete { .. }, Way::Untold | Way::Commands) => {
            if compare_refused {
                3
            } else {
                1
            }
        }
        // The script, a command, the other one. In the commands, anything but a refusal is an answer.
        (Intent::CompareAndDelete { .. }, Way::Scripts) => {
            if script_refused {
                3
            } else {
                1 + in_full
            }
        }
        // Asked what it is, it does not say that it would survive anything but the script; or else it does, and
        // then says the same to that.
        (Intent::CompareAndPexpire { .. }, Way::Untold) => 2 + in_full,
        (Intent::CompareAndPexpire { .. }, Way::Commands) => {
            if compare_refused || says == Says::NoMemory {
                2
            } else {
                1
            }
        }
        (Intent::CompareAndPexpire { .. }, Way::Scripts) => 1 + in_full,
    }
}

fn check_vote(vote: &Vote, meaning: &Meaning, parsed: bool) {
    match vote {
        Vote::Yes(fencing) => {
            let number = fencing.map(|fencing| fencing.get());
            assert_eq!(*meaning, Meaning::Yes(number), "a yes that is none");
        }
        Vote::No => assert_eq!(*meaning, Meaning::No, "a no that is none"),
        Vote::Fault(fault) => {
            let clear = parsed && matches!(meaning, Meaning::Yes(_) | Meaning::No);
            assert!(!clear, "{meaning:?} was taken for {fault:?}");
            let certain = matches!(fault, Fault::NotExecuted(_));
            assert_eq!(certain, parsed && *meaning == Meaning::NotExecuted, "{fault:?}");
        }
    }
}

fn check_fault(fault: &Fault, shape: &Shape<'_>, intent: &Intent, parsed: bool) {
    let cause = fault.cause();
    match shape {
        Shape::Error(code, _) if parsed => assert_eq!(cause.code(), Some(&**code)),
        _ => assert_ne!(cause.kind(), CauseKind::Server),
    }
    // The code word is the server's own; the rest of the line may quote us.
    let quoted = cause.detail().and_then(|detail| detail.split_once(' ')).map_or("", |(_, rest)| rest);
    assert!(!quoted.contains(intent.token().to_hex().as_str()), "the token in {fault:?}");
}

fn intents() -> [Intent; 4] {
    let token = Token::from_bytes([0x11; Token::LEN]);
    let ttl = Ttl::from_millis(1_000).expect("a ttl within bounds");
    [
        Intent::SetNxPx { token, ttl },
        Intent::FencedAcquire { fence: "f".into(), token, ttl },
        Intent::CompareAndDelete { token },
        Intent::CompareAndPexpire { token, ttl },
    ]
}

/// What a server has shown of itself before the answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Nothing.
    Untold,
    /// It has `DELIFEQ`, and so is one that may be extended by `SET ... IFEQ`.
    Commands,
    /// It has scripts only.
    Scripts,
}

impl Way {
    fn of(intent: &Intent) -> &'static [Self] {
        match intent {
            Intent::SetNxPx { .. } | Intent::FencedAcquire { .. } => &[Self::Untold],
            _ => &[Self::Untold, Self::Commands, Self::Scripts],
        }
    }

    /// How it answers a delete that is to find out what it has.
    fn shown(self, command: &Cmd) -> RedisResult<Value> {
        let name = command.args_iter().next();
        let has = match name {
            Some(Arg::Simple(b"DELIFEQ")) => self == Self::Commands,
            Some(Arg::Simple(b"EVALSHA")) => true,
            _ => false,
        };
        if has { Ok(Value::Int(0)) } else { parse_redis_value(b"-ERR unknown command\r\n") }
    }
}

/// A server that, once it has shown what it is, has always the same answer.
struct Canned {
    answer: Arc<RedisResult<Value>>,
}

impl Canned {
    fn new(answer: RedisResult<Value>) -> Self {
        Self { answer: Arc::new(answer) }
    }

    /// What the driver makes of the answer to this intent, and how many calls that took.
    fn ask(&self, intent: &Intent, way: Way) -> (Result<Reply, Fault>, usize) {
        let (shows, calls) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let connection = Line {
            answer: Arc::clone(&self.answer),
            way,
            shows: Arc::clone(&shows),
            calls: Arc::clone(&calls),
        };
        let nodes = [Node::connection("canned", connection)].into();
        if way != Way::Untold {
            let shown = carry_out(&nodes, Intent::CompareAndDelete { token: intent.token() });
            assert_eq!(shown, Ok(Reply::Int(0)));
        }
        shows.store(false, Ordering::Relaxed);
        calls.store(0, Ordering::Relaxed);
        (carry_out(&nodes, intent.clone()), calls.load(Ordering::Relaxed))
    }
}

fn carry_out(nodes: &Arc<[Node]>, intent: Intent) -> Result<Reply, Fault> {
    let command = Command {
        id: CommandId::new(0),
        node: NodeId::new(0),
        deadline: Instant::EPOCH,
        key: "k".into(),
        intent,
    };
    let mut sent = pin!(nodes.send(&command));
    let mut context = Context::from_waker(Waker::noop());
    let reply = (0..10).find_map(|_| match sent.as_mut().poll(&mut context) {
        Poll::Ready(reply) => Some(reply),
        Poll::Pending => None,
    });
    reply.expect("an answer after a few polls")
}

/// The connection to it.
#[derive(Clone)]
struct Line {
    answer: Arc<RedisResult<Value>>,
    way: Way,
    shows: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
}

impl Connection for Line {
    fn call(&self, command: Cmd) -> impl Future<Output = RedisResult<Value>> + Send + 'static {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut answer = Some(match self.shows.load(Ordering::Relaxed) {
            true => self.way.shown(&command),
            false => RedisResult::clone(&self.answer),
        });
        let mut under_way = true;
        // Nobody answers before the command is on its way. An error that comes at once means just that.
        poll_fn(move |_| match mem::take(&mut under_way) {
            true => Poll::Pending,
            false => answer.take().map_or(Poll::Pending, Poll::Ready),
        })
    }
}
