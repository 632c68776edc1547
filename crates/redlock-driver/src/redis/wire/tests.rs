//! What goes together, in which order, and what becomes of it when the connection does not last.

use std::sync::{Arc, Mutex, Weak};

use futures_util::FutureExt as _;
use redis::Value;
use redlock_core::{Cause, CauseKind, Command, CommandId, Fault, Instant, Reply};

use super::super::pump;
use super::super::testing::{Bench, Dial, Wired, delete, fenced, set};
use super::{Answer, Keeper, Wire};
use crate::recipient::{Passage, Recipient};
use crate::redis::{Connect, lock};

/// Hears the answers of all its commands, in their order.
#[derive(Debug, Default)]
struct Ears {
    heard: Mutex<Vec<(u64, Result<Reply, Fault>)>>,
    given_back: Mutex<Vec<u64>>,
}

impl Recipient for Ears {
    fn answered(self: Arc<Self>, id: CommandId, reply: Result<Reply, Fault>) -> bool {
        lock(&self.heard).push((id.get(), reply));
        true
    }

    fn given_back(self: Arc<Self>, command: Command) {
        lock(&self.given_back).push(command.id.get());
    }
}

impl Keeper<Wired> for Ears {
    fn concluded(self: Arc<Self>, _: &Arc<Wire<Wired>>, _: &Command, _: &Answer) {}

    fn fell_silent(self: Arc<Self>, _: &Arc<Wire<Wired>>, _: Cause) {
        lock(&self.given_back).push(0);
    }
}

struct Rig {
    bench: Bench,
    wire: Arc<Wire<Wired>>,
    ears: Arc<Ears>,
}

impl Rig {
    async fn new(dials: impl IntoIterator<Item = Dial>) -> Self {
        let bench = Bench::new(dials);
        let connection = bench.connect(&Bench::client()).await.unwrap();
        let ears = Arc::new(Ears::default());
        let keeper: Weak<Ears> = Arc::downgrade(&ears);
        let wire = Arc::new(Wire::new(connection, 1, Arc::default(), keeper));
        pump::start(&bench, &wire).unwrap();
        Self { bench, wire, ears }
    }

    /// Sends without letting anything else run.
    fn send(&self, id: u64, command: &Command) -> Passage {
        let command = Command { id: CommandId::new(id), ..command.clone() };
        let ears: Arc<Ears> = Arc::clone(&self.ears);
        let passage = self.wire.admit_for(&command, self.wire.put_into_words(&command, None), ears).unwrap();
        self.wire.start();
        passage
    }

    fn heard(&self) -> Vec<(u64, Result<Reply, Fault>)> {
        std::mem::take(&mut *lock(&self.ears.heard))
    }
}

async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

fn said(line: &str) -> Value {
    redis::parse_redis_value(line.as_bytes()).unwrap()
}

#[tokio::test]
async fn a_lone_command_goes_out_at_once() {
    let rig = Rig::new([]).await;
    rig.send(1, &set(1, 100));
    assert_eq!(rig.bench.calls(0), ["SET 01"]);
    rig.bench.answer(0, 0, Ok(Value::Okay));
    settle().await;
    assert_eq!(rig.heard(), [(1, Ok(Reply::Ok))]);
    rig.send(2, &set(2, 100));
    assert_eq!(rig.bench.calls(0).len(), 2, "and so does the next one");
}

