//! Many programs that want the same resource at the same time.

use std::process::Command;
use std::time::Duration;

use redlock_tests::harness::unique;

use crate::support::{Files, Finished, Running, run_script, shared};

/// The command itself sees to it that it is alone: making a directory fails if it is there.
fn witness(files: &Files) -> String {
    format!(
        "mkdir {inside} || {{ echo overlap >>{overlaps}; exit 50; }}; \
         echo $REDLOCK_FENCING_TOKEN >>{order}; sleep 0.01; rmdir {inside}",
        inside = files.text("inside"),
        overlaps = files.text("overlaps"),
        order = files.text("order"),
    )
}

/// Starts all of them and waits for all of them.
fn contend(commands: Vec<Command>) -> Vec<Finished> {
    let mut running: Vec<Running> =
        commands.into_iter().map(|mut command| Running::start(&mut command)).collect();
    running.iter_mut().map(|one| one.finish_within(Duration::from_secs(60))).collect()
}

fn patient(urls: &[String], resource: &str, fence: Option<&str>, script: &str, count: usize) -> Vec<Command> {
    let fence = fence.map(|key| ["--fence", key]);
    let options =
        [&["--wait", "60s", "--ttl", "10s"][..], fence.as_ref().map_or(&[], |fence| &fence[..])].concat();
    (0..count).map(|_| run_script(urls, resource, &options, script)).collect()
}

#[test]
fn fifty_contenders_on_three_nodes_never_run_at_the_same_time() {
    let (nodes, urls) = shared(3);
    let (resource, files) = (unique("cli:contended"), Files::new());
    let finished = contend(patient(&urls, &resource, None, &witness(&files), 50));
    let last = finished.iter().map(|one| one.taken).max().unwrap();
    println!("50 contenders on 3 nodes: the last one was done after {last:?}");
    assert!(finished.iter().all(|one| one.code == 0), "{finished:?}");
    assert_eq!(files.read("overlaps"), "");
    assert_eq!(files.read("order").lines().count(), 50);
    assert!(nodes.iter().all(|node| node.get(&resource).is_none()));
}

#[test]
fn contenders_on_one_node_run_in_the_order_of_their_fencing_tokens() {
    let (nodes, urls) = shared(1);
    let (resource, fence, files) = (unique("cli:fenced"), unique("cli:fenced:counter"), Files::new());
    let finished = contend(patient(&urls, &resource, Some(&fence), &witness(&files), 12));
    assert!(finished.iter().all(|one| one.code == 0), "{finished:?}");
    assert_eq!(files.read("overlaps"), "");
    let order: Vec<u64> = files.read("order").lines().map(|token| token.parse().unwrap()).collect();
    assert_eq!(order, (1..=12).collect::<Vec<u64>>());
    nodes[0].del(&fence);
}

#[test]
fn of_many_that_ask_once_one_runs() {
    let (_, urls) = shared(1);
    let (resource, files) = (unique("cli:cron"), Files::new());
    let script = format!("echo ran >>{}; sleep 1.5", files.text("ran"));
    let commands = (0..10).map(|_| run_script(&urls, &resource, &[], &script)).collect();
    let codes: Vec<i32> = contend(commands).iter().map(|one| one.code).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 75).count(), 9, "{codes:?}");
    assert_eq!(files.read("ran"), "ran\n");
}
