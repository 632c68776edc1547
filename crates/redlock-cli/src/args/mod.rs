//! The command line.

mod duration;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use duration::Patience;
use duration::{duration, patience};

/// Runs a command on one machine at a time, under a lease on Redis.
#[derive(Debug, Parser)]
#[command(name = "redlock", version, max_term_width = 100, after_help = AFTER_HELP)]
#[command(disable_help_subcommand = true, subcommand_required = true, arg_required_else_help = false)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) task: Task,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    Run(Box<RunArgs>),
    Check(CheckArgs),
    Status(StatusArgs),
    Bench(BenchArgs),
    /// Print the completions of a shell
    #[command(hide = true)]
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print a manual page
    #[command(hide = true)]
    Man {
        /// Of which subcommand; without it, that of the program
        subcommand: Option<String>,
    },
}

/// Run a command while a lease is held
///
/// Acquires the lease, runs the command, renews the lease while the command runs, and releases it when the
/// command has ended. If the lease is lost, the command is stopped.
///
/// The command has standard input, output and error and the terminal to itself. It runs in a process group of
/// its own, which gets the signals that redlock gets: SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2. A
/// SIGINT after one that was to end the command kills it.
///
/// The command finds the resource in REDLOCK_RESOURCE, the lease's token in REDLOCK_TOKEN and, with --fence,
/// the fencing token in REDLOCK_FENCING_TOKEN.
#[derive(Args, Debug)]
#[command(after_help = RUN_EXIT_CODES)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// The key in Redis that stands for what one machine at a time may use
    #[arg(long, value_name = "NAME")]
    pub(crate) resource: String,
    /// How long the resource stays taken if this machine dies
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    pub(crate) ttl: Duration,
    /// How long to wait for the lease: a duration, 0 for one try, or forever
    #[arg(long, value_name = "DURATION", value_parser = patience, default_value = "0")]
    pub(crate) wait: Patience,
    /// How often to renew the lease; a third of the ttl if not said
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) renew: Option<Duration>,
    /// Take a fencing token from the counter at this key; with one node only
    #[arg(long, value_name = "KEY")]
    pub(crate) fence: Option<String>,
    /// What to do to the command when the lease is lost
    #[arg(long, value_name = "ACTION", value_enum, default_value = "term")]
    pub(crate) on_lost: OnLost,
    /// How long the command may take to end after SIGTERM before it is killed
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5s")]
    pub(crate) grace: Duration,
    /// Tell on standard error what happens
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// What to do to the command when the lease is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLost {
    /// Send SIGTERM, and SIGKILL after the grace time
    Term,
    /// Send SIGKILL at once
    Kill,
    /// Say so and let it go on
    Warn,
}

/// Check whether the nodes are what a lease needs them to be
///
/// One finding a line: unreachable nodes, replicas, the same server twice, shards of one cluster, eviction
/// policies and restarts that lose locks, clocks that differ.
#[derive(Args, Debug)]
#[command(after_help = CHECK_EXIT_CODES)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// The ttl of the leases that the nodes are for
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    pub(crate) ttl: Duration,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show who holds a resource, at which nodes and for how long
#[derive(Args, Debug)]
#[command(after_help = STATUS_EXIT_CODES)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// The resource
    #[arg(long, value_name = "NAME")]
    pub(crate) resource: String,
    /// Show tokens whole. Whoever knows a token can release the lease
    #[arg(long)]
    pub(crate) full: bool,
    /// Print one JSON object, or, with --watch, one a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Look again and again
    #[arg(long, short)]
    pub(crate) watch: bool,
    /// How often to look, with --watch
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1s", requires = "watch")]
    pub(crate) interval: Duration,
}

/// Measure acquire and release beside the same commands sent plainly
///
/// Each cycle acquires and releases a lease on a resource of its own, and then does what that cannot avoid: one
/// SET NX PX to each node at once, until a quorum has answered, and one compare-and-delete likewise. The two
/// take turns, so that whatever else the machines do falls on both.
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// How many cycles of each kind
    #[arg(long, value_name = "NUMBER", default_value = "1000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) cycles: u32,
    /// The ttl of the leases
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    pub(crate) ttl: Duration,
}

/// How to reach Redis.
#[derive(Args, Debug)]
pub(crate) struct NodeArgs {
    /// A node: redis://HOST:PORT, rediss://HOST:PORT for TLS, or redis+unix:///PATH; also with USER@ before the
    /// host and /DATABASE after the port. Once for one logical Redis; three, five or more times for
    /// independent primaries. Without it: those of REDLOCK_NODES, separated by commas, which may have passwords
    #[arg(long = "node", value_name = "URL")]
    pub(crate) urls: Vec<String>,
    /// A file with the password for the nodes. Without it: the password in REDLOCK_PASSWORD, if set
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// How long to wait for a node's answer; if not said 500ms, or a fifth of a shorter ttl, and 1s for check and
    /// status
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
}

const AFTER_HELP: &str = "\
Environment:
  REDLOCK_NODES     the nodes, separated by commas, instead of --node
  REDLOCK_PASSWORD  their password, instead of --password-file";

const RUN_EXIT_CODES: &str = "\
Exit codes:
  0-255  the command's own; 128 + N if signal N killed it
  64     the command line or the environment is wrong
  69     too few nodes were reachable; the command was not run
  70     the operating system refused something
  75     somebody else has the resource; the command was not run
  76     the lease was lost before the command had ended
  126    the command cannot be executed
  127    there is no such command
  128+N  signal N came while waiting for the lease";

const CHECK_EXIT_CODES: &str = "\
Exit codes:
  0   all is sound
  1   there are warnings
  2   there are errors
  64  the command line or the environment is wrong";

const STATUS_EXIT_CODES: &str = "\
Exit codes:
  0   the verdict is known: held, free or split
  64  the command line or the environment is wrong
  69  too few nodes were reachable to tell";

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse(line: &str) -> Result<Task, String> {
        let words = ["redlock"].into_iter().chain(line.split_whitespace());
        Cli::try_parse_from(words).map(|cli| cli.task).map_err(|error| error.to_string())
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_run_has_sensible_defaults() {
        let task = parse("run --node redis://a --resource nightly -- make -j 4 --").unwrap();
        let Task::Run(run) = task else { panic!("{task:?}") };
        assert_eq!(run.command, ["make", "-j", "4", "--"]);
        assert_eq!((run.ttl, run.wait, run.renew), (Duration::from_secs(30), Patience::Once, None));
        assert_eq!((run.grace, run.on_lost), (Duration::from_secs(5), OnLost::Term));
        assert_eq!(run.nodes.urls, ["redis://a"]);
        assert!(!run.verbose);
    }

    #[test]
    fn mistakes_are_answered_with_what_to_write() {
        for (line, advice) in [
            ("run --resource r --ttl 30 -- true", "write 30s"),
            ("run --resource r --on-lost stop -- true", "term, kill, warn"),
            ("run --resource r make", "-- <COMMAND>..."),
            ("run --resource r", "<COMMAND>"),
            ("run -- true", "--resource <NAME>"),
            ("status", "--resource <NAME>"),
            ("bench --cycles 0", "1..=1000000"),
        ] {
            let message = parse(line).unwrap_err();
            assert!(message.contains(advice), "{line}: {message}");
        }
    }
}
