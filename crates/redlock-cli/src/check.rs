//! `redlock check`: whether the nodes are what a lease needs them to be.

use std::env;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use redlock_tokio::Config;
use redlock_tokio::topology::{Finding, FindingKind, NodeFacts, Role, Severity, TopologyReport};
use serde_json::{Value, json};

use crate::args::CheckArgs;
use crate::exit::{Code, Failure};
use crate::nodes;
use crate::print::{block_on, print};

/// Asks every node about itself, and prints what is wrong or risky.
pub(crate) fn run(args: &CheckArgs) -> Result<Code, Failure> {
    let targets = nodes::targets(&args.nodes)?;
    let manager = nodes::manager(&targets, Config::builder().ttl(args.ttl).build()?)?;
    let timeout = args.nodes.timeout.unwrap_or(TIMEOUT);
    let report = block_on(async { Ok(manager.verify(timeout).await?) })?;
    print(&if args.json { format!("{:#}\n", as_json(&report)) } else { as_text(&report, has_colour()) });
    Ok(match report.worst() {
        None => Code::OK,
        Some(Severity::Warning) => Code::WARNINGS,
        Some(Severity::Error) => Code::ERRORS,
    })
}

/// One finding a line, the worst first.
fn as_text(report: &TopologyReport, colour: bool) -> String {
    if report.findings.is_empty() {
        return match report.nodes.len() {
            1 => "the node is sound\n".to_owned(),
            count => format!("all {count} nodes are sound\n"),
        };
    }
    let line = |finding: &Finding| {
        let name = name_of(finding.severity);
        if !colour {
            return format!("{name}: {finding}\n");
        }
        let start = match finding.severity {
            Severity::Error => "\x1b[1;31m",
            Severity::Warning => "\x1b[1;33m",
        };
        format!("{start}{name}\x1b[0m: {finding}\n")
    };
    report.findings.iter().map(line).collect()
}

/// One object, with what the nodes have said about themselves.
fn as_json(report: &TopologyReport) -> Value {
    let verdict = match report.worst() {
        None => "sound",
        Some(Severity::Warning) => "warnings",
        Some(Severity::Error) => "errors",
    };
    let nodes = |names: &[std::sync::Arc<str>]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let findings: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| {
            json!({
                "severity": name_of(finding.severity),
                "kind": kind_of(&finding.kind),
                "nodes": nodes(&finding.nodes),
                "what": finding.kind.to_string(),
                "remedy": finding.kind.remedy(),
            })
        })
        .collect();
    json!({
        "verdict": verdict,
        "findings": findings,
        "nodes": report.nodes.iter().map(facts).collect::<Vec<_>>(),
    })
}

fn facts(node: &NodeFacts) -> Value {
    match &node.server {
        Ok(Some(server)) => json!({
            "node": &*node.name,
            "version": server.version,
            "role": match server.role {
                Role::Primary => "primary",
                Role::Replica => "replica",
            },
            "run_id": server.run_id,
            "uptime_s": server.uptime.as_secs(),
            "appendonly": server.appendonly,
            "maxmemory": server.maxmemory,
            "maxmemory_policy": server.maxmemory_policy,
        }),
        Ok(None) => json!({ "node": &*node.name }),
        Err(cause) => json!({ "node": &*node.name, "error": cause.to_string() }),
    }
}

const fn name_of(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// What a program can look for; the texts may change.
const fn kind_of(kind: &FindingKind) -> &'static str {
    match kind {
        FindingKind::Unreachable { .. } => "unreachable",
        FindingKind::Unchecked { .. } => "unchecked",
        FindingKind::Replica => "replica",
        FindingKind::SameServer => "same-server",
        FindingKind::SameCluster => "same-cluster",
        FindingKind::MayEvict { .. } => "may-evict",
        FindingKind::ForgetsOnRestart { .. } => "forgets-on-restart",
        FindingKind::ClocksDiffer { .. } => "clocks-differ",
        FindingKind::Young { .. } => "young",
        _ => "other",
    }
}

/// Whether colours would be seen as such, and are wanted.
fn has_colour() -> bool {
    io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// How long to wait for a node that may be far away.
const TIMEOUT: Duration = Duration::from_secs(1);
