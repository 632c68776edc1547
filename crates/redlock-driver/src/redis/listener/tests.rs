use std::future::poll_fn;
use std::time::Duration;

use futures_util::FutureExt as _;
use redis::RedisResult;

use super::super::testing::{Bench, Dial};
use super::dial::IDLE;
use super::state::{MOST_WATCHES, REFUSED};
use super::*;
use crate::hints::{Mark, Sight, Watch as _};

fn listener(bench: &Bench) -> Arc<Listener<Bench>> {
    Arc::new(Listener::new(bench.clone(), Bench::client().into(), "node".into()))
}

fn watch(listener: &Arc<Listener<Bench>>, key: &str) -> KeyWatch<Bench> {
    listener.watch(&key.into()).expect("a watch")
}

/// What is seen now, if there is anything.
async fn see(watch: &mut KeyWatch<Bench>) -> Option<Sight> {
    tokio::time::sleep(Duration::from_millis(1)).await;
    let sight = poll_fn(|context| watch.poll_sight(context)).now_or_never();
    tokio::time::sleep(Duration::from_millis(1)).await;
    sight
}

fn okay() -> RedisResult<Value> {
    Ok(Value::Okay)
}

fn text(text: &str) -> RedisResult<Value> {
    Ok(Value::BulkString(text.into()))
}

fn error(line: &[u8]) -> RedisResult<Value> {
    redis::parse_redis_value(line)
}

/// A watch whose connection is there, and which has sent its first read.
async fn connected(bench: &Bench, listener: &Arc<Listener<Bench>>) -> KeyWatch<Bench> {
    let mut watch = watch(listener, "k");
    assert_eq!(see(&mut watch).await, None);
    bench.answer(0, 0, okay());
    assert_eq!(see(&mut watch).await, None);
    assert_eq!(bench.calls(0), ["CLIENT -", "GET -"]);
    watch
}

