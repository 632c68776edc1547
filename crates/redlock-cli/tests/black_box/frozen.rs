//! The program itself is stopped while its command runs on.

use std::thread;

use redlock_tests::harness::{Stopwatch, unique, wait_until};
use rustix::process::Signal;

use crate::support::{Files, Running, SLACK, is_anywhere, ms, run_script, shared};

#[test]
fn a_pause_beyond_the_ttl_ends_the_command_at_once() {
    let (nodes, urls) = shared(3);
    let (resource, files) = (unique("cli:frozen"), Files::new());
    let script = format!(
        "trap 'echo >{}; exit 9' TERM; echo $$ >{}; while :; do sleep 0.01; done",
        files.text("term"),
        files.text("pid")
    );
    let mut running = Running::start(&mut run_script(&urls, &resource, &["--ttl", "700ms"], &script));
    files.await_pid("pid");
    running.signal(Signal::STOP);
    wait_until("the keys are gone", ms(1_500), || !is_anywhere(&resource, &nodes));
    thread::sleep(ms(100));
    assert!(!files.exists("term"), "nobody was there to stop it");

    running.signal(Signal::CONT);
    let continued = Stopwatch::start();
    wait_until("the command got SIGTERM", SLACK, || files.exists("term"));
    println!("SIGTERM {:?} after redlock went on", continued.elapsed());
    assert!(continued.elapsed() < ms(250), "{:?}", continued.elapsed());
    let finished = running.finish();
    assert_eq!(finished.code, 76, "{finished:?}");
    assert!(finished.stderr.contains("its validity ran out"), "{finished:?}");
    assert!(!is_anywhere(&resource, &nodes), "it must not be taken again");
}

#[test]
fn a_pause_within_the_ttl_does_no_harm() {
    let (nodes, urls) = shared(1);
    let (resource, files) = (unique("cli:short-pause"), Files::new());
    let script = format!("echo $$ >{}; sleep 1.2; exit 6", files.text("pid"));
    let mut running = Running::start(&mut run_script(&urls, &resource, &["--ttl", "2s"], &script));
    files.await_pid("pid");
    running.signal(Signal::STOP);
    thread::sleep(ms(800));
    running.signal(Signal::CONT);
    let finished = running.finish();
    assert_eq!((finished.code, finished.stderr.as_str()), (6, ""));
    assert!(!is_anywhere(&resource, &nodes));
}

/// Nobody renews for a command that somebody else has stopped, unless the program does.
#[test]
fn a_stopped_command_keeps_its_lease() {
    let (nodes, urls) = shared(1);
    let (resource, files) = (unique("cli:stopped"), Files::new());
    let script = format!("echo $$ >{}; sleep 0.2; exit 6", files.text("pid"));
    let mut running = Running::start(&mut run_script(&urls, &resource, &["--ttl", "1s"], &script));
    let pid = files.await_pid("pid");
    crate::support::send(pid, Signal::STOP);
    thread::sleep(ms(1_500));
    assert!(is_anywhere(&resource, &nodes));
    crate::support::send(pid, Signal::CONT);
    assert_eq!(running.finish().code, 6);
}
