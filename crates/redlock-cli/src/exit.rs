//! How the program ends.

use std::process::ExitCode;

use redlock_tokio::{ConfigError, Error, NotAcquired, NotAcquiredReason, Outcome};

/// An exit code. Those of the program itself are distinct, and all below 128 that shells and `sysexits.h` give
/// a meaning to keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(u8);

impl Code {
    /// All is well.
    pub(crate) const OK: Self = Self(0);
    /// `check` has found something that weakens a promise.
    pub(crate) const WARNINGS: Self = Self(1);
    /// `check` has found something that breaks one.
    pub(crate) const ERRORS: Self = Self(2);
    /// The command line or the environment is wrong. Nothing was sent and nothing was run.
    pub(crate) const USAGE: Self = Self(64);
    /// Too few nodes could be reached.
    pub(crate) const UNREACHABLE: Self = Self(69);
    /// The operating system refused something that it should not.
    pub(crate) const INTERNAL: Self = Self(70);
    /// Somebody else has the resource. The command was not run.
    pub(crate) const TAKEN: Self = Self(75);
    /// The lease was lost before the command had ended.
    pub(crate) const LOST: Self = Self(76);
    /// The command was found, but cannot be executed.
    pub(crate) const NOT_EXECUTABLE: Self = Self(126);
    /// There is no such command.
    pub(crate) const NOT_FOUND: Self = Self(127);

    /// That of a command which ended by itself.
    pub(crate) fn of_status(status: i32) -> Self {
        // An exit status has eight bits.
        Self(u8::try_from(status & 0xff).unwrap_or(u8::MAX))
    }

    /// That of a command which was killed by a signal, as shells have it.
    pub(crate) fn of_signal(signal: i32) -> Self {
        Self(u8::try_from(128 + signal).unwrap_or(u8::MAX))
    }

    /// The number.
    pub(crate) const fn get(self) -> u8 {
        self.0
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code.0)
    }
}

/// Why the program ends without having done its work: the code, and the words for standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// A mistake in the command line or the environment. The message says what to write instead.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::USAGE, message)
    }

    /// Says so on standard error.
    pub(crate) fn report(self) -> Code {
        eprintln!("redlock: {}", self.message);
        self.code
    }

    /// The operating system refused something.
    pub(crate) fn internal(what: &str, error: impl std::fmt::Display) -> Self {
        Self::new(Code::INTERNAL, format!("{what}: {error}"))
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::usage(match &error {
            ConfigError::TooShort { field, value, min } => {
                format!("{} {value:?} is too short: make it at least {min:?}", option(field))
            }
            ConfigError::TooLong { field, value, max } => {
                format!("{} {value:?} is too long: make it at most {max:?}", option(field))
            }
            ConfigError::Empty { field } => format!("{} is empty: name a key", option(field)),
            ConfigError::NodeCount { given } => format!(
                "{given} nodes are given: name one logical Redis, or an odd number of independent primaries \
                 from 3 to 255"
            ),
            ConfigError::FencingKeyIsResource { key } => {
                format!("--fence {key} is the resource itself: name another key for the counter")
            }
            other => other.to_string(),
        })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Config(error) => error.into(),
            Error::FencingUnsupported(error) => Self::usage(format!(
                "--fence needs one counter, and {} independent nodes have as many: leave it out, or name one \
                 logical Redis",
                error.nodes
            )),
            Error::NotAcquired(not_acquired) => Self::new(code_of(&not_acquired), not_acquired.to_string()),
            Error::LockLost(lost) => Self::new(Code::LOST, lost.to_string()),
            other => Self::new(Code::INTERNAL, other.to_string()),
        }
    }
}

/// Whether a lease was not acquired because of somebody else or because of the nodes: taken, if as many nodes
/// as are needed have answered, or were not given the time to because the others had decided the matter.
fn code_of(failure: &NotAcquired) -> Code {
    if failure.is_taken() {
        return Code::TAKEN;
    }
    if failure.reason == NotAcquiredReason::ExpiredWhileAcquiring {
        return Code::UNREACHABLE;
    }
    let quorum = &failure.quorum;
    let silent = |outcome: &Outcome| matches!(outcome, Outcome::Fault(_) | Outcome::Silent { .. });
    let reached = quorum.nodes.iter().filter(|report| !silent(&report.outcome)).count();
    let refused = quorum.nodes.iter().any(|report| report.outcome == Outcome::No);
    if refused && reached >= quorum.required { Code::TAKEN } else { Code::UNREACHABLE }
}

/// The option that a setting of the library is given by.
fn option(field: &str) -> &str {
    match field {
        "ttl" => "--ttl",
        "auto_renew" => "--renew",
        "operation_timeout" => "--timeout",
        "resource" => "--resource",
        "fencing key" => "--fence",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use redlock_tokio::{Cause, CauseKind, Fault, NodeId, NodeReport, Operation, QuorumError};
    use std::time::Duration;

    use super::*;

    fn not_acquired(outcomes: &[Outcome]) -> NotAcquired {
        let nodes = (0..)
            .zip(outcomes)
            .map(|(index, outcome)| NodeReport {
                node: NodeId::new(index),
                name: "redis".into(),
                outcome: outcome.clone(),
            })
            .collect();
        QuorumError { operation: Operation::Acquire, succeeded: 0, required: 2, nodes }.into()
    }

    #[test]
    fn taken_and_unreachable_are_told_apart_by_who_has_answered() {
        let down = || Outcome::Fault(Fault::NotExecuted(Cause::new(CauseKind::Unreachable)));
        let silent = || Outcome::Silent { waited: Duration::from_millis(500) };
        let table = [
            (vec![Outcome::No, Outcome::No, down()], Code::TAKEN),
            (vec![Outcome::Yes, Outcome::No, Outcome::No], Code::TAKEN),
            (vec![Outcome::Yes, Outcome::No, down()], Code::TAKEN),
            (vec![Outcome::No, down(), Outcome::NotAwaited], Code::TAKEN),
            (vec![Outcome::No, down(), silent()], Code::UNREACHABLE),
            (vec![Outcome::Yes, down(), silent()], Code::UNREACHABLE),
            (vec![down(), down(), down()], Code::UNREACHABLE),
        ];
        for (outcomes, code) in table {
            assert_eq!(code_of(&not_acquired(&outcomes)), code, "{outcomes:?}");
        }
    }

    #[test]
    fn a_commands_own_end_is_passed_on() {
        assert_eq!(Code::of_status(0).get(), 0);
        assert_eq!(Code::of_status(255).get(), 255);
        assert_eq!(Code::of_signal(15).get(), 143);
        assert_eq!(Code::of_signal(64).get(), 192);
    }

    #[test]
    fn settings_are_called_by_their_options() {
        let min = Duration::from_millis(4);
        let error = ConfigError::TooShort { field: "ttl", value: Duration::from_millis(2), min };
        let failure = Failure::from(error);
        assert_eq!(failure, Failure::usage("--ttl 2ms is too short: make it at least 4ms"));
    }
}
