//! What the command is given: its streams, its environment, its lease.

use std::io::Write as _;
use std::process::Stdio;

use redlock_tests::harness::{Server, may_own_servers, unique};

use crate::support::{Files, Finished, Running, is_anywhere, redlock, run, run_script, shared};

#[test]
fn standard_streams_are_the_commands() {
    let (_, urls) = shared(1);
    let mut command = run_script(&urls, &unique("cli:streams"), &[], "cat; echo two >&2");
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"one\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"one\n"[..], &b"two\n"[..]));
}

#[test]
fn arguments_reach_the_command_as_they_are() {
    let (_, urls) = shared(1);
    let mut command = run(&urls, &unique("cli:arguments"), &[]);
    command.args(["printf", "[%s]", "", "a b", "--wait", "-v", "*", "--", "ü"]);
    let finished = Finished::of(&mut command);
    assert_eq!((finished.code, finished.stdout.as_str()), (0, "[][a b][--wait][-v][*][--][ü]"));
}

#[test]
fn the_command_knows_its_lease() {
    let (nodes, urls) = shared(1);
    let (resource, fence) = (unique("cli:environment"), unique("cli:fence"));
    let files = Files::new();
    let script = format!(
        "echo $REDLOCK_RESOURCE $REDLOCK_TOKEN $REDLOCK_FENCING_TOKEN >{out}; \
         while [ ! -e {seen} ]; do sleep 0.02; done",
        out = files.text("environment"),
        seen = files.text("seen"),
    );
    for round in 1..=2 {
        let mut running = Running::start(&mut run_script(&urls, &resource, &["--fence", &fence], &script));
        let told = files.await_line("environment");
        let held = nodes[0].get(&resource).unwrap();
        assert_eq!(told, format!("{resource} {held} {round}"));
        assert_eq!(held.len(), 40);
        std::fs::write(files.path("seen"), "").unwrap();
        assert_eq!(running.finish().code, 0);
        for name in ["environment", "seen"] {
            std::fs::remove_file(files.path(name)).unwrap();
        }
    }
    assert_eq!(nodes[0].get(&fence).as_deref(), Some("2"));
    assert!(!is_anywhere(&resource, &nodes));
    nodes[0].del(&fence);
}

#[test]
fn a_fencing_token_of_another_lease_is_not_passed_on() {
    let (_, urls) = shared(1);
    let mut command = run_script(&urls, &unique("cli:stale"), &[], "echo [$REDLOCK_FENCING_TOKEN]");
    let finished = Finished::of(command.env("REDLOCK_FENCING_TOKEN", "41"));
    assert_eq!(finished.stdout, "[]\n");
}

#[test]
fn nodes_and_password_come_from_the_environment_or_a_file() {
    if !may_own_servers() {
        return;
    }
    let node = Server::builder().password("sesame").start();
    let files = Files::new();
    std::fs::write(files.path("password"), "sesame\n").unwrap();
    std::fs::write(files.path("wrong"), "open\n").unwrap();
    let plain = format!("redis://{}", node.address());
    let script = ["sh", "-c", "echo [$REDLOCK_PASSWORD][$REDLOCK_NODES]"];

    let mut command = redlock();
    command.args(["run", "--resource", "r", "--"]).args(script);
    let finished = Finished::of(command.env("REDLOCK_NODES", &plain).env("REDLOCK_PASSWORD", "sesame"));
    assert_eq!((finished.code, finished.stdout), (0, format!("[][{plain}]\n")), "{}", finished.stderr);

    let mut command = redlock();
    command.args(["run", "--resource", "r", "--"]).args(script);
    let finished = Finished::of(command.env("REDLOCK_NODES", node.url()));
    assert_eq!((finished.code, finished.stdout.as_str()), (0, "[][]\n"), "{}", finished.stderr);

    for (file, code) in [("password", 0), ("wrong", 69)] {
        let mut command = redlock();
        command.args([
            "run",
            "--node",
            &plain,
            "--resource",
            "r",
            "--password-file",
            &files.text(file),
            "--",
        ]);
        let finished = Finished::of(command.args(script));
        assert_eq!(finished.code, code, "{finished:?}");
        assert!(!finished.stderr.contains("open") && !finished.stderr.contains("sesame"), "{finished:?}");
    }
}

#[test]
fn a_verbose_run_tells_its_story() {
    let (_, urls) = shared(1);
    let resource = unique("cli:story");
    let options = ["--ttl", "2s", "--renew", "100ms", "--verbose"];
    let finished = Finished::of(&mut run_script(&urls, &resource, &options, "sleep 0.4; exit 4"));
    assert_eq!(finished.code, 4);
    let acquired = format!("redlock: acquired {resource}, valid for ");
    let released = format!("redlock: released {resource}");
    let mut rest = finished.stderr.as_str();
    for word in [&acquired, "as process", "renewed, valid for ", "renewed", "exit code is 4", &released] {
        rest = rest.split_once(word).unwrap_or_else(|| panic!("{word}: {}", finished.stderr)).1;
    }
}
