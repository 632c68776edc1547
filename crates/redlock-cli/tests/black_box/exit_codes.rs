//! Every exit code, and what the program says with it.

use redlock_tests::harness::{unique, unused_address};

use crate::support::{Files, Finished, SLACK, is_anywhere, ms, redlock, run, run_script, shared};

#[test]
fn the_commands_own_end_is_passed_on() {
    let (nodes, urls) = shared(1);
    for (script, code) in [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exit 75", 75),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
        // A real-time signal, which has a number and no name.
        ("kill -40 $$", 168),
    ] {
        let resource = unique("cli:own-end");
        let finished = Finished::of(&mut run_script(&urls, &resource, &[], script));
        assert_eq!(finished.code, code, "{script}: {finished:?}");
        assert_eq!(finished.stderr, "", "{script}");
        assert!(!is_anywhere(&resource, &nodes), "{script}: the key is left");
    }
}

#[test]
fn a_taken_resource_is_75_and_the_command_does_not_run() {
    for count in [1, 3] {
        let (nodes, urls) = shared(count);
        let resource = unique("cli:taken");
        for node in &nodes {
            node.set_px(&resource, "somebody else", ms(60_000));
        }
        let files = Files::new();
        let script = format!("echo ran >{}", files.text("ran"));

        let once = Finished::of(&mut run_script(&urls, &resource, &[], &script));
        assert_eq!((once.code, once.stderr.as_str()), (75, ""));
        let patient = Finished::of(&mut run_script(&urls, &resource, &["--wait", "400ms", "-v"], &script));
        assert_eq!(patient.code, 75);
        assert!(patient.taken >= ms(250), "{patient:?}");
        assert!(patient.stderr.contains("waiting for") && patient.stderr.contains("somebody"), "{patient:?}");
        assert!(patient.stderr.contains("waited in vain"), "{patient:?}");
        assert!(!files.exists("ran"));
        assert!(nodes.iter().all(|node| node.get(&resource).as_deref() == Some("somebody else")));
    }
}

#[test]
fn waiting_ends_with_the_lease_when_it_is_free() {
    let (nodes, urls) = shared(3);
    for (wait, left) in [("30s", 500), ("forever", 700)] {
        let resource = unique("cli:waiting");
        for node in &nodes {
            node.set_px(&resource, "somebody else", ms(left));
        }
        let finished = Finished::of(run(&urls, &resource, &["--wait", wait]).arg("true"));
        assert_eq!(finished.code, 0, "{finished:?}");
        assert!(finished.taken >= ms(left) - ms(100), "{finished:?}");
        assert!(finished.taken < ms(left + 400) + SLACK, "{finished:?}");
    }
}

#[test]
fn too_few_reachable_nodes_are_69() {
    let (nodes, urls) = shared(1);
    let nobody = || format!("redis://{}/", unused_address());
    let files = Files::new();
    let script = format!("echo ran >{}", files.text("ran"));

    let alone = Finished::of(&mut run_script(&[nobody()], "r", &[], &script));
    assert_eq!(alone.code, 69);
    assert!(
        alone.stderr.contains("too few nodes reachable") && alone.stderr.contains("refused"),
        "{alone:?}"
    );
    let waited = Finished::of(&mut run_script(&[nobody()], "r", &["--wait", "300ms"], &script));
    assert_eq!(waited.code, 69);
    assert!(waited.taken >= ms(200), "{waited:?}");

    // One of three has it, and two are down: that it is taken there is not what stands in the way.
    let resource = unique("cli:unreachable");
    nodes[0].set_px(&resource, "somebody else", ms(60_000));
    let three = [urls[0].clone(), nobody(), nobody()];
    let minority = Finished::of(&mut run_script(&three, &resource, &[], &script));
    assert_eq!(minority.code, 69, "{minority:?}");
    assert!(!files.exists("ran"));
}

#[test]
fn one_node_down_of_three_is_no_obstacle() {
    let (nodes, mut urls) = shared(2);
    urls.push(format!("redis://{}/", unused_address()));
    let resource = unique("cli:minority-down");
    let finished = Finished::of(run(&urls, &resource, &[]).arg("true"));
    assert_eq!((finished.code, finished.stderr.as_str()), (0, ""));
    assert!(!is_anywhere(&resource, &nodes));
}

