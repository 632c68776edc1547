//! What the facts mean for leases. Pure: facts in, findings out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use redlock_core::{Cause, CauseKind, Config, quorum};

use super::facts::{NodeFacts, Role, ServerFacts};
use super::finding::{Finding, FindingKind, Severity};

pub(super) fn judge(nodes: &[NodeFacts], config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    reach(nodes, &mut findings);
    let servers: Vec<(&Arc<str>, &ServerFacts)> =
        nodes.iter().filter_map(|node| Some((&node.name, node.server.as_ref().ok()?.as_ref()?))).collect();
    for (name, server) in &servers {
        alone(name, server, config, &mut findings);
    }
    if nodes.len() > 1 {
        together(&servers, config, &mut findings);
    }
    findings
}

/// Who can be reached. A minority that cannot is what Redlock is for; more is the end of it.
fn reach(nodes: &[NodeFacts], findings: &mut Vec<Finding>) {
    let answers = |cause: &Cause| cause.code() == Some("NOPERM");
    let gone = nodes.iter().filter(|node| node.server.as_ref().is_err_and(|cause| !answers(cause))).count();
    let severity = if nodes.len() - gone < quorum(nodes.len()) { Severity::Error } else { Severity::Warning };
    for node in nodes {
        let Err(cause) = &node.server else { continue };
        let cause = cause.clone();
        let finding = if answers(&cause) {
            let kind = FindingKind::Unchecked { cause };
            Finding { severity: Severity::Warning, nodes: vec![Arc::clone(&node.name)], kind }
        } else {
            // A wrong password will not heal by itself, whatever the number of nodes.
            let rejected =
                cause.kind() == CauseKind::Rejected || matches!(cause.code(), Some("NOAUTH" | "WRONGPASS"));
            let severity = if rejected { Severity::Error } else { severity };
            Finding {
                severity,
                nodes: vec![Arc::clone(&node.name)],
                kind: FindingKind::Unreachable { cause },
            }
        };
        findings.push(finding);
    }
}

/// What is wrong with one server, whatever the others are.
fn alone(name: &Arc<str>, server: &ServerFacts, config: &Config, findings: &mut Vec<Finding>) {
    let mut add = |severity, kind| findings.push(Finding { severity, nodes: vec![Arc::clone(name)], kind });
    if server.role == Role::Replica {
        add(Severity::Error, FindingKind::Replica);
    }
    let policy = &server.maxmemory_policy;
    if !policy.is_empty() && policy != "noeviction" {
        let limited = server.maxmemory > 0;
        let severity = if limited { Severity::Error } else { Severity::Warning };
        add(severity, FindingKind::MayEvict { policy: policy.clone(), limited });
    }
    if !server.appendonly {
        let snapshots = server.snapshots.unwrap_or(true);
        add(Severity::Warning, FindingKind::ForgetsOnRestart { snapshots });
    }
    match &server.appendfsync {
        Some(appendfsync) if server.appendonly && appendfsync != "always" => {
            add(Severity::Warning, FindingKind::ForgetsOnCrash { appendfsync: appendfsync.clone() });
        }
        Some(_) | None => {}
    }
    let ttl = config.ttl().as_duration();
    // It is the difference of two readings in whole seconds, and may be almost one too long.
    if server.uptime.saturating_sub(Duration::from_secs(1)) < ttl {
        add(Severity::Warning, FindingKind::Young { uptime: server.uptime, ttl });
    }
}

