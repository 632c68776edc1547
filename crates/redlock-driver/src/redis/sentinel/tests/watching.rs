//! A link whose connection is looked after.

use redlock_core::{Fault, Reply};

use super::super::super::link::Link;
use super::super::super::target::Target;
use super::super::super::testing::set;
use super::*;

type Sent = JoinHandle<Result<Reply, Fault>>;

/// A link that has a connection to a primary, number 1, from the sentinel's first word.
async fn rig(count: usize) -> (Bench, Arc<Link<Bench>>) {
    let bench = Bench::new([]);
    let sentinels = sentinels(count);
    let name = sentinels.name();
    let link = Arc::new(Link::new(bench.clone(), Target::Sentinel(sentinels), name));
    let sent = send(&link).await;
    tell(&bench, 0, 1, HERE).await;
    answer(&bench, 1, PRIMARY).await;
    answer(&bench, 1, b"+OK\r\n").await;
    assert_eq!(sent.await.unwrap(), Ok(Reply::Ok));
    (bench, link)
}

async fn send(link: &Arc<Link<Bench>>) -> Sent {
    let sent = tokio::spawn(link.send(&set(1, 1_000_000)));
    settle().await;
    sent
}

async fn a_second() {
    tokio::time::sleep(Duration::from_millis(1_001)).await;
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_primary_that_was_replaced_is_left_at_once() {
    let (bench, link) = rig(1).await;
    let owed = send(&link).await;
    a_second().await;
    tell(&bench, 2, 1, HERE).await;
    a_second().await;
    assert_eq!(bench.dialled(), 3, "the sentinel is asked over the same connection again");
    tell(&bench, 2, 2, THERE).await;

    // Until the new primary is found, commands wait for it. The old one may still answer what it was sent.
    let waits = send(&link).await;
    tell(&bench, 3, 2, THERE).await;
    answer(&bench, 4, PRIMARY).await;
    assert_eq!(bench.addresses().last().unwrap().as_ref(), "server-b:6379");
    answer(&bench, 4, b"+OK\r\n").await;
    assert_eq!(waits.await.unwrap(), Ok(Reply::Ok));
    answer(&bench, 1, b"$-1\r\n").await;
    assert_eq!(owed.await.unwrap(), Ok(Reply::Nil));

    // The new connection is looked after like the old one.
    a_second().await;
    tell(&bench, 5, 3, HERE).await;
    assert_eq!(bench.dialled(), 7);
}

#[tokio::test(start_paused = true)]
async fn silence_and_nonsense_of_sentinels_change_nothing() {
    let (bench, link) = rig(2).await;
    a_second().await;
    assert_eq!(bench.words(2, 0), ["SENTINEL", "MASTER", "mymaster"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    settle().await;
    assert_eq!(bench.addresses()[3].as_ref(), "sentinel-1:26379", "after a second's silence, the other one");
    answer(&bench, 3, b"-ERR No such master with that name\r\n").await;
    a_second().await;
    answer(&bench, 4, b"+what?\r\n").await;
    a_second().await;
    // Of an epoch before the one that is known.
    answer(&bench, 5, b"*2\r\n$12\r\nconfig-epoch\r\n$1\r\n0\r\n").await;
    let sent = send(&link).await;
    answer(&bench, 1, b"+OK\r\n").await;
    assert_eq!(sent.await.unwrap(), Ok(Reply::Ok));
    assert_eq!(bench.dialled(), 6);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_for_a_connection_that_is_gone() {
    for close in [true, false] {
        let (bench, link) = rig(1).await;
        a_second().await;
        tell(&bench, 2, 1, HERE).await;
        if close {
            link.close();
        } else {
            let sent = send(&link).await;
            bench.hang_up(1);
            settle().await;
            assert!(sent.await.unwrap().is_err());
        }
        let dialled = bench.dialled();
        tokio::time::sleep(Duration::from_secs(10)).await;
        let asked = bench.calls(2).len();
        assert_eq!(asked, 2);
        assert!(!close || bench.dialled() == dialled);
    }
}
