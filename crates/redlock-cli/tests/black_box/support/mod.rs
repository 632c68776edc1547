//! What the tests have in common.

mod files;
#[cfg(target_os = "linux")]
mod pty;
mod running;

pub(crate) use files::Files;
#[cfg(target_os = "linux")]
pub(crate) use pty::Pty;
pub(crate) use running::{Finished, Running, is_alive, send};

use std::process::{Command, Stdio};
use std::time::Duration;

use redlock_tests::harness::{Primary, Server, shared_primaries};

/// For `env`: whoever runs the tests in the background may ignore signals, and what is ignored is passed on.
pub(crate) const DEFAULT_SIGNALS: &str = "--default-signal=HUP,INT,QUIT,TERM";

/// The built program, in an environment that names no nodes and no password.
pub(crate) fn redlock() -> Command {
    let mut command = Command::new("env");
    command.args([DEFAULT_SIGNALS, env!("CARGO_BIN_EXE_redlock")]);
    for name in ["REDLOCK_NODES", "REDLOCK_PASSWORD", "REDLOCK_FENCING_TOKEN", "NO_COLOR"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// `redlock run` on these nodes; the command is still to come.
pub(crate) fn run(urls: &[String], resource: &str, options: &[&str]) -> Command {
    let mut command = redlock();
    command.arg("run").args(node_options(urls));
    command.args(["--resource", resource]).args(options).arg("--");
    command
}

/// The same, with a shell script as the command.
pub(crate) fn run_script(urls: &[String], resource: &str, options: &[&str], script: &str) -> Command {
    let mut command = run(urls, resource, options);
    command.args(["sh", "-c", script]);
    command
}

pub(crate) fn node_options(urls: &[String]) -> impl Iterator<Item = &str> {
    urls.iter().flat_map(|url| ["--node", url])
}

/// Nodes that the test shares with others.
pub(crate) fn shared(count: usize) -> (Vec<Primary>, Vec<String>) {
    let nodes = shared_primaries(count);
    let urls = nodes.iter().map(Primary::url).collect();
    (nodes, urls)
}

/// The addresses of servers that the test may harm.
pub(crate) fn urls(servers: &[Server]) -> Vec<String> {
    servers.iter().map(|server| server.url()).collect()
}

/// Whether a key of this name stands at any of the nodes.
pub(crate) fn is_anywhere(key: &str, nodes: &[Primary]) -> bool {
    nodes.iter().any(|node| node.get(key).is_some())
}

/// A duration.
pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// How much longer than necessary something may take on a machine that is busy with other tests.
pub(crate) const SLACK: Duration = Duration::from_millis(700);