#[test]
fn mistakes_are_64_and_say_what_to_write() {
    let mistakes: &[(&[&str], &str)] = &[
        (&[], "Usage:"),
        (&["walk"], "walk"),
        (&["run"], "--resource <NAME>"),
        (&["run", "--resource", "r", "--", "true"], "--node redis://HOST:PORT"),
        (&["run", "--resource", "r", "--node", "redis://a"], "<COMMAND>"),
        (&["run", "--resource", "r", "--node", "redis://a", "true"], "-- <COMMAND>..."),
        (&["run", "--resource", "", "--node", "redis://a", "--", "true"], "--resource is empty"),
        (&["run", "--resource", "r", "--node", "a:6379", "--", "true"], "must begin with redis://"),
        (&["run", "--resource", "r", "--node", "redis://a:b", "--", "true"], "did not parse"),
        (&["run", "--resource", "r", "--node", "redis://:pw@a", "--", "true"], "--password-file"),
        (
            &["run", "--resource", "r", "--node", "redis://a", "--node", "redis://b", "--", "true"],
            "odd number",
        ),
        (&["run", "--resource", "r", "--node", "redis://a", "--ttl", "30", "--", "true"], "write 30s"),
        (&["run", "--resource", "r", "--node", "redis://a", "--ttl", "2ms", "--", "true"], "at least 4ms"),
        (
            &["run", "--resource", "r", "--node", "redis://a", "--renew", "30s", "--", "true"],
            "--renew 30s is too long",
        ),
        (&["run", "--resource", "r", "--node", "redis://a", "--wait", "ever", "--", "true"], "or forever"),
        (&["run", "--resource", "r", "--node", "redis://a", "--fence", "r", "--", "true"], "another key"),
        (
            &["run", "--resource", "r", "--node", "redis://a", "--on-lost", "stop", "--", "true"],
            "term, kill, warn",
        ),
        (&["run", "--resource", "r", "--node", "redis://a", "--timeout", "0", "--", "true"], "--timeout"),
        (
            &["run", "--resource", "r", "--node", "redis://a", "--password-file", "/no/such", "--", "true"],
            "readable",
        ),
        (&["status", "--node", "redis://a"], "--resource <NAME>"),
        (&["status", "--resource", "r"], "REDLOCK_NODES"),
        (&["check"], "REDLOCK_NODES"),
        (&["bench", "--node", "redis://a", "--cycles", "0"], "1..=1000000"),
    ];
    for (words, advice) in mistakes {
        let finished = Finished::of(redlock().args(*words));
        assert_eq!(finished.code, 64, "{words:?}: {finished:?}");
        assert!(finished.stderr.contains(advice), "{words:?}: {finished:?}");
        assert_eq!(finished.stdout, "", "{words:?}");
    }
    let fenced = ["--node", "redis://a", "--node", "redis://b", "--node", "redis://c", "--fence", "f"];
    let finished = Finished::of(redlock().args(["run", "--resource", "r"]).args(fenced).args(["--", "true"]));
    assert_eq!(finished.code, 64);
    assert!(finished.stderr.contains("leave it out"), "{finished:?}");
}

#[test]
fn a_command_that_cannot_run_is_126_or_127_and_the_lease_is_released() {
    let (nodes, urls) = shared(3);
    let files = Files::new();
    std::fs::write(files.path("text"), "not a program").unwrap();
    let text = files.text("text");
    for (command, code, says) in [
        ("no-such-command-anywhere", 127, "no-such-command-anywhere: command not found"),
        ("/no/such/directory/command", 127, "command not found"),
        (text.as_str(), 126, "not executable"),
        ("/", 126, "not executable"),
        ("", 127, "command not found"),
    ] {
        let resource = unique("cli:no-command");
        let finished = Finished::of(run(&urls, &resource, &["--ttl", "60s"]).arg(command));
        assert_eq!(finished.code, code, "{command}: {finished:?}");
        assert!(finished.stderr.contains(says), "{command}: {finished:?}");
        assert_eq!(finished.stderr.lines().count(), 1, "{command}: {finished:?}");
        assert!(!is_anywhere(&resource, &nodes), "{command}: the key is left");
    }
}

#[test]
fn help_is_no_mistake() {
    for words in [&["--help"][..], &["run", "--help"], &["-h"], &["--version"]] {
        let finished = Finished::of(redlock().args(words));
        assert_eq!((finished.code, finished.stderr.as_str()), (0, ""), "{words:?}");
        assert!(finished.stdout.contains("redlock") || finished.stdout.contains("lease"), "{words:?}");
    }
    let help = Finished::of(redlock().args(["run", "--help"])).stdout;
    for code in ["64", "69", "70", "75", "76", "126", "127", "128"] {
        assert!(help.contains(code), "{code}: {help}");
    }
}
