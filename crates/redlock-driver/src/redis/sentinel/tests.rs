use std::time::Duration;

use redis::RedisResult;
use tokio::task::JoinHandle;

use super::super::testing::{Bench, Dial, Wired};
use super::*;
use crate::Runtime;

mod watching;

type Found = JoinHandle<Result<(Wired, Place), Cause>>;

fn client(url: &str) -> Client {
    Client::open(url).unwrap()
}

fn sentinels(count: usize) -> Sentinels {
    let sentinels = (0..count).map(|number| client(&format!("redis://:hunter2@sentinel-{number}:26379")));
    let primary = client("redis://locker:hunter3@any:1/2");
    Sentinels::new("mymaster", sentinels.collect(), primary).unwrap()
}

/// Starts one dial, for which there is a second.
async fn find(bench: &Bench, sentinels: &Sentinels) -> Found {
    let (runtime, sentinels) = (bench.clone(), sentinels.clone());
    let found = tokio::spawn(async move {
        let deadline = runtime.now().saturating_add(Duration::from_secs(1));
        let found = timing::by(&runtime, deadline, sentinels.connect(&runtime, deadline, None)).await;
        found.unwrap_or_else(|| Err(Cause::new(CauseKind::Timeout)))
    });
    settle().await;
    found
}

async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// Answers the last command on this connection.
async fn answer(bench: &Bench, connection: usize, bytes: &[u8]) {
    let calls = bench.calls(connection).len();
    assert!(bench.answer(connection, calls - 1, reply(bytes)));
    settle().await;
}

/// A sentinel says where the primary is, since this epoch.
async fn tell(bench: &Bench, connection: usize, epoch: u64, address: &[u8]) {
    let state = format!("*4\r\n$4\r\nname\r\n$8\r\nmymaster\r\n$12\r\nconfig-epoch\r\n+{epoch}\r\n");
    answer(bench, connection, state.as_bytes()).await;
    answer(bench, connection, address).await;
}

fn reply(bytes: &[u8]) -> RedisResult<Value> {
    redis::parse_redis_value(bytes)
}

fn addresses(bench: &Bench) -> Vec<String> {
    bench.addresses().iter().map(ToString::to_string).collect()
}

fn cause(found: Result<(Wired, Place), Cause>) -> (CauseKind, String) {
    let cause = found.map(|_| ()).unwrap_err();
    assert!(!cause.to_string().contains("hunter"), "{cause}");
    (cause.kind(), detail(&cause))
}

const HERE: &[u8] = b"*2\r\n$8\r\nserver-a\r\n$4\r\n6379\r\n";
const THERE: &[u8] = b"*2\r\n$8\r\nserver-b\r\n$4\r\n6379\r\n";
const PRIMARY: &[u8] = b"*3\r\n$6\r\nmaster\r\n:3\r\n*0\r\n";
const REPLICA: &[u8] = b"*5\r\n$5\r\nslave\r\n$1\r\nb\r\n:1\r\n$9\r\nconnected\r\n:3\r\n";

