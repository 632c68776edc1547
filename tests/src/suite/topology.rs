//! Whether the nodes are what a lease needs them to be.

use redlock_driver::topology::{Finding, FindingKind, Severity, TopologyReport};
use redlock_driver::{Config, Manager};

use super::Adapter;
use super::support::{ms, redlock, urls};
use crate::harness::{Cluster, FakeServer, Server, Stopwatch, may_own_servers, unused_address};

fn kinds(report: &TopologyReport) -> Vec<&FindingKind> {
    report.findings.iter().map(|finding| &finding.kind).collect()
}

fn durable() -> Server {
    Server::builder().appendonly(true).start()
}

pub async fn sound_nodes_give_nothing_to_say<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let nodes = [durable(), durable(), durable()];
    // Young as they are, they have been up for longer than this ttl, and the second that their answer may be
    // off by.
    super::support::pause::<R>(ms(2_200)).await;
    let config = Config::builder().ttl(ms(1_000)).drift_factor(0.5).build().unwrap();
    let report = redlock::<R, _>(urls(&nodes), config).verify(ms(2_000)).await.unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(report.worst(), None);
    for (facts, node) in report.nodes.iter().zip(&nodes) {
        let server = facts.server.as_ref().unwrap().as_ref().unwrap();
        assert_eq!(node.info("run_id").as_deref(), Some(server.run_id.as_str()));
        assert!(server.version.contains(' '), "{}", server.version);
        assert!(server.appendonly);
    }
}

/// A10, the second half: by name and by number.
pub async fn one_server_under_two_names_is_found<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let nodes = [durable(), durable()];
    let by_name = format!("redis://localhost:{}", nodes[0].port());
    let all = [nodes[0].url(), by_name, nodes[1].url()];
    let report = redlock::<R, _>(all, Config::default()).verify(ms(2_000)).await.unwrap();
    assert_eq!(report.worst(), Some(Severity::Error));
    let finding = report.findings.iter().find(|finding| finding.kind == FindingKind::SameServer).unwrap();
    let names: Vec<&str> = finding.nodes.iter().map(AsRef::as_ref).collect();
    assert_eq!(names, [nodes[0].address(), &format!("localhost:{}", nodes[0].port())]);
}

/// The three primaries of one cluster are no independent nodes: they fail over as a whole.
pub async fn shards_of_one_cluster_are_found<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let cluster = Cluster::start();
    let shards = cluster.shards();

    let report = redlock::<R, _>(urls(shards), Config::default()).verify(ms(2_000)).await.unwrap();
    assert_eq!(report.worst(), Some(Severity::Error));
    let finding = report.findings.iter().find(|finding| finding.kind == FindingKind::SameCluster).unwrap();
    let names: Vec<&str> = finding.nodes.iter().map(AsRef::as_ref).collect();
    assert_eq!(names, shards.iter().map(|shard| shard.address()).collect::<Vec<_>>());
    // And a lease on them fails with an answer that says why.
    let lock = redlock::<R, _>(urls(shards), Config::default()).lock("elsewhere");
    let said = lock.try_acquire().await.unwrap_err().to_string();
    assert!(said.contains("MOVED") && said.contains("as one logical node"), "{said}");
}

pub async fn a_clock_that_is_off_is_found<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let (nodes, ahead) = ([durable(), durable()], FakeServer::ahead(ms(5_000)));
    let all = [nodes[0].url(), nodes[1].url(), ahead.url()];
    let report = redlock::<R, _>(all, Config::default()).verify(ms(2_000)).await.unwrap();
    let differ = |finding: &&Finding| matches!(finding.kind, FindingKind::ClocksDiffer { .. });
    let finding = report.findings.iter().find(differ).unwrap();
    assert_eq!(finding.severity, Severity::Warning);
    assert!(ahead.url().contains(&*finding.nodes[1]), "{finding}");
    let FindingKind::ClocksDiffer { by, allowed } = finding.kind else { unreachable!() };
    assert_eq!(allowed, ms(302));
    assert!(by > ms(3_000) && by < ms(5_500), "{by:?}");
}

pub async fn what_is_wrong_with_a_server_is_named<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let evicting = Server::builder().appendonly(true).arg("--maxmemory", "100mb").start();
    evicting.config_set("maxmemory-policy", "allkeys-lru");
    let forgetful = Server::start();
    let replica = durable();
    let (host, port) = ("127.0.0.1", evicting.port().to_string());
    redis::cmd("REPLICAOF").arg(host).arg(port).exec(&mut replica.connection()).unwrap();
    let config = Config::default();

    let report =
        redlock::<R, _>(urls(&[evicting, forgetful, replica]), config).verify(ms(2_000)).await.unwrap();
    let kinds = kinds(&report);
    assert!(matches!(
        kinds[..2],
        [FindingKind::Replica, FindingKind::MayEvict { limited: true, .. }]
            | [FindingKind::MayEvict { limited: true, .. }, FindingKind::Replica]
    ));
    assert!(kinds.contains(&&FindingKind::ForgetsOnRestart { snapshots: false }), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| matches!(kind, FindingKind::Young { .. })).count(), 3);
}

pub async fn nodes_that_do_not_answer_are_named_in_time<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let (healthy, frozen) = (durable(), durable());
    frozen.freeze();
    let gone = format!("redis://{}", unused_address());
    let manager = redlock::<R, _>([healthy.url(), frozen.url(), gone], Config::default());
    let watch = Stopwatch::start();
    let report = manager.verify(ms(300)).await.unwrap();
    assert!(watch.elapsed() < ms(600), "{:?}", watch.elapsed());
    let unreachable: Vec<_> = report
        .findings
        .iter()
        .filter(|finding| matches!(finding.kind, FindingKind::Unreachable { .. }))
        .collect();
    assert_eq!(unreachable.len(), 2);
    assert!(
        unreachable.iter().all(|finding| finding.severity == Severity::Error),
        "one of three is no quorum"
    );

    // A user who may take leases, but not ask.
    let user = ["SETUSER", "poor", "on", ">secret", "~*", "+set", "+evalsha", "+eval", "+get", "+del"];
    redis::cmd("ACL").arg(&user).exec(&mut healthy.connection()).unwrap();
    let url = format!("redis://poor:secret@{}/", healthy.address());
    let manager: Manager<R> = Manager::single(url, Config::default()).unwrap();
    let report = manager.verify(ms(1_000)).await.unwrap();
    assert!(matches!(kinds(&report)[..], [FindingKind::Unchecked { .. }]), "{report:?}");
    assert_eq!(report.worst(), Some(Severity::Warning));
}
