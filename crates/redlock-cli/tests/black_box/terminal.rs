//! The program on a terminal, alone and under a shell with job control.

use std::process::Command;
use std::thread;

use redlock_tests::harness::{unique, wait_until};
use rustix::process::Signal;

use crate::support::{Files, Pty, SLACK, is_anywhere, ms, run, run_script, shared};

// Commands that Ctrl-Z is to stop start no other program at that time: a shell that does so with vfork cannot be
// stopped while the new process is, whoever watches over it.

/// A shell with job control on a terminal of its own, in which `redlock` can be called.
fn shell() -> Pty {
    let mut command = Command::new("bash");
    command.args(["--norc", "--noprofile", "--noediting", "-i"]);
    command.env("PS1", "ready> ").env("REDLOCK", env!("CARGO_BIN_EXE_redlock"));
    let shell = Pty::start(&command);
    shell.expect("ready> ");
    shell
}

fn call(url: &str, resource: &str, options: &str, command: &str) -> String {
    format!("$REDLOCK run --node {url} --resource {resource} {options} -- {command}")
}

#[test]
fn the_command_reads_from_the_terminal_and_gets_its_keys() {
    let (nodes, urls) = shared(1);
    let resource = unique("cli:reads");
    let script = "trap 'exit 9' INT; read line; echo got:$line; while :; do sleep 0.05; done";
    let mut session = Pty::start(&run_script(&urls, &resource, &[], script));
    session.type_in("hello\n");
    session.expect("got:hello");
    session.type_in("\x03");
    assert_eq!(session.finish(), 9);
    assert!(!is_anywhere(&resource, &nodes));
}

/// A program that asks for the foreground in its first moment is in it.
#[test]
fn the_command_has_the_terminal_from_its_first_moment() {
    let (_, urls) = shared(1);
    for _ in 0..10 {
        let script = r#"set -- $(cat /proc/self/stat); [ "$5" = "$8" ] || exit 1"#;
        let mut session = Pty::start(&run_script(&urls, &unique("cli:first"), &[], script));
        assert_eq!(session.finish(), 0);
    }
}

#[test]
fn ctrl_z_stops_the_whole_job_and_fg_goes_on_with_it() {
    let (_, urls) = shared(1);
    let mut shell = shell();
    let script = "sh -c 'echo begun; read line; echo got:$line; exit 7'";
    shell.type_in(&format!("{}\n", call(&urls[0], &unique("cli:job"), "", script)));
    shell.expect("begun\r");
    shell.type_in("\x1a");
    shell.expect("Stopped");
    shell.expect("ready> ");
    shell.type_in("echo $((6*7))\n");
    shell.expect("42\r");
    shell.type_in("fg\n");
    shell.expect("$REDLOCK");
    shell.type_in("again\n");
    shell.expect("got:again");
    shell.expect("ready> ");
    shell.type_in("echo code=$?\n");
    shell.expect("code=7\r");
}

#[test]
fn a_job_that_was_stopped_for_too_long_is_ended_when_it_goes_on() {
    let (nodes, urls) = shared(1);
    let (resource, files) = (unique("cli:stopped-job"), Files::new());
    let mut shell = shell();
    let script =
        format!("sh -c 'trap \"echo >{}; exit 9\" TERM; sleep 60 & echo begun; wait'", files.text("term"));
    shell.type_in(&format!("{}\n", call(&urls[0], &resource, "--ttl 600ms --timeout 400ms", &script)));
    shell.expect("begun\r");
    shell.type_in("\x1a");
    shell.expect("ready> ");
    wait_until("the lease is over", ms(600) + SLACK, || !is_anywhere(&resource, &nodes));
    thread::sleep(ms(50));
    assert!(!files.exists("term"), "it is stopped");
    shell.type_in("fg\n");
    shell.expect("is lost: its validity ran out");
    shell.expect("ready> ");
    shell.type_in("echo code=$?\n");
    shell.expect("code=76\r");
    assert!(files.exists("term"));
}

/// In a pipeline the others may need the terminal too: the command gets it when it asks.
#[test]
fn a_command_in_a_pipeline_gets_the_terminal_when_it_reads_from_it() {
    let (_, urls) = shared(1);
    let mut shell = shell();
    let script = "sh -c 'echo begun; read line </dev/tty; echo got:$line'";
    shell.type_in(&format!("{} | cat\n", call(&urls[0], &unique("cli:pipeline"), "", script)));
    shell.expect("begun\r");
    shell.type_in("piped\n");
    shell.expect("got:piped");
    shell.expect("ready> ");
    // The shell has its terminal back.
    shell.type_in("echo $((6*7))\n");
    shell.expect("42\r");
}