#[tokio::test(start_paused = true)]
async fn looks_once_and_hears_the_rest() {
    let bench = Bench::new([]);
    let listener = listener(&bench);
    let mut watch = connected(&bench, &listener).await;
    assert_eq!((bench.words(0, 0), bench.words(0, 1)), (words("CLIENT TRACKING ON"), words("GET k")));
    bench.answer(0, 1, text("a"));
    assert_eq!(see(&mut watch).await, Some(Sight::Held(Mark::of(b"a"))));
    // What does not concern it.
    bench.invalidate(0, Some("other"));
    assert_eq!(see(&mut watch).await, None);
    bench.invalidate(0, Some("k"));
    assert_eq!(see(&mut watch).await, Some(Sight::Changed));
    assert_eq!(see(&mut watch).await, None);
    bench.answer(0, 2, Ok(Value::Nil));
    assert_eq!(see(&mut watch).await, Some(Sight::Free));
    assert_eq!(see(&mut watch).await, None);
    // A flush concerns everybody.
    bench.invalidate(0, None);
    assert_eq!(see(&mut watch).await, Some(Sight::Changed));
    assert_eq!(bench.calls(0).len(), 3);
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(String::from).collect()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_dialled_before_somebody_looks() {
    let bench = Bench::new([]);
    let listener = listener(&bench);
    let _watch = watch(&listener, "k");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.dialled(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_and_dialled_anew() {
    let bench = Bench::new([]);
    let listener = listener(&bench);
    let mut first = connected(&bench, &listener).await;
    bench.answer(0, 1, text("a"));
    assert!(see(&mut first).await.is_some());
    tokio::time::sleep(10 * IDLE).await;
    assert_eq!(bench.dropped(), 0, "it is watched");
    drop(first);
    tokio::time::sleep(IDLE / 2).await;
    let mut second = watch(&listener, "k");
    assert_eq!(see(&mut second).await, None);
    drop(second);
    tokio::time::sleep(IDLE - Duration::from_secs(1)).await;
    assert_eq!((bench.dialled(), bench.dropped()), (1, 0));
    tokio::time::sleep(IDLE + Duration::from_secs(1)).await;
    assert_eq!(bench.dropped(), 1);
    let mut third = watch(&listener, "k");
    assert_eq!(see(&mut third).await, None);
    assert_eq!(bench.dialled(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_taken_for_an_answer_for_a_long_time() {
    let bench = Bench::new([]);
    let listener = listener(&bench);
    let mut refused = watch(&listener, "k");
    assert_eq!(see(&mut refused).await, None);
    bench.answer(
        0,
        0,
        error(b"-NOPERM User locker has no permissions to run the 'client|tracking' command\r\n"),
    );
    assert_eq!(see(&mut refused).await, Some(Sight::Over));
    tokio::time::sleep(REFUSED - Duration::from_secs(1)).await;
    assert_eq!(see(&mut watch(&listener, "k")).await, Some(Sight::Over));
    assert_eq!((bench.dialled(), bench.dropped()), (1, 1));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(see(&mut watch(&listener, "k")).await, None);
    assert_eq!(bench.dialled(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_loading_is_not_one_that_refuses() {
    let bench = Bench::new([]);
    let listener = listener(&bench);
    let mut first = connected(&bench, &listener).await;
    bench.answer(0, 1, error(b"-LOADING Redis is loading the dataset in memory\r\n"));
    assert_eq!(see(&mut first).await, Some(Sight::Over));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(see(&mut watch(&listener, "k")).await, None);
    assert_eq!(bench.dialled(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_is_refused_or_not_answered_ends_the_connection() {
    let bench = Bench::new([]);
    let listener = listener(&bench);
    let mut watch = connected(&bench, &listener).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(see(&mut watch).await, Some(Sight::Over));
    assert_eq!(bench.dropped(), 1);
}

#[tokio::test(start_paused = true)]
async fn failures_are_followed_by_growing_pauses() {
    let bench = Bench::new(vec![Dial::Refuse; 1_000]);
    let listener = listener(&bench);
    // Somebody who asks all the time.
    for _ in 0..60_000 {
        see(&mut watch(&listener, "k")).await;
    }
    assert!((10..100).contains(&bench.dialled()), "{}", bench.dialled());
}

#[tokio::test(start_paused = true)]
async fn connections_that_do_not_last_are_failures_too() {
    let bench = Bench::new([]);
    let listener = listener(&bench);
    let mut broken = 0;
    for _ in 0..60_000 {
        see(&mut watch(&listener, "k")).await;
        if bench.dialled() > broken {
            bench.answer(broken, 0, okay());
            tokio::time::sleep(Duration::from_millis(1)).await;
            bench.disconnect(broken);
            broken += 1;
        }
    }
    assert!((10..100).contains(&broken), "{broken}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_ends_its_watches() {
    let bench = Bench::new([]);
    let listener = listener(&bench);
    let mut first = connected(&bench, &listener).await;
    bench.answer(0, 1, text("a"));
    assert!(see(&mut first).await.is_some());
    bench.disconnect(0);
    assert_eq!(see(&mut first).await, Some(Sight::Over));
    assert_eq!(see(&mut first).await, Some(Sight::Over));
    // And what was pushed on it late is nobody's.
    bench.disconnect(0);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(see(&mut watch(&listener, "k")).await, None);
    assert_eq!((bench.dialled(), bench.dropped()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn when_the_link_changes_its_connection_the_listener_does() {
    let bench = Bench::new([]);
    let listener = listener(&bench);
    let mut first = connected(&bench, &listener).await;
    bench.answer(0, 1, text("a"));
    assert!(see(&mut first).await.is_some());
    listener.leave();
    assert_eq!(see(&mut first).await, Some(Sight::Over));
    assert_eq!(see(&mut watch(&listener, "k")).await, None);
    assert_eq!((bench.dialled(), bench.dropped()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn closed_or_dropped_it_leaves_nothing_behind() {
    for close in [true, false] {
        for dialling in [true, false] {
            let bench = Bench::new(dialling.then_some(Dial::Hang));
            let listener = listener(&bench);
            let mut watch = if dialling {
                let mut watch = watch(&listener, "k");
                assert_eq!(see(&mut watch).await, None);
                watch
            } else {
                connected(&bench, &listener).await
            };
            if close {
                listener.close();
                assert_eq!(see(&mut watch).await, dialling.then_some(Sight::Over));
                assert!(listener.watch(&"k".into()).is_none());
            }
            let weak = Arc::downgrade(&listener);
            drop((watch, listener));
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert!(weak.upgrade().is_none());
            assert_eq!(bench.dropped(), usize::from(!dialling), "close: {close}, dialling: {dialling}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn watches_are_bounded() {
    let listener = listener(&Bench::new([]));
    let mut watches: Vec<_> = (0..MOST_WATCHES).map(|_| watch(&listener, "k")).collect();
    assert!(listener.watch(&"k".into()).is_none());
    watches.pop();
    watches.push(watch(&listener, "other"));
    assert!(listener.watch(&"k".into()).is_none());
    drop(watches);
    let state = lock(&listener.state);
    assert!(!state.is_watched() && state.all_ears().is_empty());
}

#[test]
fn without_a_runtime_there_is_nothing_to_see() {
    let bench = Bench::new([]);
    let listener = listener(&bench);
    for _ in 0..3 {
        let sight = poll_fn(|context| watch(&listener, "k").poll_sight(context)).now_or_never();
        assert!(matches!(sight, Some(Sight::Over) | None));
    }
    assert_eq!(bench.dialled(), 0);
}
