//! Tests of [`Relay`], with a line-echoing server behind it.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::sync::{Mutex, PoisonError};

use super::super::{own_servers, unused_address, wait_until};
use super::*;

/// Answers every line with itself, and remembers all lines of all connections in order of arrival.
struct Echo {
    address: String,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Echo {
    /// Its threads end with their connections, and the first one with the test process.
    fn start() -> Self {
        let (listener, port) = ports::listener();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&lines);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&seen);
                thread::spawn(move || echo(&stream, &seen));
            }
        });
        Self { address: format!("127.0.0.1:{port}"), lines }
    }

    fn seen(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn await_lines(&self, expected: &[&str]) {
        wait_until("the lines arrive", SOON, || self.seen() == expected);
    }
}

fn echo(mut stream: &TcpStream, seen: &Mutex<Vec<String>>) {
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(line.clone());
        if line == "bye" || stream.write_all(format!("{line}\n").as_bytes()).is_err() {
            return;
        }
    }
}

struct Client(TcpStream);

impl Client {
    fn connect(relay: &Relay) -> Self {
        let stream = TcpStream::connect(relay.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        Self(stream)
    }

    /// A connection that has already carried something.
    fn proven(relay: &Relay) -> Self {
        let mut client = Self::connect(relay);
        client.send("hello");
        client.expect("hello");
        client
    }

    fn send(&mut self, line: &str) {
        self.0.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn expect(&mut self, line: &str) {
        let mut answer = vec![0; line.len() + 1];
        self.0.read_exact(&mut answer).unwrap();
        assert_eq!(String::from_utf8(answer).unwrap(), format!("{line}\n"));
    }

    fn expect_silence(&mut self) {
        self.0.set_read_timeout(Some(Duration::from_millis(60))).unwrap();
        let outcome = self.0.read(&mut [0]);
        let quiet = |kind| matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(outcome.as_ref().is_err_and(|error| quiet(error.kind())), "{outcome:?}");
        self.0.set_read_timeout(Some(SOON)).unwrap();
    }

    /// The end may come as such or as a reset.
    fn expect_end(&mut self) {
        match self.0.read(&mut [0]) {
            Ok(0) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            other => panic!("no end of the connection: {other:?}"),
        }
    }
}

/// Enough on the busiest machine.
const SOON: Duration = Duration::from_secs(10);

fn echo_and_relay() -> (Echo, Relay) {
    let echo = Echo::start();
    let relay = Relay::start(&*echo.address);
    (echo, relay)
}

#[test]
fn bytes_go_both_ways() {
    let (echo, relay) = echo_and_relay();
    let mut client = Client::proven(&relay);
    client.send("again");
    client.expect("again");
    assert_eq!(echo.seen(), ["hello", "again"]);
    assert_eq!(relay.connections(), 1);
    assert_eq!(relay.url(), format!("redis://{}/", relay.address()));

    client.send("bye");
    client.expect_end();
}

#[test]
fn much_data_passes_and_nothing_is_reordered() {
    let (_, relay) = echo_and_relay();
    let mut client = Client::connect(&relay);
    let mut sender = client.0.try_clone().unwrap();
    let text = |round: u32| format!("{round:_>10000}");
    thread::scope(|scope| {
        scope.spawn(move || (0..500).for_each(|round| writeln!(sender, "{}", text(round)).unwrap()));
        (0..500).for_each(|round| client.expect(&text(round)));
    });
}

#[test]
fn held_requests_are_delivered_in_order() {
    let (echo, relay) = echo_and_relay();
    let mut client = Client::proven(&relay);

    relay.hold_requests(true);
    client.send("one");
    client.send("two");
    client.expect_silence();
    assert_eq!(echo.seen(), ["hello"]);

    relay.hold_requests(false);
    client.expect("one");
    client.expect("two");
    assert_eq!(echo.seen(), ["hello", "one", "two"]);
}

#[test]
fn held_requests_outlive_their_client() {
    let (echo, relay) = echo_and_relay();
    let mut client = Client::proven(&relay);
    // A reply that the client never reads makes its close a reset, which takes unread bytes with it.
    client.send("unread");
    echo.await_lines(&["hello", "unread"]);

    relay.hold_requests(true);
    client.send("late");
    // Let it reach the relay before the reset, which overtakes.
    thread::sleep(Duration::from_millis(60));
    drop(client);
    thread::sleep(Duration::from_millis(60));
    let mut other = Client::connect(&relay);
    other.send("later");
    assert_eq!(echo.seen(), ["hello", "unread"]);

    relay.hold_requests(false);
    other.expect("later");
    wait_until("both lines arrive", SOON, || echo.seen().len() == 4);
    assert!(echo.seen().contains(&"late".to_owned()));
    // The dead client's connection is closed, the other one is not.
    wait_until("one is left", SOON, || relay.shared.lock().open_count() == 1);
    other.send("on");
    other.expect("on");
}

#[test]
fn held_replies_are_delivered_in_order() {
    let (echo, relay) = echo_and_relay();
    let mut client = Client::proven(&relay);

    relay.hold_replies(true);
    client.send("one");
    client.send("bye");
    echo.await_lines(&["hello", "one", "bye"]);
    client.expect_silence();

    relay.hold_replies(false);
    client.expect("one");
    client.expect_end();
}

#[test]
fn dropped_replies_silence_their_connection_only() {
    let (echo, relay) = echo_and_relay();
    let mut hit = Client::proven(&relay);
    let mut spared = Client::proven(&relay);

    relay.drop_replies(true);
    hit.send("lost");
    echo.await_lines(&["hello", "hello", "lost"]);
    hit.expect_silence();
    relay.drop_replies(false);

    hit.send("executed");
    echo.await_lines(&["hello", "hello", "lost", "executed"]);
    hit.expect_silence();
    spared.send("fine");
    spared.expect("fine");
    hit.send("bye");
    hit.expect_end();
}

#[test]
fn dropping_includes_held_replies() {
    let (echo, relay) = echo_and_relay();
    let mut client = Client::proven(&relay);
    relay.hold_replies(true);
    client.send("lost");
    echo.await_lines(&["hello", "lost"]);
    thread::sleep(Duration::from_millis(60));

    relay.drop_replies(true);
    relay.drop_replies(false);
    relay.hold_replies(false);
    client.expect_silence();
}

#[test]
fn requests_and_replies_can_be_delayed() {
    let (echo, relay) = echo_and_relay();
    let mut client = Client::proven(&relay);
    let delay = Duration::from_millis(100);

    relay.delay_requests(delay);
    let watch = Stopwatch::start();
    client.send("one");
    client.expect("one");
    assert!(watch.elapsed() >= delay, "{:?}", watch.elapsed());

    relay.delay_requests(Duration::ZERO);
    relay.delay_replies(delay);
    let watch = Stopwatch::start();
    client.send("two");
    client.send("three");
    echo.await_lines(&["hello", "one", "two", "three"]);
    client.expect("two");
    assert!(watch.elapsed() >= delay, "{:?}", watch.elapsed());
    client.expect("three");
    assert!(watch.elapsed() < delay * 10, "delays do not add up: {:?}", watch.elapsed());
}

#[test]
fn delay_that_is_switched_off_lets_go_of_what_waits() {
    let (_, relay) = echo_and_relay();
    let mut client = Client::proven(&relay);
    relay.delay_requests(Duration::from_secs(3600));
    client.send("one");
    client.expect_silence();
    relay.delay_requests(Duration::ZERO);
    client.expect("one");
}

#[test]
fn refused_connections_are_closed_at_once() {
    let (_, relay) = echo_and_relay();
    let mut old = Client::proven(&relay);
    relay.refuse(true);
    Client::connect(&relay).expect_end();
    old.send("still here");
    old.expect("still here");
    relay.refuse(false);
    Client::proven(&relay);
    assert_eq!(relay.connections(), 3);
}

#[test]
fn swallowed_connections_are_never_answered() {
    let (echo, relay) = echo_and_relay();
    relay.black_hole_new(true);
    let mut swallowed = Client::connect(&relay);
    swallowed.send("lost");
    swallowed.expect_silence();
    relay.black_hole_new(false);
    swallowed.send("lost too");
    swallowed.expect_silence();

    drop(Client::proven(&relay));
    assert_eq!(echo.seen(), ["hello"]);
    assert_eq!(relay.connections(), 2);
    drop(swallowed);
    wait_until("none is left", SOON, || relay.shared.lock().open_count() == 0);
}

#[test]
fn half_dead_connections_carry_nothing_and_new_ones_work() {
    let (echo, relay) = echo_and_relay();
    let mut dead = Client::proven(&relay);
    relay.hold_replies(true);
    dead.send("on its way back");
    echo.await_lines(&["hello", "on its way back"]);

    relay.black_hole_existing();
    relay.hold_replies(false);
    dead.send("lost");
    dead.expect_silence();
    Client::proven(&relay);
    assert_eq!(echo.seen(), ["hello", "on its way back", "hello"]);

    relay.reset_all();
    dead.expect_end();
}

#[test]
fn reset_closes_what_is_open_and_loses_what_is_held() {
    let (echo, relay) = echo_and_relay();
    let mut client = Client::proven(&relay);
    relay.hold_requests(true);
    client.send("lost");
    client.expect_silence();

    relay.reset_all();
    client.expect_end();
    relay.hold_requests(false);
    Client::proven(&relay);
    assert_eq!(echo.seen(), ["hello", "hello"]);
}

#[test]
fn a_reply_can_be_cut_in_the_middle_by_a_reset() {
    let (_echo, relay) = echo_and_relay();
    let mut client = Client::proven(&relay);
    relay.cut_replies_after(3, Cut::Reset);
    let mut later = Client::proven(&relay);
    client.send("hello");
    let mut bytes = Vec::new();
    let error = client.0.read_to_end(&mut bytes).unwrap_err();
    assert_eq!((&bytes[..], error.kind()), (&b"hel"[..], ErrorKind::ConnectionReset));
    later.send("goes on");
    later.expect("goes on");
}

#[test]
fn one_direction_can_fall_silent() {
    let (echo, relay) = echo_and_relay();
    let mut client = Client::proven(&relay);
    relay.cut_replies_after(0, Cut::Silence);
    client.send("heard");
    echo.await_lines(&["hello", "heard"]);
    client.expect_silence();

    let (echo, relay) = echo_and_relay();
    let mut client = Client::proven(&relay);
    relay.cut_requests_after(0, Cut::Silence);
    client.send("unheard");
    client.expect_silence();
    echo.await_lines(&["hello"]);
}

#[test]
fn server_that_is_down_ends_connections() {
    let relay = Relay::start(unused_address());
    Client::connect(&relay).expect_end();
    assert_eq!(relay.connections(), 1);
}

#[test]
fn relay_can_be_dropped_while_clients_come() {
    let echo = Echo::start();
    for _ in 0..50 {
        let relay = Relay::start(&*echo.address);
        let address = relay.address().to_owned();
        let clients = thread::spawn(move || {
            (0..5).filter_map(|_| TcpStream::connect(&address).ok()).collect::<Vec<_>>()
        });
        drop(relay);
        drop(clients.join().unwrap());
    }
}

#[test]
fn dropped_relay_closes_everything() {
    let (_, relay) = echo_and_relay();
    let mut open = Client::proven(&relay);
    relay.black_hole_new(true);
    let mut swallowed = Client::connect(&relay);
    relay.hold_requests(true);
    open.send("held");
    wait_until("both are known", SOON, || relay.connections() == 2);
    let address = relay.address().to_owned();

    drop(relay);
    open.expect_end();
    swallowed.expect_end();
    assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn new_connections_can_be_led_elsewhere() {
    let (first, second) = (Echo::start(), Echo::start());
    let relay = Relay::start(first.address.as_str());
    let mut old = Client::proven(&relay);
    let before = first.seen().len();
    relay.lead_to(second.address.as_str());
    Client::proven(&relay);
    old.send("old");
    wait_until("the old connection stays where it is", SOON, || first.seen().len() > before);
    assert!(!second.seen().is_empty());
}

#[test]
fn late_command_reaches_a_real_server() {
    let Some(nodes) = own_servers(1) else { return };
    let relay = Relay::start(nodes[0].address());
    let mut connection = redis::Client::open(relay.url()).unwrap().get_connection().unwrap();
    connection.set_read_timeout(Some(Duration::from_millis(60))).unwrap();

    relay.hold_requests(true);
    let error = redis::cmd("SET").arg("key").arg("late").exec(&mut connection).unwrap_err();
    assert!(error.is_timeout(), "{error}");
    drop(connection);
    assert_eq!(nodes[0].get("key"), None);

    relay.hold_requests(false);
    wait_until("the command is executed", SOON, || nodes[0].get("key").as_deref() == Some("late"));
}