#[tokio::test]
async fn what_gathers_meanwhile_goes_together_and_in_order() {
    let rig = Rig::new([]).await;
    for number in 1..=5 {
        rig.send(u64::from(number), &set(number, 100));
    }
    assert_eq!(rig.bench.calls(0), ["SET 01"]);
    settle().await;
    assert_eq!(rig.bench.batches(), [1, 4]);
    assert_eq!(rig.bench.calls(0), ["SET 01", "SET 02", "SET 03", "SET 04", "SET 05"]);
    rig.send(6, &delete(5, 100));
    settle().await;
    assert_eq!(rig.bench.batches(), [1, 4, 1], "nobody waits for an answer to write on");

    let answers =
        [said("+OK\r\n"), said("$-1\r\n"), said("-READONLY no\r\n"), said("+OK\r\n"), said("+OK\r\n")];
    for (call, answer) in answers.into_iter().enumerate() {
        rig.bench.answer(0, call, Ok(answer));
    }
    settle().await;
    let heard = rig.heard();
    assert_eq!(heard.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(heard[1].1, Ok(Reply::Nil));
    assert!(matches!(&heard[2].1, Ok(Reply::Error(error)) if error.code() == "READONLY"), "{heard:?}");
    assert_eq!(heard[4].1, Ok(Reply::Ok), "an error of one is none of the others");
}

/// Lets each task that can run do so once.
async fn turn() {
    let mut polled = false;
    let yields = |cx: &mut std::task::Context<'_>| {
        if std::mem::replace(&mut polled, true) {
            return std::task::Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    };
    std::future::poll_fn(yields).await;
}

/// Sends so many in one batch behind a first one, and has all answered before anybody is told.
async fn answered(rig: &Rig, count: u8) {
    for number in 0..=count {
        rig.send(u64::from(number), &set(number, 100));
    }
    settle().await;
    assert_eq!(rig.bench.batches(), [1, usize::from(count)]);
    for call in 0..=count {
        rig.bench.answer(0, call.into(), Ok(Value::Okay));
    }
    assert!(rig.heard().is_empty());
}

#[tokio::test]
async fn answers_are_told_a_few_at_a_time_and_what_is_said_meanwhile_is_not_held_up() {
    // As a task of its own: what blocks on a runtime is polled less often than its tasks.
    tokio::spawn(tell_some_at_a_time()).await.unwrap();
}

async fn tell_some_at_a_time() {
    let rig = Rig::new([]).await;
    answered(&rig, 50).await;
    let mut told = 0;
    while told < 51 {
        turn().await;
        let now = rig.heard().len();
        assert!(now <= super::TOLD_AT_ONCE, "{now} at once");
        if now > 0 && told == 0 {
            rig.send(100, &set(100, 100));
            rig.send(101, &set(101, 100));
        }
        told += now;
        assert!(
            told < 51 || rig.bench.calls(0).len() == 53,
            "both are on their way before the last are told"
        );
    }
    assert!(!rig.wire.is_idle());
}

#[tokio::test]
async fn a_pump_that_stops_withholds_no_answer_that_has_come() {
    let rig = Rig::new([]).await;
    answered(&rig, 50).await;
    let mut pump = pump::Pump::of(&rig.wire);
    assert!(pump.run().now_or_never().is_none());
    assert_eq!(lock(&rig.ears.heard).len(), super::TOLD_AT_ONCE);
    drop(pump);
    let heard = rig.heard();
    assert!(heard.len() == 51 && heard.iter().all(|(_, reply)| *reply == Ok(Reply::Ok)), "{heard:?}");
}

#[tokio::test]
async fn what_is_refused_in_a_batch_is_said_again_without_the_others() {
    let rig = Rig::new([]).await;
    rig.send(1, &set(1, 100));
    rig.send(2, &fenced(2, 100));
    rig.send(3, &fenced(3, 100));
    rig.send(4, &delete(3, 100));
    settle().await;
    assert_eq!(rig.bench.calls(0), ["SET 01", "EVALSHA 02", "EVALSHA 03", "DELIFEQ 03"]);
    rig.bench.answer(0, 0, Ok(Value::Okay));
    rig.bench.answer(0, 1, Ok(said("-NOSCRIPT No matching script\r\n")));
    rig.bench.answer(0, 2, Ok(said("-NOSCRIPT No matching script\r\n")));
    rig.bench.answer(0, 3, Ok(Value::Int(0)));
    settle().await;
    // The last one is not: its delete would come before it.
    assert_eq!(rig.bench.calls(0)[4..], ["EVAL 02"]);
    rig.bench.answer(0, 4, Ok(Value::Int(7)));
    settle().await;
    let heard = rig.heard();
    assert_eq!(heard.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 3, 4, 2]);
    assert_eq!((&heard[2].1, &heard[3].1), (&Ok(Reply::Int(0)), &Ok(Reply::Int(7))));
    assert!(rig.wire.is_idle());
}

