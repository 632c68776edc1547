//! The program is killed where it stands.

use std::thread;

use redlock_tests::harness::{Stopwatch, unique, wait_until};
use rustix::process::Signal;

use crate::support::{Files, Running, SLACK, is_alive, is_anywhere, ms, run_script, send, shared};

#[test]
fn a_killed_program_frees_the_resource_after_the_ttl() {
    let (nodes, urls) = shared(3);
    let (resource, files) = (unique("cli:killed"), Files::new());
    let script = format!("echo $$ >{}; exec sleep 60", files.text("pid"));
    let mut running = Running::start(&mut run_script(&urls, &resource, &["--ttl", "1s"], &script));
    files.await_pid("pid");
    running.signal(Signal::KILL);
    let killed = Stopwatch::start();
    assert_eq!(running.finish().code, -9);
    assert!(is_anywhere(&resource, &nodes));
    wait_until("the keys are gone", ms(1_000) + SLACK, || !is_anywhere(&resource, &nodes));
    println!("free {:?} after kill -9, with a ttl of 1s", killed.elapsed());
}

#[test]
#[cfg(target_os = "linux")]
fn the_command_of_a_killed_program_gets_what_a_loss_would_send() {
    let (_, urls) = shared(1);
    for (on_lost, dutiful, ends) in
        [("term", true, true), ("term", false, false), ("kill", false, true), ("warn", true, false)]
    {
        let files = Files::new();
        let on_term = if dutiful { "exit" } else { "" };
        let script =
            format!("trap '{on_term}' TERM; echo $$ >{}; while :; do sleep 0.05; done", files.text("pid"));
        let options = ["--ttl", "1s", "--on-lost", on_lost];
        let mut command = run_script(&urls, &unique("cli:orphan"), &options, &script);
        let mut running =
            Running::start(command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()));
        let pid = files.await_pid("pid");
        running.signal(Signal::KILL);
        running.finish();
        if ends {
            let taken = wait_until("the command is gone", SLACK, || !is_alive(pid));
            println!("--on-lost={on_lost}: the command was gone {taken:?} after redlock");
        } else {
            thread::sleep(ms(300));
            assert!(is_alive(pid), "{on_lost}");
            send(pid, Signal::KILL);
        }
    }
}

/// What remains: the system tells the command's own process and none that it has started. This test is here so
/// that the documentation says what is true.
#[test]
#[cfg(target_os = "linux")]
fn what_the_command_has_started_is_not_told() {
    let (_, urls) = shared(1);
    let files = Files::new();
    let script = format!(
        "sh -c 'echo $$ >{}; exec sleep 60' >/dev/null 2>&1 & echo $$ >{}; wait",
        files.text("second"),
        files.text("pid")
    );
    let mut command = run_script(&urls, &unique("cli:grandchild"), &["--ttl", "1s"], &script);
    let mut running = Running::start(&mut command);
    let (first, second) = (files.await_pid("pid"), files.await_pid("second"));
    running.signal(Signal::KILL);
    running.finish();
    wait_until("the command is gone", SLACK, || !is_alive(first));
    assert!(is_alive(second));
    send(second, Signal::KILL);
}
