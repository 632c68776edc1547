//! The lease is lost while the command runs.

use std::thread;
use std::time::Duration;

use redlock_tests::harness::{Server, Stopwatch, own_servers, unique, wait_until};
use rustix::process::Signal;

use crate::support::{Files, Running, SLACK, is_alive, is_anywhere, ms, run_script, shared, urls};

/// Notes its start and a SIGTERM, and ends on it.
fn dutiful(files: &Files) -> String {
    format!(
        "trap 'echo >{term}; exit 9' TERM; echo $$ >{pid}; while :; do sleep 0.02; done",
        term = files.text("term"),
        pid = files.text("pid"),
    )
}

/// Notes its start and every SIGTERM, and goes on. So does a process that it starts.
fn stubborn(files: &Files) -> String {
    format!(
        "trap 'echo >>{term}' TERM; \
         sh -c 'trap \"\" TERM INT; echo $$ >{second}; while :; do sleep 0.05; done' >/dev/null 2>&1 & \
         echo $$ >{pid}; while :; do sleep 0.05; done",
        term = files.text("term"),
        second = files.text("second"),
        pid = files.text("pid"),
    )
}

fn await_sigterm(files: &Files, limit: Duration) -> Duration {
    wait_until("the command got SIGTERM", limit, || files.exists("term"))
}

fn kill_quorum(nodes: &[Server]) -> Stopwatch {
    nodes[0].kill();
    nodes[1].kill();
    Stopwatch::start()
}

#[test]
fn a_lost_quorum_stops_the_command_at_the_local_deadline() {
    let Some(nodes) = own_servers(3) else { return };
    let (resource, files) = (unique("cli:quorum"), Files::new());
    let ttl = ms(1_500);
    let options = ["--ttl", "1500ms", "--renew", "300ms"];
    let mut running = Running::start(&mut run_script(&urls(&nodes), &resource, &options, &dutiful(&files)));
    files.await_pid("pid");
    // Long enough for renewals; the lease is at most one interval old.
    thread::sleep(ms(700));
    let killed = kill_quorum(&nodes);
    await_sigterm(&files, ttl + SLACK);
    let taken = killed.elapsed();
    println!("SIGTERM {taken:?} after the quorum was killed, with a ttl of {ttl:?}");
    // Not before the end either: a server that is gone for a moment is no loss.
    assert!(taken > ttl - ms(300) - ms(150) && taken < ttl + ms(200), "{taken:?}");
    let finished = running.finish_within(ms(600) + SLACK);
    assert_eq!(finished.code, 76, "{finished:?}");
    assert!(finished.stderr.contains("is lost: its validity ran out"), "{finished:?}");
    assert!(finished.stderr.contains("connection refused"), "why: {finished:?}");
    assert_eq!(finished.stderr.matches("redlock:").count(), 1, "{finished:?}");
}

#[test]
fn a_quorum_with_another_token_stops_the_command_at_the_next_renewal() {
    let (nodes, urls) = shared(3);
    let (resource, files) = (unique("cli:refused"), Files::new());
    let options = ["--ttl", "20s", "--renew", "100ms"];
    let mut running = Running::start(&mut run_script(&urls, &resource, &options, &dutiful(&files)));
    files.await_pid("pid");
    for node in &nodes[..2] {
        node.set_px(&resource, "somebody else", ms(60_000));
    }
    await_sigterm(&files, ms(100) + SLACK);
    let finished = running.finish();
    assert_eq!(finished.code, 76, "{finished:?}");
    assert!(finished.stderr.contains("a quorum no longer holds our token"), "{finished:?}");
    assert!(nodes[..2].iter().all(|node| node.get(&resource).as_deref() == Some("somebody else")));
    assert_eq!(nodes[2].get(&resource), None);
}

#[test]
fn a_loss_that_shows_at_the_release_is_a_loss() {
    let (nodes, urls) = shared(1);
    let (resource, files) = (unique("cli:late-loss"), Files::new());
    let script =
        format!("echo $$ >{}; while [ ! -e {} ]; do sleep 0.02; done", files.text("pid"), files.text("go"));
    let options = ["--ttl", "60s", "--renew", "30s"];
    for (on_lost, code) in [("term", 76), ("warn", 0)] {
        let options = [&options[..], &["--on-lost", on_lost]].concat();
        let mut running = Running::start(&mut run_script(&urls, &resource, &options, &script));
        files.await_pid("pid");
        nodes[0].set_px(&resource, "somebody else", ms(60_000));
        std::fs::write(files.path("go"), "").unwrap();
        let finished = running.finish();
        assert_eq!(finished.code, code, "{finished:?}");
        assert!(finished.stderr.contains("was lost before the command had ended"), "{finished:?}");
        nodes[0].del(&resource);
        std::fs::remove_file(files.path("go")).unwrap();
        std::fs::remove_file(files.path("pid")).unwrap();
    }
}

