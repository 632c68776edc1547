//! Signals, to the program and from it to its command.

use redlock_tests::harness::{own_servers, unique};
use rustix::process::Signal;

use crate::support::{Files, Running, SLACK, is_alive, is_anywhere, ms, run, run_script, shared, urls};

#[test]
fn signals_go_to_the_whole_group_of_the_command() {
    let (nodes, urls) = shared(1);
    // Shells start what they put into the background deaf to SIGINT and SIGQUIT.
    for (name, signal) in [("TERM", Signal::TERM), ("HUP", Signal::HUP), ("USR1", Signal::USR1)] {
        let resource = unique("cli:signals");
        let files = Files::new();
        // The second process would keep the first one waiting if it got no signal of its own.
        let script = format!(
            "trap 'wait; exit 9' {name}; \
             sh -c 'trap \"exit\" {name}; echo $$ >{inner}; while :; do sleep 0.05; done' & \
             echo $! >{outer}; while :; do wait; done",
            inner = files.text("inner"),
            outer = files.text("outer"),
        );
        let mut running = Running::start(&mut run_script(&urls, &resource, &[], &script));
        let inner = files.await_pid("inner");
        files.await_pid("outer");
        running.signal(signal);
        let finished = running.finish();
        assert_eq!(finished.code, 9, "{name}: {finished:?}");
        assert!(!finished.stderr.contains("redlock"), "{name}: {finished:?}");
        assert!(!is_alive(inner), "{name}");
        assert!(!is_anywhere(&resource, &nodes), "{name}");
    }
}

#[test]
fn a_command_may_do_as_it_likes_with_a_signal() {
    let (nodes, urls) = shared(1);
    for (name, signal) in [("INT", Signal::INT), ("QUIT", Signal::QUIT), ("TERM", Signal::TERM)] {
        let resource = unique("cli:handled");
        let files = Files::new();
        let pid = files.text("pid");
        let script = format!("trap 'exit 11' {name}; echo $$ >{pid}; while :; do sleep 0.02; done");
        let mut running = Running::start(&mut run_script(&urls, &resource, &[], &script));
        files.await_pid("pid");
        running.signal(signal);
        let finished = running.finish();
        assert_eq!((finished.code, finished.stderr.contains("redlock")), (11, false), "{name}: {finished:?}");
        assert!(!is_anywhere(&resource, &nodes), "{name}");
    }
}

#[test]
fn a_command_that_dies_of_a_signal_gives_its_code_and_is_released() {
    let (nodes, urls) = shared(3);
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129), (Signal::USR1, 138)] {
        let resource = unique("cli:dies");
        let files = Files::new();
        let script = format!("echo $$ >{}; exec sleep 60", files.text("pid"));
        let mut running = Running::start(&mut run_script(&urls, &resource, &["--ttl", "60s"], &script));
        files.await_pid("pid");
        running.signal(signal);
        assert_eq!(running.finish().code, code);
        assert!(!is_anywhere(&resource, &nodes));
    }
}

#[test]
fn waiting_ends_at_once() {
    let (nodes, urls) = shared(3);
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let resource = unique("cli:interrupted");
        for node in &nodes {
            node.set_px(&resource, "somebody else", ms(60_000));
        }
        let mut running = Running::start(run(&urls, &resource, &["--wait", "forever"]).arg("true"));
        std::thread::sleep(ms(300));
        assert!(running.is_running());
        running.signal(signal);
        let finished = running.finish_within(ms(200) + SLACK);
        assert_eq!((finished.code, finished.stderr.as_str()), (code, ""));
    }
}

#[test]
fn waiting_for_silent_nodes_ends_within_their_timeout_and_leaves_nothing() {
    let Some(nodes) = own_servers(3) else { return };
    let resource = unique("cli:silent");
    // One grants, and no quorum can.
    nodes[1].freeze();
    nodes[2].freeze();
    let mut running = Running::start(run(&urls(&nodes), &resource, &["--wait", "forever"]).arg("true"));
    std::thread::sleep(ms(300));
    running.signal(Signal::TERM);
    assert_eq!(running.finish_within(ms(500) + SLACK).code, 143);
    assert_eq!(nodes[0].get(&resource), None);
}

#[test]
fn the_second_interrupt_kills() {
    let (nodes, urls) = shared(1);
    let resource = unique("cli:second");
    let files = Files::new();
    let script = format!(
        "trap 'echo >>{}' INT; echo $$ >{}; while :; do sleep 0.05; done",
        files.text("int"),
        files.text("pid")
    );
    let mut running = Running::start(&mut run_script(&urls, &resource, &[], &script));
    files.await_pid("pid");
    running.signal(Signal::INT);
    redlock_tests::harness::wait_until("the command has seen it", ms(5_000), || files.exists("int"));
    assert!(running.is_running());
    running.signal(Signal::INT);
    let finished = running.finish_within(ms(300) + SLACK);
    assert_eq!((finished.code, finished.stderr.as_str()), (137, ""));
    assert!(!is_anywhere(&resource, &nodes));
}

#[test]
#[cfg(target_os = "linux")]
fn a_signal_that_is_ignored_from_the_start_stays_so() {
    let (_, urls) = shared(1);
    let files = Files::new();
    let script = format!("echo $$ >{}; sleep 0.5; exit 3", files.text("pid"));
    // What nohup does.
    let inner = run_script(&urls, &unique("cli:nohup"), &[], &script);
    let mut command = std::process::Command::new("sh");
    // Without the `env` around it, which would undo that.
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).args(inner.get_args().skip(1));
    let mut running = Running::start(&mut command);
    let child = files.await_pid("pid");
    running.signal(Signal::HUP);
    crate::support::send(child, Signal::HUP);
    assert_eq!(running.finish().code, 3);
}
