//! A link with a restart guard: no acquire reaches a server that was started too short a time ago.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use redlock_core::{CauseKind, Fault, Reply};

use super::super::testing::{Bench, Dial, delete, extend, fenced, set};
use super::Link;
use super::tests::{Sent, after, send, settle};

const GUARD: Duration = Duration::from_secs(30);

fn rig(dials: impl IntoIterator<Item = Dial>) -> (Bench, Arc<Link<Bench>>) {
    let bench = Bench::new(dials);
    let link = Link::new(bench.clone(), Bench::client(), Arc::from("node")).guarded(GUARD);
    (bench, Arc::new(link))
}

fn info(run_id: &str, uptime: u64) -> Value {
    Value::BulkString(format!("run_id:{run_id}\r\nuptime_in_seconds:{uptime}\r\n").into_bytes())
}

/// What became of a command that must not be left unanswered.
async fn ended(sent: Sent) -> Result<Reply, Fault> {
    tokio::time::timeout(Duration::from_secs(60), sent).await.expect("an answer").unwrap()
}

#[track_caller]
fn kept_back(result: &Result<Reply, Fault>, text: &str) {
    match result {
        Err(Fault::NotExecuted(cause)) if cause.kind() == CauseKind::Quarantined => {
            assert!(cause.to_string().contains(text), "{cause}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_is_asked_first_and_a_young_one_gets_no_acquire() {
    let (bench, link) = rig([]);
    let waiting = send(&link, &set(1, 1_000_000)).await;
    let release = send(&link, &delete(2, 1_000_000)).await;
    assert_eq!(bench.calls(0), ["INFO -"], "nothing else before that is answered");
    // Counted from the answer, which took its time.
    after(500).await;
    bench.answer(0, 0, Ok(info("a", 11)));
    kept_back(&ended(waiting).await, "restarted 10 s ago, no votes for 20 s more");
    settle().await;
    assert_eq!(bench.calls(0), ["INFO -", "DELIFEQ 02"], "a release goes out");
    bench.answer(0, 1, Ok(Value::Int(1)));
    assert_eq!(ended(release).await, Ok(Reply::Int(1)));

    let extension = send(&link, &extend(3, 1_000_000)).await;
    assert_eq!(bench.calls(0)[2..], ["SETIFEQ 03"], "so does an extension");
    bench.answer(0, 2, Ok(Value::Nil));
    ended(extension).await.unwrap();
    after(19_900).await;
    kept_back(&ended(send(&link, &fenced(4, 1_000_000)).await).await, "no votes for 1 s more");
    after(100).await;
    let _old_enough = send(&link, &set(5, 1_000_000)).await;
    assert_eq!(bench.calls(0)[3..], ["SET 05"]);
}

#[tokio::test(start_paused = true)]
async fn every_connection_is_looked_at_anew() {
    let (bench, link) = rig([]);
    let first = send(&link, &set(1, 1_000_000)).await;
    bench.answer(0, 0, Ok(info("a", 1_000)));
    settle().await;
    bench.hang_up(0);
    ended(first).await.unwrap_err();
    settle().await;
    assert_eq!(bench.calls(1), ["INFO -"]);
    let second = send(&link, &set(2, 1_000_000)).await;
    bench.answer(1, 0, Ok(info("b", 0)));
    kept_back(&ended(second).await, "restarted 0 s ago, no votes for 30 s more");
    assert_eq!(bench.calls(1).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_say_does_not_vote_until_it_does() {
    let (bench, link) = rig([]);
    let first = send(&link, &set(1, 1_000_000)).await;
    bench.answer(0, 0, redis::parse_redis_value(b"-NOPERM no permissions to run the 'info' command\r\n"));
    kept_back(&ended(first).await, "+info");
    let _release = send(&link, &delete(2, 1_000_000)).await;
    assert_eq!(bench.calls(0), ["INFO -", "DELIFEQ 02"]);
    after(1_000).await;
    assert_eq!(bench.calls(0)[2..], ["INFO -"], "asked again");
    bench.answer(0, 2, Ok(Value::BulkString(b"nothing of the kind".to_vec())));
    settle().await;
    kept_back(&ended(send(&link, &set(3, 1_000_000)).await).await, "names no run");
    after(1_000).await;
    bench.answer(0, 3, Ok(info("a", 1_000)));
    settle().await;
    let _votes = send(&link, &set(4, 1_000_000)).await;
    assert_eq!(bench.calls(0)[4..], ["SET 04"]);
    after(10_000).await;
    assert_eq!(bench.calls(0).len(), 5, "known is known");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_the_question_is_down() {
    let (bench, link) = rig([]);
    let first = send(&link, &set(1, 1_000_000)).await;
    after(1_000).await;
    let fault = ended(first).await.unwrap_err();
    assert_eq!(fault.cause().kind(), CauseKind::Unreachable);
    assert_eq!(bench.calls(0), ["INFO -"]);
    // It answers the next time.
    after(100).await;
    assert_eq!(bench.calls(1), ["INFO -"]);
    bench.answer(1, 0, Ok(info("a", 1_000)));
    settle().await;
    let _votes = send(&link, &set(2, 1_000_000)).await;
    assert_eq!(bench.calls(1)[1..], ["SET 02"]);
}

#[tokio::test(start_paused = true)]
async fn a_closed_link_asks_no_more() {
    let (bench, link) = rig([]);
    let first = send(&link, &set(1, 1_000_000)).await;
    bench.answer(0, 0, redis::parse_redis_value(b"-NOPERM no\r\n"));
    ended(first).await.unwrap_err();
    link.close();
    after(10_000).await;
    assert_eq!((bench.calls(0).len(), bench.dropped()), (1, 1));
}
