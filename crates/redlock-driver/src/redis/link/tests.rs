mod forms;
mod handed;
mod repeats;
mod scripts;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use redis::{ErrorKind, RedisError, Value};
use redlock_core::{Cause, CauseKind, Command, Fault, Reply, ServerError};
use tokio::task::JoinHandle;

use super::super::backlog::MOST_OTHERS;
use super::super::connection::MAX_UNANSWERED;
use super::super::line::LARGEST_BATCH;
use super::super::state::MOST_RETIRED;
use super::super::testing::{Bench, Dial, delete, extend, fenced, set};
use super::Link;

mod replicas;

pub(super) type Sent = JoinHandle<Result<Reply, Fault>>;

fn rig(dials: impl IntoIterator<Item = Dial>) -> (Bench, Arc<Link<Bench>>) {
    let bench = Bench::new(dials);
    let link = Arc::new(Link::new(bench.clone(), Bench::client(), Arc::from("node")));
    (bench, link)
}

/// Sends in a task and lets everything happen that can happen without time passing.
pub(super) async fn send(link: &Arc<Link<Bench>>, command: &Command) -> Sent {
    let sent = tokio::spawn(link.send(command));
    settle().await;
    sent
}

pub(super) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// The same with thousands of tasks.
async fn settle_all() {
    for _ in 0..50 {
        settle().await;
    }
}

/// Lets time pass.
pub(super) async fn after(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
    settle().await;
}

/// Sends an acquire, has it answered, and so proves the connection.
async fn prove(bench: &Bench, link: &Arc<Link<Bench>>, connection: usize) {
    let sent = send(link, &set(99, 1_000_000)).await;
    let calls = bench.calls(connection).len();
    bench.answer(connection, calls - 1, Ok(Value::Okay));
    assert_eq!(sent.await.unwrap(), Ok(Reply::Ok));
}

fn not_executed(kind: CauseKind, detail: &str) -> Result<Reply, Fault> {
    Err(Fault::NotExecuted(Cause::with_detail(kind, detail)))
}

fn unknown(kind: CauseKind, detail: &str) -> Result<Reply, Fault> {
    Err(Fault::Unknown(Cause::with_detail(kind, detail)))
}

fn refused() -> Result<Reply, Fault> {
    not_executed(CauseKind::Unreachable, "connection refused")
}

fn said(line: &str) -> Value {
    redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap()
}

// ---- dialling ----

#[test]
fn nothing_is_dialled_before_the_first_command() {
    let (bench, _link) = rig([]);
    assert_eq!(bench.dialled(), 0);
}