#[tokio::test(start_paused = true)]
async fn the_first_sentinel_is_asked_and_the_primary_checked() {
    let (bench, sentinels) = (Bench::new([]), sentinels(3));
    let found = find(&bench, &sentinels).await;
    tell(&bench, 0, 1, HERE).await;
    assert_eq!(bench.words(0, 0), ["SENTINEL", "MASTER", "mymaster"]);
    assert_eq!(bench.words(0, 1), ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"]);
    assert_eq!(addresses(&bench), ["sentinel-0:26379", "server-a:6379"]);
    assert_eq!(bench.words(1, 0), ["ROLE"]);
    assert!(!found.is_finished(), "not before it has said that it is the primary");
    assert_eq!(bench.dropped(), 1, "the sentinel is not kept waiting");
    answer(&bench, 1, PRIMARY).await;
    assert!(found.await.unwrap().is_ok());
}

#[test]
fn the_primary_is_connected_to_as_it_was_said() {
    let client = sentinels(1).client("server-a".to_owned(), 7).unwrap();
    assert_eq!(&*node_name(&client), "server-a:7");
    let redis = client.get_connection_info().redis_settings();
    assert_eq!((redis.username(), redis.password(), redis.db()), (Some("locker"), Some("hunter3"), 2));
}

#[tokio::test(start_paused = true)]
async fn a_sentinel_that_was_right_is_asked_first_the_next_time() {
    let refuse = || [Dial::Refuse, Dial::Accept, Dial::Accept];
    let (bench, sentinels) = (Bench::new(refuse()), sentinels(3));
    let found = find(&bench, &sentinels).await;
    tell(&bench, 0, 1, HERE).await;
    answer(&bench, 1, PRIMARY).await;
    found.await.unwrap().unwrap();
    let again = find(&bench, &sentinels).await;
    tell(&bench, 2, 1, THERE).await;
    answer(&bench, 3, PRIMARY).await;
    again.await.unwrap().unwrap();
    let expected =
        ["sentinel-0:26379", "sentinel-1:26379", "server-a:6379", "sentinel-1:26379", "server-b:6379"];
    assert_eq!(addresses(&bench), expected);
}

#[tokio::test(start_paused = true)]
async fn a_silent_sentinel_takes_its_share_of_the_time_and_no_more() {
    let (bench, sentinels) = (Bench::new([Dial::Hang]), sentinels(3));
    let watch = tokio::time::Instant::now();
    let found = find(&bench, &sentinels).await;
    while bench.dialled() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(watch.elapsed() <= Duration::from_millis(252), "{:?}", watch.elapsed());
    settle().await;
    tell(&bench, 0, 1, HERE).await;
    answer(&bench, 1, PRIMARY).await;
    assert!(found.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_sentinel_that_is_behind_the_times_is_passed_over() {
    let (bench, sentinels) = (Bench::new([]), sentinels(2));
    let found = find(&bench, &sentinels).await;
    tell(&bench, 0, 1, HERE).await;
    answer(&bench, 1, REPLICA).await;
    tell(&bench, 2, 1, THERE).await;
    answer(&bench, 3, PRIMARY).await;
    assert!(found.await.unwrap().is_ok());
    let expected = ["sentinel-0:26379", "server-a:6379", "sentinel-1:26379", "server-b:6379"];
    assert_eq!(addresses(&bench), expected);
}

/// The primary that it names takes no connection: that uses the time up, so the next dial asks another.
#[tokio::test(start_paused = true)]
async fn the_next_dial_begins_with_another_sentinel() {
    let (bench, sentinels) = (Bench::new([Dial::Accept, Dial::Hang]), sentinels(2));
    let found = find(&bench, &sentinels).await;
    tell(&bench, 0, 1, HERE).await;
    assert_eq!(cause(found.await.unwrap()).0, CauseKind::Timeout);
    let again = find(&bench, &sentinels).await;
    assert_eq!(addresses(&bench), ["sentinel-0:26379", "server-a:6379", "sentinel-1:26379"]);
    again.abort();
}

#[tokio::test(start_paused = true)]
async fn every_sentinel_is_named_with_what_is_wrong() {
    let (bench, sentinels) = (Bench::new([Dial::Refuse, Dial::Hang]), sentinels(5));
    let found = find(&bench, &sentinels).await;
    tokio::time::sleep(Duration::from_millis(250)).await;
    settle().await;
    answer(&bench, 0, b"-ERR No such master with that name\r\n").await;
    answer(&bench, 1, b":7\r\n").await;
    answer(&bench, 2, b"-NOAUTH Authentication required.\r\n").await;
    let (kind, text) = cause(found.await.unwrap());
    assert_eq!(kind, CauseKind::Unreachable);
    let expected = [
        "sentinel sentinel-0:26379: connection refused",
        "sentinel sentinel-1:26379: no answer in time",
        "sentinel sentinel-2:26379: knows no primary called mymaster",
        "sentinel sentinel-3:26379: unexpected reply",
        "sentinel sentinel-4:26379: NOAUTH Authentication required.",
    ];
    assert_eq!(text, expected.join("; "));
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_the_primary_is_said_of_the_primary() {
    let table: [(&[u8], CauseKind, &str); 4] = [
        (REPLICA, CauseKind::Unreachable, "is not a primary"),
        (b"*3\r\n$8\r\nsentinel\r\n:3\r\n*0\r\n", CauseKind::Unreachable, "is not a primary"),
        (b":1\r\n", CauseKind::Unreachable, "unexpected reply"),
        (
            b"-NOPERM this user has no permissions to run the 'role' command\r\n",
            CauseKind::Rejected,
            "NOPERM this user has no permissions to run the 'role' command",
        ),
    ];
    for (role, kind, text) in table {
        let (bench, sentinels) = (Bench::new([]), sentinels(1));
        let found = find(&bench, &sentinels).await;
        tell(&bench, 0, 1, HERE).await;
        answer(&bench, 1, role).await;
        let expected = format!("sentinel sentinel-0:26379: its primary server-a:6379: {text}");
        assert_eq!(cause(found.await.unwrap()), (kind, expected));
    }
}

/// Neither at a dial nor while a connection is looked after.
#[tokio::test(start_paused = true)]
async fn there_is_no_way_back_to_an_older_epoch() {
    let (bench, sentinels) = (Bench::new([]), sentinels(2));
    let found = find(&bench, &sentinels).await;
    tell(&bench, 0, 7, THERE).await;
    answer(&bench, 1, PRIMARY).await;
    let (_, place) = found.await.unwrap().unwrap();
    assert_eq!(&*place, "server-b:6379");

    // The first sentinel is gone, and the second has not heard of the failover.
    let bench = Bench::new([Dial::Refuse]);
    let found = find(&bench, &sentinels).await;
    let behind = b"*2\r\n$12\r\nconfig-epoch\r\n$1\r\n6\r\n";
    answer(&bench, 0, behind).await;
    let (kind, text) = cause(found.await.unwrap());
    assert_eq!(kind, CauseKind::Unreachable);
    assert!(text.ends_with("sentinel sentinel-1:26379: is behind the others"), "{text}");

    // As nobody knows better, it is believed the next time.
    let bench = Bench::new([Dial::Refuse]);
    let found = find(&bench, &sentinels).await;
    tell(&bench, 0, 6, HERE).await;
    answer(&bench, 1, PRIMARY).await;
    assert_eq!(&*found.await.unwrap().unwrap().1, "server-a:6379");
}
