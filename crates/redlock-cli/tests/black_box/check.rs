//! `redlock check`.

use redlock_tests::harness::{Server, may_own_servers, own_servers, unused_address};
use serde_json::Value;

use crate::support::{Finished, node_options, redlock, urls};

fn check(urls: &[String], options: &[&str]) -> Finished {
    let mut command = redlock();
    command.arg("check").args(node_options(urls)).args(options);
    Finished::of(&mut command)
}

fn durable() -> Server {
    Server::builder().appendonly(true).start()
}

/// A ttl that a server has outlived two seconds after its start, although its uptime may be off by one.
const OLD_ENOUGH: &[&str] = &["--ttl", "100ms"];

#[test]
fn sound_nodes_are_0() {
    if !may_own_servers() {
        return;
    }
    let nodes = [durable(), durable(), durable()];
    std::thread::sleep(crate::support::ms(2_200));
    let finished = check(&urls(&nodes), OLD_ENOUGH);
    assert_eq!((finished.code, finished.stdout.as_str()), (0, "all 3 nodes are sound\n"), "{finished:?}");
    let alone = check(&urls(&nodes[..1]), OLD_ENOUGH);
    assert_eq!((alone.code, alone.stdout.as_str()), (0, "the node is sound\n"), "{alone:?}");
}

#[test]
fn a_node_that_forgets_is_a_warning() {
    let Some(nodes) = own_servers(1) else { return };
    let finished = check(&urls(&nodes), &[]);
    assert_eq!((finished.code, finished.stderr.as_str()), (1, ""), "{finished:?}");
    let lines: Vec<&str> = finished.stdout.lines().collect();
    assert!(lines.iter().all(|line| line.starts_with("warning: node 127.0.0.1:")), "{lines:?}");
    assert!(
        finished.stdout.contains("forgets all locks when it restarts; set appendonly yes"),
        "{finished:?}"
    );
    assert!(!finished.stdout.contains('\u{1b}'), "{finished:?}");
}

#[test]
fn replicas_the_same_server_twice_and_too_few_reachable_nodes_are_errors() {
    if !may_own_servers() {
        return;
    }
    let primary = durable();
    let replica = durable();
    replica.follow(&primary);
    let other = durable();
    let urls = [
        primary.url(),
        format!("redis://localhost:{}/", primary.port()),
        replica.url(),
        format!("redis://{}/", unused_address()),
        other.url(),
    ];
    let finished = check(&urls, &["--json"]);
    assert_eq!(finished.code, 2, "{finished:?}");
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(report["verdict"], "errors");
    let findings = report["findings"].as_array().unwrap();
    // One unreachable node of five is what the others are for.
    for (kind, severity, count) in
        [("same-server", "error", 2), ("replica", "error", 1), ("unreachable", "warning", 1)]
    {
        let nodes: usize = findings
            .iter()
            .filter(|finding| finding["kind"] == kind && finding["severity"] == severity)
            .map(|finding| finding["nodes"].as_array().unwrap().len())
            .sum();
        assert_eq!(nodes, count, "{kind}: {findings:?}");
    }
    assert!(findings.iter().all(|finding| !finding["remedy"].as_str().unwrap().is_empty()));
    assert_eq!(report["nodes"][2]["role"], "replica");
    assert!(report["nodes"][3]["error"].as_str().unwrap().contains("refused"), "{report}");

    let alone = check(&[format!("redis://{}/", unused_address())], &[]);
    assert_eq!(alone.code, 2, "{alone:?}");
    assert!(alone.stdout.starts_with("error: node 127.0.0.1:"), "{alone:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn colours_are_for_terminals() {
    let Some(nodes) = own_servers(1) else { return };
    let mut command = redlock();
    command.arg("check").args(node_options(&urls(&nodes)));
    let mut session = crate::support::Pty::start(&command);
    session.expect("\u{1b}[1;33mwarning\u{1b}[0m: node");
    assert_eq!(session.finish(), 1);
    let mut session = crate::support::Pty::start(command.env("NO_COLOR", "1"));
    session.expect("warning: node");
    assert_eq!(session.finish(), 1);
}
