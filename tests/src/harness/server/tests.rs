//! Tests of [`Server`], against real processes.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Stdio;

use super::super::{may_own_servers, own_servers, wait_until};
use super::*;

/// The one server of a test that may have one.
fn own_server() -> Option<Server> {
    own_servers(1)?.pop()
}

/// The message with which `work` panics.
fn panic_of(work: impl FnOnce()) -> String {
    *catch_unwind(AssertUnwindSafe(work)).unwrap_err().downcast().unwrap()
}

#[test]
fn started_server_answers_and_is_empty() {
    let Some(server) = own_server() else { return };
    assert!(server.is_running());
    assert_eq!(server.address(), format!("127.0.0.1:{}", server.port()));
    assert_eq!(server.keys(), Vec::<String>::new());
    server.set("b", "2");
    server.set("a", "1");
    assert_eq!(server.keys(), ["a", "b"]);
}

#[test]
fn frozen_server_executes_what_it_was_sent_when_it_thaws() {
    let Some(server) = own_server() else { return };
    let mut connection = server.connection();
    connection.set_read_timeout(Some(Duration::from_millis(100))).unwrap();

    server.freeze();
    let error = cmd("SET").arg("key").arg("late").exec(&mut connection).unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(server.is_running());
    assert!(TcpStream::connect(server.address()).is_ok(), "the system accepts connections for it");

    server.thaw();
    assert_eq!(server.get("key").as_deref(), Some("late"));
}

#[test]
fn killed_server_refuses_and_comes_back_empty() {
    let Some(server) = own_server() else { return };
    server.set("key", "value");
    let run = server.info("run_id");

    server.freeze();
    server.kill();
    assert!(!server.is_running());
    let error = TcpStream::connect(server.address()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    server.kill();
    server.thaw();

    server.restart();
    assert!(server.is_running());
    assert_eq!(server.keys(), Vec::<String>::new());
    assert_ne!(server.info("run_id"), run);
}

#[test]
fn restart_ends_a_running_server_first() {
    let Some(server) = own_server() else { return };
    let (port, run) = (server.port(), server.info("run_id"));
    server.restart();
    assert_eq!(server.port(), port);
    assert_ne!(server.info("run_id"), run);
}

#[test]
fn dead_server_cannot_be_frozen() {
    let Some(server) = own_server() else { return };
    server.kill();
    let message = panic_of(|| server.freeze());
    assert!(message.ends_with("a server that is not running cannot be frozen"), "{message}");
    server.restart();
    server.freeze();
}

#[test]
fn appendonly_server_comes_back_with_its_data() {
    if !may_own_servers() {
        return;
    }
    let server = Server::builder().appendonly(true).start();
    server.set("lasting", "1");
    server.set_px("fleeting", "2", Duration::from_secs(60));
    server.kill();
    server.restart();
    assert_eq!(server.keys(), ["fleeting", "lasting"]);
    assert!((1..=60_000).contains(&server.pttl("fleeting")));
}

#[test]
fn password_is_demanded_and_is_in_the_url() {
    if !may_own_servers() {
        return;
    }
    let server = Server::builder().password("open-sesame").start();
    server.set("key", "value");
    assert_eq!(server.url(), format!("redis://:open-sesame@127.0.0.1:{}/", server.port()));

    let stranger = Primary::new(server.address().to_owned(), None);
    let error = cmd("GET").arg("key").query::<String>(&mut stranger.connection()).unwrap_err();
    assert_eq!(error.code(), Some("NOAUTH"));
    server.restart();
    assert_eq!(server.get("key"), None);
}

#[test]
fn options_reach_the_server_and_can_be_changed() {
    if !may_own_servers() {
        return;
    }
    let server = Server::builder().arg("--maxmemory", "3mb").arg("--maxmemory-policy", "allkeys-lru").start();
    assert_eq!(server.info("maxmemory").as_deref(), Some("3145728"));
    assert_eq!(server.info("maxmemory_policy").as_deref(), Some("allkeys-lru"));
    server.config_set("maxmemory", "4mb");
    assert_eq!(server.info("maxmemory").as_deref(), Some("4194304"));
    server.restart();
    assert_eq!(server.info("maxmemory").as_deref(), Some("3145728"));
}

#[test]
fn paused_server_answers_late() {
    let Some(server) = own_server() else { return };
    server.pause_all(Duration::from_millis(300));
    let watch = Stopwatch::start();
    server.set("key", "value");
    assert!(watch.elapsed() >= Duration::from_millis(250), "{:?}", watch.elapsed());
    assert_eq!(server.command_calls("set"), 1);
}

#[test]
fn server_that_does_not_start_says_why() {
    if !may_own_servers() {
        return;
    }
    let message = panic_of(|| drop(Server::builder().arg("--no-such-option", "1").start()));
    assert!(message.contains("it ended"), "{message}");
    assert!(message.contains("no-such-option"), "{message}");
}

#[test]
fn taken_port_is_told_from_other_failures() {
    if !may_own_servers() {
        return;
    }
    let (_holder, port) = super::super::ports::listener();
    let server = Server::builder().launch(port);
    let failure = server.start_process(&mut server.supervisor()).err();
    assert!(matches!(failure, Some(Failure::PortTaken)));
}

#[test]
fn stranger_on_the_port_is_not_taken_for_the_server() {
    let Some(stranger) = own_server() else { return };
    let server = Server::builder().launch(stranger.port());
    let failure = server.start_process(&mut server.supervisor()).err();
    assert!(matches!(failure, Some(Failure::PortTaken)));
    assert!(stranger.is_running());
}

#[test]
fn restart_waits_for_its_port() {
    let Some(server) = own_server() else { return };
    server.kill();
    let holder = TcpListener::bind((Ipv4Addr::LOCALHOST, server.port())).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| server.restart());
        thread::sleep(Duration::from_millis(100));
        drop(holder);
    });
    assert_eq!(server.get("key"), None);
}