/// What is wrong with servers that are to be independent of each other.
fn together(servers: &[(&Arc<str>, &ServerFacts)], config: &Config, findings: &mut Vec<Finding>) {
    let mut by_run: BTreeMap<&str, Vec<Arc<str>>> = BTreeMap::new();
    for (name, server) in servers.iter().filter(|(_, server)| !server.run_id.is_empty()) {
        by_run.entry(&server.run_id).or_default().push(Arc::clone(name));
    }
    for nodes in by_run.into_values().filter(|nodes| nodes.len() > 1) {
        findings.push(Finding { severity: Severity::Error, nodes, kind: FindingKind::SameServer });
    }

    // Two servers are in one cluster if each other's members overlap. Which is transitive, so the first
    // server of each cluster can stand for it.
    let mut seen: Vec<(&ServerFacts, Vec<Arc<str>>)> = Vec::new();
    for (name, server) in servers {
        match seen.iter_mut().find(|(first, _)| !first.cluster.is_disjoint(&server.cluster)) {
            Some((_, nodes)) => nodes.push(Arc::clone(name)),
            None => seen.push((server, vec![Arc::clone(name)])),
        }
    }
    for (_, nodes) in seen.into_iter().filter(|(_, nodes)| nodes.len() > 1) {
        findings.push(Finding { severity: Severity::Error, nodes, kind: FindingKind::SameCluster });
    }

    let allowed = config.drift().drift(config.ttl());
    let by_clock = |a: &&(&Arc<str>, &ServerFacts), b: &&(&Arc<str>, &ServerFacts)| a.1.clock.cmp(&b.1.clock);
    let (slowest, fastest) = (servers.iter().min_by(by_clock), servers.iter().max_by(by_clock));
    if let (Some((slow, behind)), Some((fast, ahead))) = (slowest, fastest) {
        // What the measurement itself may be off by is in nobody's disfavour.
        let uncertain: Duration = (behind.round_trip + ahead.round_trip) / 2;
        let by = (ahead.clock - behind.clock).saturating_sub(uncertain);
        if by > allowed {
            let nodes = vec![Arc::clone(slow), Arc::clone(fast)];
            let kind = FindingKind::ClocksDiffer { by, allowed };
            findings.push(Finding { severity: Severity::Warning, nodes, kind });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound(name: &str) -> NodeFacts {
        let server = ServerFacts {
            run_id: format!("run of {name}"),
            version: "redis 7.0.15".to_owned(),
            uptime: Duration::from_secs(1_000),
            appendonly: true,
            maxmemory_policy: "noeviction".to_owned(),
            clock: Duration::from_secs(1_000_000),
            ..ServerFacts::default()
        };
        NodeFacts { name: name.into(), server: Ok(Some(server)) }
    }

    fn change(node: &mut NodeFacts, change: impl FnOnce(&mut ServerFacts)) {
        change(node.server.as_mut().unwrap().as_mut().unwrap());
    }

    fn found(nodes: &[NodeFacts]) -> Vec<(Severity, String)> {
        judge(nodes, &Config::default())
            .iter()
            .map(|finding| (finding.severity, finding.to_string()))
            .collect()
    }

    #[test]
    fn three_sound_servers_give_nothing_to_say() {
        assert_eq!(found(&["a", "b", "c"].map(sound)), []);
        assert_eq!(found(&[sound("a")]), []);
        let memory = NodeFacts { name: "memory".into(), server: Ok(None) };
        assert_eq!(found(&[memory]), []);
    }

    #[test]
    fn each_mistake_is_found_and_named() {
        type Mistake = fn(&mut [NodeFacts; 3]);
        let cases: [(Mistake, Severity, &str); 10] = [
            (
                |nodes| change(&mut nodes[1], |server| server.appendfsync = Some("everysec".into())),
                Severity::Warning,
                "node b: forgets its last locks in a crash or power cut (appendfsync everysec)",
            ),
            (
                |nodes| change(&mut nodes[1], |server| server.role = Role::Replica),
                Severity::Error,
                "node b: is a replica; name its primary",
            ),
            (
                |nodes| change(&mut nodes[2], |server| server.run_id = "run of a".into()),
                Severity::Error,
                "nodes a, c: are one and the same server; name each server once",
            ),
            (
                |nodes| {
                    change(&mut nodes[0], |server| server.cluster = ["1".into(), "2".into()].into());
                    change(&mut nodes[1], |server| server.cluster = ["2".into()].into());
                },
                Severity::Error,
                "nodes a, b: are parts of one Redis Cluster",
            ),
            (
                |nodes| {
                    change(&mut nodes[0], |server| {
                        server.maxmemory_policy = "allkeys-lru".into();
                        server.maxmemory = 1;
                    });
                },
                Severity::Error,
                "node a: may evict locks (maxmemory-policy allkeys-lru)",
            ),
            (
                |nodes| change(&mut nodes[0], |server| server.maxmemory_policy = "volatile-ttl".into()),
                Severity::Warning,
                "node a: would evict locks",
            ),
            (
                |nodes| {
                    change(&mut nodes[0], |server| {
                        server.appendonly = false;
                        server.snapshots = Some(false);
                    });
                },
                Severity::Warning,
                "node a: forgets all locks",
            ),
            (
                |nodes| change(&mut nodes[0], |server| server.clock += Duration::from_secs(1)),
                Severity::Warning,
                "nodes b, a: have clocks that differ by 1s, where the drift allows for 302ms",
            ),
            (
                |nodes| change(&mut nodes[0], |server| server.uptime = Duration::from_secs(3)),
                Severity::Warning,
                "node a: was started 3s ago, less than the ttl of 30s",
            ),
            (
                |nodes| nodes[0].server = Err(Cause::new(CauseKind::Unreachable)),
                Severity::Warning,
                "node a: cannot be used: unreachable; check that the server runs",
            ),
        ];
        for (mistake, severity, text) in cases {
            let mut nodes = ["a", "b", "c"].map(sound);
            mistake(&mut nodes);
            let found = found(&nodes);
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].0, severity, "{found:?}");
            assert!(found[0].1.starts_with(text), "{found:?}");
        }
    }

    #[test]
    fn too_few_reachable_nodes_are_an_error() {
        let mut nodes = ["a", "b", "c"].map(sound);
        nodes[0].server = Err(Cause::new(CauseKind::Unreachable));
        nodes[1].server = Err(Cause::new(CauseKind::Timeout));
        assert!(found(&nodes).iter().all(|(severity, _)| *severity == Severity::Error));
    }

    #[test]
    fn a_slow_answer_is_not_taken_for_a_clock_that_is_off() {
        let mut nodes = ["a", "b", "c"].map(sound);
        change(&mut nodes[0], |server| {
            server.clock += Duration::from_secs(1);
            server.round_trip = Duration::from_secs(2);
        });
        assert_eq!(found(&nodes), []);
    }
}
