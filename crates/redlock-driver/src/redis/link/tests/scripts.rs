//! Scripts that the server does not know yet.

use super::forms::{OLD, done};
use super::*;

#[tokio::test(start_paused = true)]
async fn an_unknown_script_follows_in_full_once() {
    let (bench, link) = rig([]);
    let sent = send(&link, &fenced(1, 1_000)).await;
    bench.answer(0, 0, Ok(said("NOSCRIPT No matching script")));
    settle().await;
    assert_eq!(bench.calls(0), ["EVALSHA 01", "EVAL 01"]);
    assert_eq!(bench.words(0, 1)[1], redlock_core::script::FENCED_ACQUIRE);
    bench.answer(0, 1, Ok(Value::BulkString(b"5".to_vec())));
    assert_eq!(sent.await.unwrap(), Ok(Reply::Text(b"5".as_slice().into())));

    let again = send(&link, &fenced(1, 1_000)).await;
    bench.answer(0, 2, said("NOSCRIPT No matching script").extract_error());
    settle().await;
    bench.answer(0, 3, Ok(said("NOSCRIPT again")));
    assert_eq!(again.await.unwrap(), Ok(Reply::Error(ServerError::new("NOSCRIPT", "again"))));
    assert_eq!(bench.calls(0).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_compare_command_that_is_refused_may_end_as_a_script_in_full() {
    let (bench, link) = rig([]);
    let sent = send(&link, &extend(1, 1_000)).await;
    for line in ["ERR unknown command 'DELIFEQ'", "NOSCRIPT No matching script"] {
        bench.answer(0, bench.calls(0).len() - 1, Ok(said(line)));
        settle().await;
    }
    assert_eq!(bench.calls(0), ["DELIFEQ -", "EVALSHA 01", "EVAL 01"]);
    assert_eq!(bench.words(0, 2)[1], redlock_core::script::COMPARE_AND_PEXPIRE);
    bench.answer(0, 2, Ok(Value::Int(0)));
    assert_eq!(sent.await.unwrap(), Ok(Reply::Int(0)));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_script_does_not_follow_its_own_undoing() {
    let (bench, link) = rig([]);
    done(&(bench.clone(), Arc::clone(&link)), 0, OLD, &delete(9, 1_000)).await;
    let acquire = send(&link, &fenced(1, 1_000)).await;
    let deleted = send(&link, &delete(1, 1_000)).await;
    bench.answer(0, 3, Ok(said("NOSCRIPT first")));
    bench.answer(0, 4, Ok(said("NOSCRIPT first")));
    settle().await;
    assert_eq!(bench.calls(0)[3..], ["EVALSHA 01", "EVALSHA 01", "EVAL 01"]);
    assert_eq!(bench.words(0, 5)[1], redlock_core::script::COMPARE_AND_DELETE);
    assert_eq!(acquire.await.unwrap(), Ok(Reply::Error(ServerError::new("NOSCRIPT", "first"))));
    bench.answer(0, 5, Ok(Value::Int(0)));
    assert_eq!(deleted.await.unwrap(), Ok(Reply::Int(0)));
}