#[test]
fn dropped_server_leaves_nothing() {
    let Some(server) = own_server() else { return };
    let (address, dir) = (server.address().to_owned(), server.dir.clone());
    assert!(dir.is_dir());
    server.freeze();
    drop(server);
    assert!(!dir.exists());
    assert!(TcpStream::connect(address).is_err());
}

/// The other half of [`killed_test_process_leaves_nothing`]: what it starts, and kills.
#[test]
fn helper_that_is_killed() {
    let Some(path) = env::var_os(VICTIM) else { return };
    let server = Server::start();
    fs::write(path, format!("{}\n{}", server.address(), server.dir.display())).unwrap();
    thread::sleep(Duration::from_secs(60));
}

#[test]
fn killed_test_process_leaves_nothing() {
    if !may_own_servers() {
        return;
    }
    let report = env::temp_dir().join(unique("redlock-victim"));
    let mut process = Command::new(env::current_exe().unwrap())
        .args(["--exact", "harness::server::tests::helper_that_is_killed", "--nocapture"])
        .env(VICTIM, &report)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut server = String::new();
    wait_until("the other process has a server", Duration::from_secs(20), || {
        server = fs::read_to_string(&report).unwrap_or_default();
        server.lines().count() == 2
    });
    let (address, dir) = server.split_once('\n').unwrap();
    assert!(TcpStream::connect(address).is_ok());
    assert!(Path::new(dir).is_dir());

    process.kill().unwrap();
    process.wait().unwrap();
    wait_until("its server is gone", Duration::from_secs(10), || {
        TcpStream::connect(address).is_err() && !Path::new(dir).exists()
    });
    fs::remove_file(report).unwrap();
}

const VICTIM: &str = "REDLOCK_TEST_VICTIM";

#[test]
fn message_about_a_missing_server_says_what_to_install() {
    let message = missing("redis-server", "No such file or directory");
    assert!(message.contains("apt-get install redis-server"), "{message}");
    assert!(message.contains("REDLOCK_REDIS_SERVER"), "{message}");
}
