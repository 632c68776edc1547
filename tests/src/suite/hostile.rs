//! Answers that no server gives, where it depends on the runtime what they do: its threads read them.

use redlock_driver::{Config, Error, Manager};

use super::Adapter;
use super::support::{cause, key, ms, timed};
use crate::harness::{FakeServer, Played};

fn config() -> Config {
    Config::builder().ttl(ms(20_000)).operation_timeout(ms(300)).attempts(1).build().unwrap()
}

/// Values within values, as deep as the parser goes and deeper. A build without optimisation needs the most of
/// a thread's stack, and an overflow of it ends the process.
pub async fn deep_nesting_overflows_no_stack<R: Adapter>() {
    let shapes = ["*1\r\n", "~1\r\n", "%1\r\n+k\r\n", ">1\r\n", "|1\r\n+k\r\n:1\r\n"];
    for shape in shapes {
        for depth in [1, 50, 98, 99, 100, 101, 1_000, 20_000] {
            let reply = format!("{}+OK\r\n", shape.repeat(depth)).into_bytes();
            let server = FakeServer::play(move |_, _| Played::Bytes(reply.clone()));
            let manager: Manager<R> = Manager::single(server.url(), config()).unwrap();
            let (acquired, took) = timed(manager.lock(key("deep")).acquire()).await;
            // One attribute in front of an answer is no part of it.
            if let Ok(lease) = &acquired {
                assert!(shape.starts_with('|'), "{shape:?} {depth}: {lease:?}");
                continue;
            }
            let seen = cause(acquired);
            assert!(took < ms(2_000), "{shape:?} {depth}: {took:?}");
            let known = ["unexpected reply", "no answer", "connection lost"];
            assert!(known.iter().any(|known| seen.starts_with(known)), "{shape:?} {depth}: {seen}");
        }
    }
}

/// Two answers to one command: the second one is not taken for the answer to the next command.
pub async fn a_surplus_answer_belongs_to_nobody<R: Adapter>() {
    let mut sets = 0;
    let server = FakeServer::play(move |_, words| {
        if !words.iter().any(|word| word == b"NX") {
            return Played::Bytes(b":1\r\n".to_vec());
        }
        sets += 1;
        Played::Bytes(if sets == 1 { b"+OK\r\n+OK\r\n".to_vec() } else { b"$-1\r\n".to_vec() })
    });
    let manager: Manager<R> = Manager::single(server.url(), config()).unwrap();
    let _lease = manager.lock("first").acquire().await.unwrap();
    let second = manager.lock("second").acquire().await;
    assert!(matches!(second, Err(Error::NotAcquired(_))), "{second:?}");
}
