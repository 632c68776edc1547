//! `redlock status` and `redlock bench`.

use redlock_tests::harness::{own_servers, unique, unused_address};

use crate::support::{Finished, Running, SLACK, ms, node_options, redlock, shared, urls};

const OURS: &str = "0123456789abcdef0123456789abcdef01234567";

fn status(urls: &[String], resource: &str, options: &[&str]) -> Finished {
    let mut command = redlock();
    command.arg("status").args(node_options(urls)).args(["--resource", resource]).args(options);
    Finished::of(&mut command)
}

fn verdict(urls: &[String], resource: &str) -> (i32, String) {
    let finished = status(urls, resource, &[]);
    (finished.code, finished.stdout.lines().last().unwrap_or_default().to_owned())
}

#[test]
fn the_verdict_says_who_holds_it() {
    let (nodes, mut urls) = shared(3);
    let resource = unique("cli:status");
    assert_eq!(verdict(&urls, &resource), (0, format!("{resource} is free")));

    nodes[0].set_px(&resource, OURS, ms(60_000));
    assert_eq!(verdict(&urls, &resource), (0, format!("{resource} is free")));
    nodes[2].set_px(&resource, OURS, ms(50_000));
    let (code, held) = verdict(&urls, &resource);
    assert_eq!(code, 0);
    let (who, left) = held.split_once(": ").unwrap();
    assert_eq!(who, format!("{resource} is held by 01234567… at 2 of 3 nodes"));
    assert!(left == "50.0s left" || left.starts_with("49."), "{left}");
    let alone = verdict(&urls[..1], &resource).1;
    assert!(alone.starts_with(&format!("{resource} is held by 01234567… at 1 of 1 nodes: ")), "{alone}");

    nodes[1].set_px(&resource, "another", ms(60_000));
    nodes[2].set_px(&resource, "a third", ms(60_000));
    let (code, split) = verdict(&urls, &resource);
    assert_eq!((code, split), (0, format!("{resource} is split: nobody holds a majority of the 3 nodes")));

    urls[1] = format!("redis://{}", unused_address());
    let (code, unknown) = verdict(&urls, &resource);
    assert_eq!((code, unknown), (69, format!("{resource}: too few of the 3 nodes answer to tell")));
    for node in nodes {
        node.del(&resource);
    }
}

#[test]
fn tokens_are_whole_only_on_request_and_values_do_no_harm() {
    let (nodes, urls) = shared(1);
    let resource = unique("cli:values");
    nodes[0].set_px(&resource, OURS, ms(60_000));
    assert!(!status(&urls, &resource, &[]).stdout.contains(OURS));
    assert!(!status(&urls, &resource, &["--json"]).stdout.contains(OURS));
    assert!(status(&urls, &resource, &["--full"]).stdout.contains(OURS));
    nodes[0].set(&resource, "\u{1b}[2J\n\u{7f}");
    let shown = status(&urls, &resource, &["--full"]).stdout;
    assert!(shown.contains(r"\x1b[2J\n\x7f") && shown.contains("never ends"), "{shown}");
    nodes[0].del(&resource);
}

#[test]
fn json_is_for_programs() {
    let (nodes, mut urls) = shared(2);
    let resource = unique("cli:json");
    urls.push(format!("redis://{}", unused_address()));
    for node in &nodes {
        node.set_px(&resource, OURS, ms(60_000));
    }
    let text = status(&urls, &resource, &["--json", "--full"]).stdout;
    let view: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((view["verdict"].as_str(), view["holder"].as_str()), (Some("held"), Some(OURS)));
    assert_eq!((view["resource"].as_str(), view["held_at"].as_u64()), (Some(resource.as_str()), Some(2)));
    assert!((1..=60_000).contains(&view["left_ms"].as_u64().unwrap()), "{text}");
    assert_eq!(view["nodes"][0]["node"].as_str(), Some(nodes[0].address()));
    assert_eq!(view["nodes"][2]["error"].as_str(), Some("connection refused"));
    for node in nodes {
        node.del(&resource);
    }
}

#[test]
fn a_silent_node_and_a_key_of_another_kind_are_named() {
    let Some(nodes) = own_servers(3) else { return };
    nodes[0].freeze();
    redis_list(&nodes[1], "r");
    let finished = status(&urls(&nodes), "r", &["--timeout", "200ms"]);
    assert_eq!(finished.code, 69, "{finished:?}");
    assert!(finished.stdout.contains("no answer in 200ms"), "{finished:?}");
    assert!(finished.stdout.contains("WRONGTYPE"), "{finished:?}");
    assert!(finished.taken < ms(200) + SLACK, "{finished:?}");
}

fn redis_list(node: &redlock_tests::harness::Primary, key: &str) {
    redis::cmd("LPUSH").arg(key).arg("value").query::<i64>(&mut node.connection()).unwrap();
}

#[test]
fn watching_goes_on_until_nobody_watches() {
    let (nodes, urls) = shared(1);
    let resource = unique("cli:watch");
    let mut command = redlock();
    command.arg("status").args(node_options(&urls)).args(["--resource", &resource, "--json", "--watch"]);
    let mut running = Running::start(command.args(["--interval", "100ms"]));
    std::thread::sleep(ms(300));
    nodes[0].set_px(&resource, OURS, ms(60_000));
    std::thread::sleep(ms(300));
    assert!(running.is_running());
    running.signal(rustix::process::Signal::INT);
    let finished = running.finish();
    let lines: Vec<serde_json::Value> =
        finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() >= 3, "{lines:?}");
    assert_eq!(lines[0]["verdict"].as_str(), Some("free"));
    assert_eq!(lines[lines.len() - 1]["verdict"].as_str(), Some("held"));
    nodes[0].del(&resource);

    // A reader that has enough.
    let mut command = redlock();
    command.arg("status").args(node_options(&urls)).args(["--resource", &resource, "--watch"]);
    let (reader, writer) = std::io::pipe().unwrap();
    let mut running = Running::start(command.args(["--interval", "50ms"]).stdout(writer));
    drop(command);
    drop(reader);
    let finished = running.finish_within(ms(1_000) + SLACK);
    assert_eq!((finished.code, finished.stderr.as_str()), (0, ""));
}

#[test]
fn a_benchmark_measures_both_and_leaves_nothing() {
    for count in [1, 3] {
        let (nodes, urls) = shared(count);
        let mut command = redlock();
        command.arg("bench").args(node_options(&urls)).args(["--cycles", "50"]);
        let finished = Finished::of(&mut command);
        assert_eq!((finished.code, finished.stderr.as_str()), (0, ""));
        for word in ["50 cycles", "acquire", "release", "bare commands", "ratio", "p50", "p99", "per second"]
        {
            assert!(finished.stdout.contains(word), "{word}: {}", finished.stdout);
        }
        assert!(nodes.iter().all(|node| node.keys_matching("redlock-bench:*").is_empty()));
    }
}

#[test]
fn a_benchmark_without_a_quorum_is_69() {
    let (_, mut urls) = shared(1);
    urls.extend((0..2).map(|_| format!("redis://{}", unused_address())));
    let mut command = redlock();
    let finished = Finished::of(command.arg("bench").args(node_options(&urls)));
    assert_eq!(finished.code, 69, "{finished:?}");
    assert!(finished.stderr.contains("1 of 3 nodes can be reached; 2 are needed"), "{finished:?}");
}
