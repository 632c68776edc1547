//! Bytes that a server might send, all the way to what a lease makes of them.

mod oracle;

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use redis::{Cmd, RedisResult, Value, parse_redis_value};
use redlock_core::{
    CauseKind, Command, CommandId, Fault, Instant, Intent, NodeId, Reply, Token, Ttl, Vote, interpret,
};
use redlock_driver::{Connection, Node, Transport};

use oracle::{Meaning, Shape};

/// Answers each of the four intents with `data`, through the parser of the `redis` crate, the driver and the
/// core's [`interpret`].
///
/// - Nothing panics.
/// - A yes or a no is one by the [oracle](oracle) too, which knows neither of the three, with the same fencing
///   token; and the other way round, if the parser takes the bytes at all.
/// - "Certainly not executed" only ever follows from an error with one of a few code words.
/// - A server's error says the same, whether the client hands it out as a value or as an error.
/// - A script is sent a second time after `NOSCRIPT` only, nothing else ever.
/// - No token turns up in the text of a fault, except as the server's code word.
pub fn reply_bytes(data: &[u8]) {
    let parsed = parse_redis_value(data);
    let (shape, is_answer) = (oracle::read(data), parsed.is_ok());
    let error = match &parsed {
        Ok(error @ Value::ServerError(_)) => Some(Canned::new(error.clone().extract_error())),
        _ => None,
    };
    let answer = Canned::new(parsed);
    for intent in intents() {
        let (reply, calls) = answer.ask(&intent);
        let meaning = oracle::meaning(&shape, &intent);
        let vote = interpret(&intent, reply.clone());
        check_vote(&vote, &meaning, is_answer);
        if let Vote::Fault(fault) = &vote {
            check_fault(fault, &shape, &intent, is_answer);
        }

        let resent = is_answer
            && shape == Shape::Error("NOSCRIPT".into())
            && !matches!(intent, Intent::SetNxPx { .. });
        assert_eq!(calls, 1 + usize::from(resent), "calls for {}", intent.name());

        if let Some(error) = &error {
            assert_eq!(error.ask(&intent), (reply, calls), "the same error, as a value and as an error");
        }
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
        Shape::Error(code) if parsed => assert_eq!(cause.code(), Some(&**code)),
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

/// A server that has always the same answer.
struct Canned {
    nodes: Arc<[Node]>,
    calls: Arc<AtomicUsize>,
}

impl Canned {
    fn new(answer: RedisResult<Value>) -> Self {
        let calls = Arc::new(AtomicUsize::new(0));
        let connection = Line { answer: Arc::new(answer), calls: Arc::clone(&calls) };
        Self { nodes: [Node::connection("canned", connection)].into(), calls }
    }

    /// What the driver makes of the answer to this intent, and how many calls that took.
    fn ask(&self, intent: &Intent) -> (Result<Reply, Fault>, usize) {
        let command = Command {
            id: CommandId::new(0),
            node: NodeId::new(0),
            deadline: Instant::EPOCH,
            key: "k".into(),
            intent: intent.clone(),
        };
        let before = self.calls.load(Ordering::Relaxed);
        let mut sent = pin!(self.nodes.send(&command));
        let mut context = Context::from_waker(Waker::noop());
        let reply = (0..10).find_map(|_| match sent.as_mut().poll(&mut context) {
            Poll::Ready(reply) => Some(reply),
            Poll::Pending => None,
        });
        (reply.expect("an answer after a few polls"), self.calls.load(Ordering::Relaxed) - before)
    }
}

/// The connection to it.
#[derive(Clone)]
struct Line {
    answer: Arc<RedisResult<Value>>,
    calls: Arc<AtomicUsize>,
}

impl Connection for Line {
    fn call(&self, _: Cmd) -> impl Future<Output = RedisResult<Value>> + Send + 'static {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut answer = Some(RedisResult::clone(&self.answer));
        let mut under_way = true;
        // Nobody answers before the command is on its way. An error that comes at once means just that.
        poll_fn(move |_| match mem::take(&mut under_way) {
            true => Poll::Pending,
            false => answer.take().map_or(Poll::Pending, Poll::Ready),
        })
    }
}