#[tokio::test(start_paused = true)]
async fn commands_wait_for_the_first_dial_and_keep_their_order() {
    let (bench, link) = rig([Dial::AcceptAfter(Duration::from_millis(50))]);
    let first = send(&link, &set(1, 1_000)).await;
    let second = send(&link, &delete(1, 1_000)).await;
    let third = send(&link, &set(2, 1_000)).await;
    after(60).await;
    assert_eq!(bench.calls(0), ["SET 01", "DELIFEQ 01", "SET 02"]);
    assert_eq!(bench.dialled(), 1);

    bench.answer(0, 2, Ok(Value::Nil));
    bench.answer(0, 0, Ok(Value::Okay));
    bench.answer(0, 1, Ok(Value::Int(1)));
    assert_eq!(first.await.unwrap(), Ok(Reply::Ok));
    assert_eq!(second.await.unwrap(), Ok(Reply::Int(1)));
    assert_eq!(third.await.unwrap(), Ok(Reply::Nil));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_cancels_no_dial() {
    let (bench, link) = rig([Dial::AcceptAfter(Duration::from_millis(50))]);
    send(&link, &set(1, 1_000)).await.abort();
    after(60).await;
    assert_eq!(bench.calls(0), [""; 0]);
    let sent = send(&link, &set(2, 1_000)).await;
    assert_eq!((bench.calls(0), bench.dialled()), (vec!["SET 02".to_owned()], 1));
    bench.answer(0, 0, Ok(Value::Okay));
    assert_eq!(sent.await.unwrap(), Ok(Reply::Ok));
}

#[tokio::test(start_paused = true)]
async fn a_command_whose_deadline_strikes_while_waiting_is_never_sent() {
    let (bench, link) = rig([Dial::AcceptAfter(Duration::from_millis(500))]);
    let gone = send(&link, &set(1, 100)).await;
    let stays = send(&link, &set(2, 900)).await;
    after(100).await;
    assert_eq!(gone.now_or_never().unwrap().unwrap(), not_executed(CauseKind::Timeout, "still connecting"));
    after(450).await;
    assert_eq!(bench.calls(0), ["SET 02"]);
    bench.answer(0, 0, Ok(Value::Okay));
    assert_eq!(stays.await.unwrap(), Ok(Reply::Ok));
}

#[tokio::test(start_paused = true)]
async fn a_failed_dial_makes_the_node_known_down_until_a_redial_succeeds() {
    let (bench, link) = rig([Dial::RefuseAfter(Duration::from_millis(50)), Dial::Refuse]);
    let waiting = send(&link, &set(1, 1_000)).await;
    after(49).await;
    assert!(!waiting.is_finished());
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(waiting.await.unwrap(), refused());

    // At once, without waiting for the redial that goes on.
    assert_eq!(link.send(&set(2, 2_000)).now_or_never(), Some(refused()));
    after(200).await;
    assert_eq!(bench.dialled(), 3);
    let sent = send(&link, &set(3, 2_000)).await;
    bench.answer(0, 0, Ok(Value::Okay));
    assert_eq!(sent.await.unwrap(), Ok(Reply::Ok));
}

#[tokio::test(start_paused = true)]
async fn redials_back_off() {
    let (bench, link) = rig(vec![Dial::Refuse; 1_000]);
    assert_eq!(send(&link, &set(1, 1_000)).await.await.unwrap(), refused());
    after(60_000).await;
    let dialled = bench.dialled();
    assert!((10..100).contains(&dialled), "{dialled} dials in a minute");
    assert_eq!(link.send(&delete(1, 61_000)).now_or_never(), Some(refused()));
}

#[tokio::test(start_paused = true)]
async fn a_dial_is_bounded() {
    let (bench, link) = rig([Dial::Hang]);
    let sent = send(&link, &set(1, 10_000)).await;
    after(999).await;
    assert!(!sent.is_finished());
    assert_eq!(sent.await.unwrap(), not_executed(CauseKind::Unreachable, "no connection in time"));
    assert_eq!(link.runtime().dialled(), 1);
    after(100).await;
    assert_eq!(bench.dialled(), 2);
}

#[test]
fn without_a_runtime_a_command_is_not_executed_and_a_later_one_dials() {
    let (bench, link) = rig([]);
    let fault = link.send(&set(1, 10_000)).now_or_never().unwrap();
    assert!(matches!(fault, Err(Fault::NotExecuted(_))), "{fault:?}");
    assert_eq!(bench.dialled(), 0);
    paused().block_on(answered(&bench, &link, 0));
}

#[test]
fn a_runtime_that_stops_while_dialling_leaves_a_link_that_dials_anew() {
    for dial in [Dial::Hang, Dial::Refuse] {
        let (bench, link) = rig([dial]);
        let first = paused();
        first.block_on(async {
            send(&link, &set(1, 10_000)).await;
        });
        assert_eq!(bench.dialled(), 1);
        drop(first);
        paused().block_on(answered(&bench, &link, 0));
        assert_eq!(bench.dialled(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dial_that_panics_is_a_failure_like_any_other() {
    let (bench, link) = rig([Dial::Panic]);
    let fault = send(&link, &set(1, 10_000)).await.await.unwrap();
    assert!(matches!(fault, Err(Fault::NotExecuted(_))), "{fault:?}");
    answered(&bench, &link, 0).await;
}

fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

async fn answered(bench: &Bench, link: &Arc<Link<Bench>>, connection: usize) {
    let sent = send(link, &set(7, 1_000_000)).await;
    assert_eq!(bench.calls(connection), ["SET 07"]);
    bench.answer(connection, 0, Ok(Value::Okay));
    assert_eq!(sent.await.unwrap(), Ok(Reply::Ok));
}

// ---- connections that fail ----

#[tokio::test(start_paused = true)]
async fn a_missed_deadline_retires_the_connection_and_a_late_answer_still_arrives() {
    let (bench, link) = rig([]);
    let late = send(&link, &set(1, 100)).await;
    after(99).await;
    assert_eq!(bench.dialled(), 1);
    after(1).await;
    assert_eq!(bench.dialled(), 2);

    let next = send(&link, &set(2, 1_000)).await;
    assert_eq!((bench.calls(0), bench.calls(1)), (vec!["SET 01".to_owned()], vec!["SET 02".to_owned()]));
    assert_eq!(bench.dropped(), 0);
    assert!(bench.answer(0, 0, Ok(Value::Okay)));
    assert_eq!(late.await.unwrap(), Ok(Reply::Ok));
    assert_eq!(bench.dropped(), 1, "a retired connection that owes nothing is let go of");
    bench.answer(1, 0, Ok(Value::Nil));
    assert_eq!(next.await.unwrap(), Ok(Reply::Nil));
}

#[tokio::test(start_paused = true)]
async fn a_delete_follows_its_acquire_onto_the_retired_connection() {
    let (bench, link) = rig([]);
    let acquire = send(&link, &set(1, 100)).await;
    after(110).await;
    let deleted = send(&link, &delete(1, 500)).await;
    assert_eq!(bench.calls(0), ["SET 01", "DELIFEQ 01"]);
    assert_eq!(bench.calls(1), ["DELIFEQ 01"]);
    let other = send(&link, &delete(2, 500)).await;
    assert_eq!((bench.calls(0).len(), bench.calls(1).len()), (2, 2));

    // The answer on the current connection is the one that counts.
    bench.answer(1, 0, Ok(Value::Int(0)));
    assert_eq!(deleted.await.unwrap(), Ok(Reply::Int(0)));
    bench.answer(1, 1, Ok(Value::Int(0)));
    assert_eq!(other.await.unwrap(), Ok(Reply::Int(0)));
    bench.answer(0, 0, Ok(Value::Okay));
    assert_eq!(acquire.await.unwrap(), Ok(Reply::Ok));
    assert_eq!(bench.dropped(), 0);
    assert!(bench.answer(0, 1, Ok(Value::Int(1))), "it is awaited");
    settle().await;
    assert_eq!((bench.dropped(), bench.dialled()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_delete_follows_its_acquire_also_when_the_node_is_down() {
    let (bench, link) = rig([Dial::Accept, Dial::Refuse]);
    let _acquire = send(&link, &set(1, 100)).await;
    after(100).await;
    assert_eq!(send(&link, &delete(1, 500)).await.await.unwrap(), refused());
    settle().await;
    assert_eq!(bench.calls(0), ["SET 01", "DELIFEQ 01"]);
}

#[tokio::test(start_paused = true)]
async fn a_delete_on_a_retired_connection_is_not_awaited_for_ever() {
    let (bench, link) = rig([]);
    let acquire = send(&link, &set(1, 100)).await;
    after(110).await;
    let deleted = send(&link, &delete(1, 500)).await;
    bench.answer(1, 0, Ok(Value::Int(0)));
    deleted.await.unwrap().unwrap();
    acquire.abort();
    after(1_000).await;
    assert_eq!(bench.dropped(), 0);
    after(70_000).await;
    assert_eq!(bench.dropped(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_acquire_is_forgotten() {
    let (bench, link) = rig([]);
    let acquire = send(&link, &set(1, 100)).await;
    after(110).await;
    acquire.abort();
    settle().await;
    assert_eq!(bench.dropped(), 1);
    let _deleted = send(&link, &delete(1, 500)).await;
    assert_eq!((bench.calls(0).len(), bench.calls(1).len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_replaced_once() {
    let (bench, link) = rig([Dial::Accept, Dial::AcceptAfter(Duration::from_millis(20))]);
    let first = send(&link, &set(1, 1_000)).await;
    let second = send(&link, &set(2, 1_000)).await;
    bench.hang_up(0);
    settle().await;
    for sent in [first, second] {
        assert_eq!(sent.await.unwrap(), unknown(CauseKind::Disconnected, "broken pipe"));
    }
    let waits = send(&link, &set(3, 1_000)).await;
    after(20).await;
    assert_eq!((bench.calls(1), bench.dialled()), (vec!["SET 03".to_owned()], 2));
    bench.answer(1, 0, Ok(Value::Okay));
    assert_eq!(waits.await.unwrap(), Ok(Reply::Ok));
}

#[tokio::test(start_paused = true)]
async fn what_a_broken_connection_did_not_take_in_goes_to_the_next() {
    for waiting in [1, 100] {
        let (bench, link) = rig([Dial::BreakAfter(Duration::from_millis(10))]);
        let sent: Vec<_> = (0..waiting).map(|_| tokio::spawn(link.send(&set(1, 1_000)))).collect();
        settle_all().await;
        after(10).await;
        settle_all().await;
        assert!((1..=waiting).contains(&bench.calls(0).len()));
        for number in 0..bench.calls(1).len() {
            bench.answer(1, number, Ok(Value::Okay));
        }
        // Those that were still in the queue when it broke are turned away; nobody is left in doubt.
        for sent in sent {
            let reply = sent.await.unwrap();
            assert!(matches!(reply, Ok(Reply::Ok) | Err(Fault::NotExecuted(_))), "{reply:?}");
            assert!(waiting > 1 || reply == Ok(Reply::Ok));
        }
        let next = send(&link, &set(2, 1_000)).await;
        bench.answer(1, bench.calls(1).len() - 1, Ok(Value::Okay));
        assert_eq!(next.await.unwrap(), Ok(Reply::Ok));
        assert_eq!((bench.dialled(), bench.dropped()), (2, 1));
    }
}

/// Once is luck, twice is a server that cannot be used.
#[tokio::test(start_paused = true)]
async fn a_command_is_not_passed_on_for_ever() {
    let broken = || Dial::BreakAfter(Duration::from_millis(10));
    let (bench, link) = rig([broken(), broken(), broken()]);
    let sent = tokio::spawn(link.send(&set(1, 1_000)));
    for _ in 0..3 {
        after(10).await;
        settle_all().await;
    }
    let fault = sent.now_or_never().unwrap().unwrap().unwrap_err();
    assert!(
        matches!(&fault, Fault::NotExecuted(cause) if cause.kind() == CauseKind::Disconnected),
        "{fault:?}"
    );
    assert!(bench.dialled() >= 2);
}

#[tokio::test(start_paused = true)]
async fn a_late_failure_does_not_take_the_replacement_down() {
    let (bench, link) = rig([]);
    let late = send(&link, &set(1, 100)).await;
    after(100).await;
    let next = send(&link, &set(2, 1_000)).await;
    bench.hang_up(0);
    assert_eq!(late.await.unwrap(), unknown(CauseKind::Disconnected, "broken pipe"));
    bench.answer(1, 0, Ok(Value::Okay));
    assert_eq!(next.await.unwrap(), Ok(Reply::Ok));
    let again = send(&link, &set(3, 1_000)).await;
    bench.answer(1, 1, Ok(Value::Okay));
    assert_eq!(again.await.unwrap(), Ok(Reply::Ok));
    assert_eq!(bench.dialled(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_parse_costs_the_connection_and_all_that_is_on_it() {
    let (bench, link) = rig([]);
    let parse = send(&link, &set(1, 1_000)).await;
    let other = send(&link, &set(2, 1_000)).await;
    bench.answer(0, 0, Err((ErrorKind::Parse, "odd").into()));
    settle().await;
    let fault = unknown(CauseKind::UnexpectedReply, "parse error");
    assert_eq!(parse.await.unwrap(), fault);
    assert_eq!(other.now_or_never().unwrap().unwrap(), fault);
    assert_eq!((bench.dialled(), bench.dropped()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_servers_error_is_an_answer() {
    let (bench, link) = rig([]);
    for (call, line) in ["BUSY with a script", "MOVED 7 host:1"].into_iter().enumerate() {
        let sent = send(&link, &set(1, 1_000)).await;
        bench.answer(0, call, Ok(said(line)));
        let (code, message) = line.split_once(' ').unwrap();
        assert_eq!(sent.await.unwrap(), Ok(Reply::Error(ServerError::new(code, message))));
    }
    let sent = send(&link, &set(1, 1_000)).await;
    bench.answer(0, 2, said("OOM no memory").extract_error());
    assert_eq!(sent.await.unwrap(), Ok(Reply::Error(ServerError::new("OOM", "no memory"))));
    assert_eq!(bench.dialled(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_accepts_but_never_answers_is_known_down() {
    let (bench, link) = rig([]);
    let _first = send(&link, &set(1, 100)).await;
    after(100).await;
    // The first such connection is given the benefit of the doubt.
    let _second = send(&link, &set(2, 200)).await;
    assert_eq!((bench.calls(1), bench.dialled()), (vec!["SET 02".to_owned()], 2));
    after(100).await;
    let down = link.send(&set(3, 300)).now_or_never();
    assert_eq!(down, Some(not_executed(CauseKind::Unreachable, "accepts connections but does not answer")));
    after(200).await;
    prove(&bench, &link, 2).await;
    // Now that it has answered, all is forgotten.
    let _third = send(&link, &set(4, 500)).await;
    after(100).await;
    let fifth = send(&link, &set(5, 1_000)).await;
    bench.answer(3, 0, Ok(Value::Okay));
    assert_eq!(fifth.await.unwrap(), Ok(Reply::Ok));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_the_dial_is_not_held_against_the_connection() {
    let (bench, link) = rig([Dial::AcceptAfter(Duration::from_millis(90))]);
    let sent = send(&link, &set(1, 100)).await;
    after(150).await;
    assert_eq!((bench.calls(0), bench.dialled()), (vec!["SET 01".to_owned()], 1));
    after(39).await;
    assert_eq!(bench.dialled(), 1);
    after(1).await;
    assert_eq!(bench.dialled(), 2);
    bench.answer(0, 0, Ok(Value::Okay));
    assert_eq!(sent.await.unwrap(), Ok(Reply::Ok));
}

#[tokio::test(start_paused = true)]
async fn what_comes_too_late_is_not_sent_unless_it_cleans_up() {
    let (bench, link) = rig([]);
    prove(&bench, &link, 0).await;
    after(100).await;
    let timeout = Err(Fault::NotExecuted(Cause::new(CauseKind::Timeout)));
    assert_eq!(link.send(&set(1, 100)).now_or_never(), Some(timeout.clone()));
    assert_eq!(link.send(&extend(1, 99)).now_or_never(), Some(timeout));
    let deleted = send(&link, &delete(1, 50)).await;
    assert_eq!(bench.calls(0)[1..], ["DELIFEQ 01"]);
    after(100).await;
    bench.answer(0, 1, Ok(Value::Int(1)));
    assert_eq!(deleted.await.unwrap(), Ok(Reply::Int(1)));
    assert_eq!(bench.dialled(), 1);
}

// ---- bounds and ends ----

#[tokio::test(start_paused = true)]
async fn what_is_unanswered_is_bounded() {
    let (bench, link) = rig([]);
    prove(&bench, &link, 0).await;
    let overloaded = Some(Err(Fault::NotExecuted(Cause::new(CauseKind::Overloaded))));
    let mut sent: Vec<_> = (0..MOST_OTHERS).map(|_| tokio::spawn(link.send(&set(1, 1_000)))).collect();
    settle_all().await;
    assert_eq!(link.send(&extend(1, 1_000)).now_or_never(), overloaded);
    sent.extend((MOST_OTHERS..MAX_UNANSWERED).map(|_| tokio::spawn(link.send(&delete(1, 1_000)))));
    settle_all().await;
    assert_eq!(link.send(&delete(1, 1_000)).now_or_never(), overloaded);
    // The proof, the first one alone, and what was gathered behind it. The rest waits in the line.
    let written = bench.calls(0).len();
    assert!((2 + LARGEST_BATCH..MAX_UNANSWERED).contains(&written), "{written}");
    bench.answer(0, 1, Ok(Value::Okay));
    settle_all().await;
    assert!(bench.calls(0).len() > written);
    assert_eq!(send(&link, &delete(1, 1_000)).await.now_or_never().map(Result::unwrap), None);
    drop(sent);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_dial_is_bounded() {
    let (bench, link) = rig([Dial::AcceptAfter(Duration::from_millis(50))]);
    let sent: Vec<_> = (0..MOST_OTHERS).map(|_| tokio::spawn(link.send(&set(1, 1_000)))).collect();
    settle_all().await;
    let overloaded = Some(Err(Fault::NotExecuted(Cause::new(CauseKind::Overloaded))));
    assert_eq!(link.send(&set(1, 1_000)).now_or_never(), overloaded);
    let deleted = send(&link, &delete(1, 1_000)).await;
    after(50).await;
    settle_all().await;
    assert_eq!(bench.calls(0).len(), MOST_OTHERS + 1);
    drop((sent, deleted));
}

#[tokio::test(start_paused = true)]
async fn only_so_many_connections_are_kept_for_their_answers() {
    let (bench, link) = rig([]);
    let mut sent = Vec::new();
    for connection in 0..=MOST_RETIRED {
        // The second owes an extension only, so it is the first that has to go.
        let number = u8::try_from(connection).unwrap();
        let deadline = 100 * (u64::from(number) + 1);
        prove(&bench, &link, connection).await;
        let command = if connection == 1 { extend(number, deadline) } else { set(number, deadline) };
        sent.push(send(&link, &command).await);
        after(100).await;
    }
    assert_eq!((bench.dialled(), bench.dropped()), (MOST_RETIRED + 2, 1));
    let given_up = unknown(CauseKind::Disconnected, "given up without an answer");
    assert_eq!(sent.remove(1).await.unwrap(), given_up);

    prove(&bench, &link, MOST_RETIRED + 1).await;
    let _sixth = send(&link, &set(50, 600)).await;
    after(100).await;
    assert_eq!((bench.dialled(), bench.dropped()), (MOST_RETIRED + 3, 2));
    assert_eq!(sent.remove(0).await.unwrap(), given_up);
    assert!(sent.iter().all(|sent| !sent.is_finished()));
}

#[tokio::test(start_paused = true)]
async fn closing_ends_everything() {
    let closed = Cause::new(CauseKind::Closed);
    let (bench, link) = rig([]);
    let retired = send(&link, &set(1, 100)).await;
    after(100).await;
    let behind = send(&link, &delete(1, 1_000)).await;
    let current = send(&link, &set(2, 1_000)).await;
    link.close();
    for sent in [retired, behind, current] {
        assert_eq!(sent.await.unwrap(), Err(Fault::Unknown(closed.clone())));
    }
    settle().await;
    assert_eq!((bench.dialled(), bench.dropped()), (2, 2));
    assert_eq!(link.send(&delete(1, 1_000)).now_or_never(), Some(Err(Fault::NotExecuted(closed.clone()))));
    link.close();
    after(10_000).await;
    assert_eq!(bench.dialled(), 2);
}

#[tokio::test(start_paused = true)]
async fn closing_ends_the_wait_for_a_dial_and_the_dial() {
    let (bench, link) = rig([Dial::AcceptAfter(Duration::from_millis(50))]);
    let sent = send(&link, &set(1, 1_000)).await;
    link.close();
    assert_eq!(sent.await.unwrap(), Err(Fault::NotExecuted(Cause::new(CauseKind::Closed))));
    after(100).await;
    assert_eq!(bench.calls(0), [""; 0]);
    assert_eq!(Arc::strong_count(&link), 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_redials_for_a_link_that_is_closed_or_gone() {
    for close in [true, false] {
        let (bench, link) = rig(vec![Dial::Refuse; 100]);
        assert_eq!(send(&link, &set(1, 1_000)).await.await.unwrap(), refused());
        after(1_000).await;
        if close {
            link.close();
        } else {
            drop(link);
        }
        let before = bench.dialled();
        after(60_000).await;
        assert_eq!(bench.dialled(), before);
    }
}

// ---- what must not be seen ----

#[tokio::test(start_paused = true)]
async fn no_text_gives_the_password_or_the_token_away() {
    let echo = redis::make_extension_error("ERR".into(), Some("no user hunter2".into()));
    let client = RedisError::from((ErrorKind::Client, "x", "hunter2".into()));
    let (_bench, link) = rig([vec![Dial::Say(echo)], vec![Dial::Say(client); 100]].concat());
    let first = send(&link, &set(1, 10_000)).await.await.unwrap();
    assert_eq!(first, Err(Fault::NotExecuted(Cause::new(CauseKind::Server))));
    after(60).await;
    let second = link.send(&set(1, 10_000)).now_or_never().unwrap();
    assert_eq!(second, not_executed(CauseKind::Rejected, "client error"));

    let (bench, link) = rig([]);
    let sent = send(&link, &set(1, 10_000)).await;
    let token = "01".repeat(20);
    bench.answer(0, 0, Ok(said(&format!("ERR what is {token}?"))));
    let third = sent.await.unwrap();
    assert_eq!(third, Ok(Reply::Error(ServerError::new("ERR", ""))));
    let sent = send(&link, &set(1, 10_000)).await;
    bench.answer(0, 1, Err(io::Error::other(format!("hunter2 {token}")).into()));
    let fourth = sent.await.unwrap();

    let shown = format!("{first:?} {second:?} {third:?} {fourth:?} {link:?}");
    assert!(!shown.contains("hunter2") && !shown.contains(&token), "{shown}");
}