#[tokio::test]
async fn what_nobody_waits_for_is_not_written_any_more() {
    let rig = Rig::new([]).await;
    let first = rig.send(1, &set(1, 100));
    let second = rig.send(2, &set(2, 100));
    rig.send(3, &set(3, 100));
    rig.wire.forget(first.number);
    rig.wire.forget(second.number);
    settle().await;
    assert_eq!(rig.bench.calls(0), ["SET 01", "SET 03"]);
    assert!(!rig.wire.is_idle());
    rig.bench.answer(0, 0, Ok(Value::Okay));
    rig.bench.answer(0, 1, Ok(Value::Okay));
    settle().await;
    assert_eq!(rig.heard(), [(3, Ok(Reply::Ok))]);
    assert!(rig.wire.is_idle());
}

#[tokio::test]
async fn a_cut_tells_what_was_written_from_what_was_not() {
    let rig = Rig::new([]).await;
    rig.send(1, &set(1, 100));
    rig.send(2, &set(2, 100));
    let cause = Cause::new(CauseKind::Closed);
    rig.wire.cut(cause.clone());
    assert_eq!(
        rig.heard(),
        [(1, Err(Fault::Unknown(cause.clone()))), (2, Err(Fault::NotExecuted(cause.clone())))]
    );
    settle().await;
    assert_eq!(rig.bench.calls(0), ["SET 01"]);
    let refused = rig.wire.admit(&set(3, 100)).map(|_| ());
    assert_eq!(refused, Err(Fault::NotExecuted(cause)));
}

#[tokio::test]
async fn a_connection_that_breaks_leaves_a_batch_unknown() {
    let rig = Rig::new([]).await;
    for number in 1..=3 {
        rig.send(u64::from(number), &set(number, 100));
    }
    settle().await;
    rig.bench.answer(0, 0, Ok(Value::Okay));
    rig.bench.hang_up(0);
    settle().await;
    let heard = rig.heard();
    assert_eq!(heard[0], (1, Ok(Reply::Ok)));
    assert!(heard[1..].iter().all(|(_, reply)| matches!(reply, Err(Fault::Unknown(_)))), "{heard:?}");
    assert_eq!(heard.len(), 3);
}

#[tokio::test]
async fn what_a_broken_connection_has_not_taken_in_is_given_back() {
    let rig = Rig::new([Dial::BreakAfter(std::time::Duration::ZERO)]).await;
    rig.send(4, &set(1, 100));
    assert_eq!(*lock(&rig.ears.given_back), [4]);
    assert!(rig.heard().is_empty() && rig.wire.is_idle());
}

#[test]
fn a_runtime_that_stops_cuts_the_wire() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let rig = runtime.block_on(async {
        let rig = Rig::new([]).await;
        rig.send(1, &set(1, 100));
        settle().await;
        rig
    });
    drop(runtime);
    assert!(matches!(&*rig.heard(), [(1, Err(Fault::Unknown(_)))]));
    assert_eq!(*lock(&rig.ears.given_back), [0], "its keeper knows");
    assert!(rig.wire.was_cut().is_some());
}

#[tokio::test]
async fn a_wire_that_nobody_has_ends_with_its_task() {
    let rig = Rig::new([]).await;
    settle().await;
    let Rig { bench, wire, .. } = rig;
    drop(wire);
    settle().await;
    assert_eq!(bench.dropped(), 1);
    let _: Instant = crate::Runtime::now(&bench);
}