#[test]
fn a_command_that_does_not_end_is_killed_after_the_grace_time_with_all_it_has_started() {
    let Some(nodes) = own_servers(1) else { return };
    let files = Files::new();
    let options = ["--ttl", "600ms", "--timeout", "400ms", "--grace", "400ms"];
    let mut running = Running::start(&mut run_script(&urls(&nodes), "r", &options, &stubborn(&files)));
    let (first, second) = (files.await_pid("pid"), files.await_pid("second"));
    nodes[0].kill();
    await_sigterm(&files, ms(600) + SLACK);
    let asked = Stopwatch::start();
    assert!(is_alive(first) && is_alive(second));
    let finished = running.finish_within(ms(1_000) + SLACK);
    assert!(asked.elapsed() > ms(300), "{:?}", asked.elapsed());
    assert_eq!(finished.code, 76, "{finished:?}");
    wait_until("both are gone", SLACK, || !is_alive(first) && !is_alive(second));
}

#[test]
fn what_a_command_that_obeys_leaves_running_is_killed_too() {
    let Some(nodes) = own_servers(1) else { return };
    let files = Files::new();
    let script = stubborn(&files).replace("echo >>", "exit 0; echo >>");
    let options = ["--ttl", "600ms", "--timeout", "400ms", "--grace", "300ms"];
    let mut running = Running::start(&mut run_script(&urls(&nodes), "r", &options, &script));
    let second = files.await_pid("second");
    files.await_pid("pid");
    nodes[0].kill();
    assert_eq!(running.finish_within(ms(1_500) + SLACK).code, 76);
    wait_until("it is gone", SLACK, || !is_alive(second));
}

#[test]
fn an_interrupt_during_the_grace_time_kills() {
    let Some(nodes) = own_servers(1) else { return };
    let files = Files::new();
    let options = ["--ttl", "500ms", "--timeout", "350ms", "--grace", "60s"];
    let mut running = Running::start(&mut run_script(&urls(&nodes), "r", &options, &stubborn(&files)));
    let (first, second) = (files.await_pid("pid"), files.await_pid("second"));
    nodes[0].kill();
    await_sigterm(&files, ms(500) + SLACK);
    running.signal(Signal::INT);
    assert_eq!(running.finish_within(ms(600) + SLACK).code, 76);
    wait_until("both are gone", SLACK, || !is_alive(first) && !is_alive(second));
}

#[test]
fn on_lost_kill_does_not_ask() {
    let Some(nodes) = own_servers(1) else { return };
    let files = Files::new();
    let options = ["--ttl", "500ms", "--timeout", "350ms", "--on-lost", "kill"];
    let mut running = Running::start(&mut run_script(&urls(&nodes), "r", &options, &dutiful(&files)));
    let pid = files.await_pid("pid");
    nodes[0].kill();
    assert_eq!(running.finish_within(ms(1_100) + SLACK).code, 76);
    assert!(!files.exists("term") && !is_alive(pid));
}

#[test]
fn on_lost_warn_lets_the_command_go_on() {
    let Some(nodes) = own_servers(1) else { return };
    let files = Files::new();
    let script = format!(
        "trap 'echo >{}' TERM; echo $$ >{}; sleep 1.2; exit 5",
        files.text("term"),
        files.text("pid")
    );
    let options = ["--ttl", "500ms", "--timeout", "350ms", "--on-lost", "warn"];
    let mut running = Running::start(&mut run_script(&urls(&nodes), "r", &options, &script));
    files.await_pid("pid");
    nodes[0].kill();
    let finished = running.finish();
    assert_eq!(finished.code, 5, "{finished:?}");
    assert!(finished.stderr.contains("is lost: its validity ran out"), "{finished:?}");
    assert!(finished.stderr.contains("goes on without it"), "{finished:?}");
    assert!(!files.exists("term"));
}

#[test]
fn a_lost_minority_is_no_loss() {
    let Some(nodes) = own_servers(3) else { return };
    let resource = unique("cli:minority");
    let options = ["--ttl", "500ms", "--timeout", "350ms", "--renew", "100ms"];
    let mut running =
        Running::start(&mut run_script(&urls(&nodes), &resource, &options, "sleep 1.5; exit 3"));
    wait_until("it is held", ms(3_000), || nodes[1].get(&resource).is_some());
    nodes[0].kill();
    let finished = running.finish();
    assert_eq!((finished.code, finished.stderr.as_str()), (3, ""));
    let rest: Vec<_> = nodes[1..].iter().map(|node| (**node).clone()).collect();
    assert!(!is_anywhere(&resource, &rest));
}

#[test]
fn a_reader_that_does_not_read_holds_up_no_loss() {
    let Some(nodes) = own_servers(1) else { return };
    let files = Files::new();
    let options = ["--ttl", "600ms", "--timeout", "400ms", "--renew", "1ms", "--verbose"];
    let mut command = run_script(&urls(&nodes), "r", &options, &dutiful(&files));
    // Nobody reads what is said: a pipe takes some hundred lines, and then a writer stands still.
    let (reader, writer) = std::io::pipe().unwrap();
    let mut running = Running::start(command.stderr(writer));
    files.await_pid("pid");
    thread::sleep(ms(3_000));
    assert!(running.is_running());
    nodes[0].kill();
    await_sigterm(&files, ms(600) + SLACK);
    assert_eq!(running.finish_within(ms(1_500) + SLACK).code, 76);
    drop(reader);
}