#[test]
fn ctrl_c_in_a_pipeline_reaches_the_command() {
    let (nodes, urls) = shared(1);
    let resource = unique("cli:pipeline-int");
    let files = Files::new();
    let mut shell = shell();
    let script = format!(
        "sh -c 'trap \"echo >{}; exit 1\" INT; echo begun; while :; do sleep 0.02; done'",
        files.text("int")
    );
    shell.type_in(&format!("{} | (trap '' INT; cat)\n", call(&urls[0], &resource, "", &script)));
    shell.expect("begun\r");
    shell.type_in("\x03");
    shell.expect("ready> ");
    assert!(files.exists("int"));
    wait_until("the key is gone", SLACK, || !is_anywhere(&resource, &nodes));
}

#[test]
fn a_job_in_the_background_stops_when_it_wants_to_read() {
    let (_, urls) = shared(1);
    let mut shell = shell();
    let script = "sh -c 'echo begun; read line; echo got:$line'";
    shell.type_in(&format!("{} &\n", call(&urls[0], &unique("cli:background"), "", script)));
    shell.expect("begun\r");
    thread::sleep(ms(300));
    shell.type_in("jobs\n");
    shell.expect("Stopped");
    shell.type_in("fg\n");
    shell.expect("$REDLOCK");
    shell.type_in("later\n");
    shell.expect("got:later");
    shell.expect("ready> ");
}

/// The first program of a session has no shell that could make it go on.
#[test]
fn ctrl_z_does_not_stop_what_nobody_would_continue() {
    let (_, urls) = shared(1);
    let script = "echo begun; exec sleep 0.5";
    let mut session = Pty::start(&run_script(&urls, &unique("cli:leader"), &[], script));
    session.expect("begun\r");
    session.type_in("\x1a");
    assert_eq!(session.finish(), 0);
}

#[test]
fn ctrl_c_after_a_loss_kills() {
    let Some(nodes) = redlock_tests::harness::own_servers(1) else { return };
    let script = "trap '' TERM INT; echo begun; while :; do sleep 0.05; done";
    let options = ["--ttl", "500ms", "--timeout", "350ms", "--grace", "60s"];
    let mut session = Pty::start(&run_script(&crate::support::urls(&nodes), "r", &options, script));
    session.expect("begun\r");
    nodes[0].kill();
    session.expect("is lost");
    session.type_in("\x03");
    assert_eq!(session.finish(), 76);
}

#[test]
fn waiting_shows_a_line_that_goes_when_it_is_over() {
    let (nodes, urls) = shared(1);
    let resource = unique("cli:shown");
    nodes[0].set_px(&resource, "0123456789abcdef", ms(60_000));
    let mut session = Pty::start(run(&urls, &resource, &["--wait", "forever"]).args(["echo", "my turn"]));
    let line = format!("redlock: waiting for {resource} since 0s: held by 01234567…, ");
    session.expect(&line);
    session.expect("since 1s");
    nodes[0].del(&resource);
    let before = session.expect("my turn");
    assert!(before.ends_with("\r\u{1b}[K"), "{before:?}");
    assert_eq!(session.finish(), 0);
}

#[test]
fn on_a_terminal_it_says_that_a_resource_is_taken() {
    let (nodes, urls) = shared(1);
    let resource = unique("cli:said");
    nodes[0].set_px(&resource, "somebody else", ms(60_000));
    let mut session = Pty::start(run(&urls, &resource, &[]).arg("true"));
    session.expect("taken by another");
    assert_eq!(session.finish(), 75);
}

#[test]
fn a_hang_up_ends_the_command() {
    let (nodes, urls) = shared(1);
    let (resource, files) = (unique("cli:hangup"), Files::new());
    let script =
        format!("trap 'echo >{}; exit 1' HUP; echo begun; while :; do sleep 0.02; done", files.text("hup"));
    let mut session = Pty::start(&run_script(&urls, &resource, &[], &script));
    session.expect("begun\r");
    crate::support::send(session.pid(), Signal::HUP);
    assert_eq!(session.finish(), 1);
    assert!(files.exists("hup") && !is_anywhere(&resource, &nodes));
}

#[test]
fn a_watched_status_is_a_table_that_changes_in_place() {
    let (nodes, urls) = shared(1);
    let resource = unique("cli:live");
    let mut command = crate::support::redlock();
    command.arg("status").args(crate::support::node_options(&urls)).args(["--resource", &resource]);
    let mut session = Pty::start(command.args(["--watch", "--interval", "50ms"]));
    session.expect("\u{1b}[Hnode");
    session.expect("is free");
    nodes[0].set_px(&resource, "0123456789abcdef", ms(60_000));
    session.expect("is held by 01234567…");
    session.expect("\u{1b}[J\u{1b}[Hnode");
    session.type_in("\x03");
    // Nobody's lease depends on it: it dies of the signal like any other program.
    session.finish();
    nodes[0].del(&resource);
}
