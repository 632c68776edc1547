//! From an error of the `redis` crate to what it means: for the command, and for its connection.
//!
//! A server's error is an answer and is judged in the core, on its code word. The crate's own kinds are
//! judged here. Texts are built from categories, kinds of I/O errors and the server's line, never from
//! an address with its user part.

use std::error::Error;
use std::io;
use std::sync::Arc;

use redis::{ErrorKind, RedisError};
use redlock_core::{Cause, CauseKind, Fault, Reply};

use super::reply;

/// What the error of a call says about the command.
pub(crate) fn of_call(error: &RedisError) -> Result<Reply, Fault> {
    if let Some(code) = error.code() {
        return Ok(Reply::Error(reply::server_error(code, error.detail())));
    }
    let cause = |kind| Cause::with_detail(kind, error.category());
    Err(match error.kind() {
        ErrorKind::Io if error.is_timeout() => Fault::Unknown(Cause::new(CauseKind::Timeout)),
        ErrorKind::Io => Fault::Unknown(disconnected(error)),
        // Found out before anything was sent.
        ErrorKind::Client | ErrorKind::InvalidClientConfig => Fault::NotExecuted(cause(CauseKind::Rejected)),
        // The rest may follow an earlier try of the same command: a connection that connects by itself
        // and a cluster's may have sent it once already.
        ErrorKind::AuthenticationFailed | ErrorKind::RESP3NotSupported => {
            Fault::Unknown(cause(CauseKind::Rejected))
        }
        ErrorKind::MasterNameNotFoundBySentinel
        | ErrorKind::NoValidReplicasFoundBySentinel
        | ErrorKind::EmptySentinelList
        | ErrorKind::ClusterConnectionNotFound => Fault::Unknown(cause(CauseKind::Unreachable)),
        _ => Fault::Unknown(cause(CauseKind::UnexpectedReply)),
    })
}

/// What the error of an attempt to connect says. No command was sent, so it is the cause of a fault of
/// the not-executed kind. `password` is what must not turn up in the text.
pub(crate) fn of_connect(error: &RedisError, password: Option<&str>) -> Cause {
    let kind = match (error.code(), error.kind()) {
        (Some("DENIED" | "NOAUTH" | "NOPERM" | "NOPROTO" | "WRONGPASS"), _) => CauseKind::Rejected,
        (Some(_), _) => CauseKind::Server,
        // How the TLS library reports a certificate or a peer that it does not like.
        (None, ErrorKind::Io) => match io_error(error).map(io::Error::kind) {
            Some(io::ErrorKind::InvalidData) => CauseKind::Rejected,
            _ => CauseKind::Unreachable,
        },
        (
            None,
            ErrorKind::MasterNameNotFoundBySentinel
            | ErrorKind::NoValidReplicasFoundBySentinel
            | ErrorKind::EmptySentinelList
            | ErrorKind::ClusterConnectionNotFound,
        ) => CauseKind::Unreachable,
        (None, _) => CauseKind::Rejected,
    };
    let text = match (error.code(), io_error(error)) {
        (Some(code), _) => {
            let line = reply::server_error(code, error.detail());
            if line.message().is_empty() { code.to_owned() } else { format!("{code} {}", line.message()) }
        }
        (None, Some(io)) => io_text(io),
        (None, None) => error.category().to_owned(),
    };
    match password {
        Some(password) if !password.is_empty() && text.contains(password) => Cause::new(kind),
        _ => Cause::with_detail(kind, text),
    }
}

/// What an error says about the connection it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// The connection is as good as before.
    None,
    /// It may still answer, but should carry nothing new.
    Stalled,
    /// It is gone, or its next answer cannot be trusted to belong to the next question.
    Broken,
}

/// What the error of a call says about the connection.
pub(crate) fn damage(error: &RedisError) -> Damage {
    if error.code().is_some() {
        Damage::None
    } else if error.is_timeout() {
        Damage::Stalled
    } else if error.is_io_error() || error.is_unrecoverable_error() {
        Damage::Broken
    } else {
        Damage::None
    }
}

/// The cause for a command that was under way on a connection that broke.
fn disconnected(error: &RedisError) -> Cause {
    match io_error(error) {
        Some(io) => Cause::with_detail(CauseKind::Disconnected, io.kind().to_string()),
        None => Cause::new(CauseKind::Disconnected),
    }
}

/// `connection refused` rather than `Connection refused (os error 111)`; the error's own words where
/// it has some.
fn io_text(error: &io::Error) -> String {
    if error.raw_os_error().is_some() && KNOWN.contains(&error.kind()) {
        error.kind().to_string()
    } else {
        error.to_string()
    }
}

/// The kinds whose names say enough.
const KNOWN: [io::ErrorKind; 8] = [
    io::ErrorKind::PermissionDenied,
    io::ErrorKind::ConnectionRefused,
    io::ErrorKind::ConnectionReset,
    io::ErrorKind::HostUnreachable,
    io::ErrorKind::NetworkUnreachable,
    io::ErrorKind::ConnectionAborted,
    io::ErrorKind::BrokenPipe,
    io::ErrorKind::TimedOut,
];

/// The I/O error inside, which the `redis` crate hands out behind a shared pointer.
fn io_error(error: &RedisError) -> Option<&io::Error> {
    let source = error.source()?;
    match source.downcast_ref::<Arc<dyn Error + Send + Sync>>() {
        Some(shared) => shared.downcast_ref(),
        None => source.downcast_ref(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::ServerErrorKind as Server;
    use redlock_core::{Intent, Token, Ttl, Vote, interpret};
    use std::path::Path;

    /// What a command's error means: certainly not executed, or unknown.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Outcome {
        Not,
        Unknown,
    }
    use Outcome::{Not, Unknown};

    /// Every kind of the `redis` crate except `Serialize`, which exists only with its `json` feature and
    /// like all that is not named counts as unknown. The columns: the kind, a plain SET, a script.
    const TABLE: [(ErrorKind, Outcome, Outcome); 26] = [
        (ErrorKind::Parse, Unknown, Unknown),
        (ErrorKind::AuthenticationFailed, Unknown, Unknown),
        (ErrorKind::UnexpectedReturnType, Unknown, Unknown),
        (ErrorKind::InvalidClientConfig, Not, Not),
        (ErrorKind::Io, Unknown, Unknown),
        (ErrorKind::Client, Not, Not),
        (ErrorKind::Extension, Unknown, Unknown),
        (ErrorKind::MasterNameNotFoundBySentinel, Unknown, Unknown),
        (ErrorKind::NoValidReplicasFoundBySentinel, Unknown, Unknown),
        (ErrorKind::EmptySentinelList, Unknown, Unknown),
        (ErrorKind::ClusterConnectionNotFound, Unknown, Unknown),
        (ErrorKind::RESP3NotSupported, Unknown, Unknown),
        (ErrorKind::Server(Server::ResponseError), Unknown, Unknown),
        (ErrorKind::Server(Server::ExecAbort), Unknown, Unknown),
        (ErrorKind::Server(Server::BusyLoading), Not, Not),
        (ErrorKind::Server(Server::NoScript), Not, Not),
        (ErrorKind::Server(Server::Moved), Not, Not),
        (ErrorKind::Server(Server::Ask), Not, Not),
        (ErrorKind::Server(Server::TryAgain), Not, Not),
        (ErrorKind::Server(Server::ClusterDown), Not, Not),
        (ErrorKind::Server(Server::CrossSlot), Not, Not),
        (ErrorKind::Server(Server::MasterDown), Not, Not),
        (ErrorKind::Server(Server::ReadOnly), Not, Not),
        (ErrorKind::Server(Server::NotBusy), Unknown, Unknown),
        (ErrorKind::Server(Server::NoSub), Unknown, Unknown),
        (ErrorKind::Server(Server::NoPerm), Not, Not),
    ];

    /// Codes that the `redis` crate has no kind for.
    const EXTENSIONS: [(&str, Outcome, Outcome); 9] = [
        ("BUSY", Not, Not),
        ("NOAUTH", Not, Not),
        ("WRONGPASS", Not, Not),
        ("OOM", Not, Unknown),
        ("MISCONF", Not, Unknown),
        ("NOREPLICAS", Not, Unknown),
        ("WRONGTYPE", Not, Unknown),
        ("UNKILLABLE", Unknown, Unknown),
        ("MYERR", Unknown, Unknown),
    ];

    fn outcome(intent: &Intent, error: &RedisError) -> Outcome {
        match interpret(intent, of_call(error)) {
            Vote::Fault(Fault::NotExecuted(_)) => Not,
            Vote::Fault(Fault::Unknown(_)) => Unknown,
            vote => panic!("{error}: {vote:?}"),
        }
    }

    fn intents() -> (Intent, Intent) {
        let token = Token::from_bytes([1; Token::LEN]);
        let ttl = Ttl::from_millis(1_000).unwrap();
        (Intent::SetNxPx { token, ttl }, Intent::FencedAcquire { fence: Arc::from("f"), token, ttl })
    }

    #[test]
    fn every_kind_of_error_is_judged() {
        let (set, script) = intents();
        for (kind, plain, scripted) in TABLE {
            let error = RedisError::from((kind, "why"));
            assert_eq!((outcome(&set, &error), outcome(&script, &error)), (plain, scripted), "{kind:?}");
        }
        for (code, plain, scripted) in EXTENSIONS {
            let error = redis::make_extension_error(code.to_owned(), Some("why".to_owned()));
            assert_eq!((outcome(&set, &error), outcome(&script, &error)), (plain, scripted), "{code}");
            assert_eq!(interpret(&set, of_call(&error)), interpret(&set, Ok(reply::from_value(value(code)))));
        }
    }

    /// The same error as it arrives inside an `Ok`.
    fn value(code: &str) -> redis::Value {
        redis::parse_redis_value(format!("-{code} why\r\n").as_bytes()).unwrap()
    }

    /// The crate's enums are non-exhaustive, so nothing here fails to compile when they grow. Whoever
    /// moves to another minor version compares them with the tables above, then changes this line.
    #[test]
    fn the_tables_were_made_for_this_minor_version() {
        let lock = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .find_map(|folder| std::fs::read_to_string(folder.join("Cargo.lock")).ok())
            .expect("a Cargo.lock in this folder or above");
        let versions: Vec<_> = lock
            .split("\n\n")
            .filter_map(|entry| entry.split_once("name = \"redis\"\nversion = \""))
            .collect();
        assert!(!versions.is_empty());
        for (_, version) in versions {
            assert!(
                version.starts_with("1.8."),
                "look through ErrorKind and ServerErrorKind of redis {version}"
            );
        }
    }

    #[test]
    fn io_errors_tell_a_timeout_from_a_broken_connection() {
        let cause = |kind: io::ErrorKind| of_call(&io::Error::from(kind).into()).unwrap_err();
        assert_eq!(cause(io::ErrorKind::TimedOut), Fault::Unknown(Cause::new(CauseKind::Timeout)));
        let broken = cause(io::ErrorKind::BrokenPipe);
        assert_eq!(broken, Fault::Unknown(Cause::with_detail(CauseKind::Disconnected, "broken pipe")));
        for (kind, expected) in [
            (io::ErrorKind::TimedOut, Damage::Stalled),
            (io::ErrorKind::BrokenPipe, Damage::Broken),
            (io::ErrorKind::ConnectionReset, Damage::Broken),
            (io::ErrorKind::Other, Damage::Broken),
        ] {
            assert_eq!(damage(&io::Error::from(kind).into()), expected, "{kind}");
        }
    }

    #[test]
    fn a_servers_error_does_no_harm_to_the_connection() {
        for (kind, ..) in TABLE {
            let broken = matches!(
                kind,
                ErrorKind::Parse
                    | ErrorKind::Io
                    | ErrorKind::AuthenticationFailed
                    | ErrorKind::ClusterConnectionNotFound
            );
            let expected = if broken { Damage::Broken } else { Damage::None };
            assert_eq!(damage(&RedisError::from((kind, "why"))), expected, "{kind:?}");
        }
        assert_eq!(damage(&redis::make_extension_error("OOM".to_owned(), None)), Damage::None);
    }

    #[test]
    fn a_failed_connect_is_unreachable_or_rejected() {
        let extension = |code: &str| redis::make_extension_error(code.to_owned(), Some("why".to_owned()));
        let untrusted = io::Error::new(io::ErrorKind::InvalidData, "invalid peer certificate: UnknownIssuer");
        let table: [(RedisError, CauseKind, &str); 11] = [
            (io::Error::from_raw_os_error(111).into(), CauseKind::Unreachable, "connection refused"),
            (
                io::Error::other("failed to lookup address").into(),
                CauseKind::Unreachable,
                "failed to lookup address",
            ),
            (untrusted.into(), CauseKind::Rejected, "invalid peer certificate: UnknownIssuer"),
            (extension("WRONGPASS"), CauseKind::Rejected, "WRONGPASS why"),
            (extension("NOAUTH"), CauseKind::Rejected, "NOAUTH why"),
            (extension("DENIED"), CauseKind::Rejected, "DENIED why"),
            ((ErrorKind::Server(Server::BusyLoading), "why").into(), CauseKind::Server, "LOADING"),
            ((ErrorKind::AuthenticationFailed, "why").into(), CauseKind::Rejected, "authentication failed"),
            (
                (ErrorKind::RESP3NotSupported, "why").into(),
                CauseKind::Rejected,
                "resp3 is not supported by server",
            ),
            ((ErrorKind::Parse, "why").into(), CauseKind::Rejected, "parse error"),
            ((ErrorKind::EmptySentinelList, "why").into(), CauseKind::Unreachable, "empty sentinel list"),
        ];
        for (error, kind, detail) in table {
            let cause = of_connect(&error, None);
            assert_eq!((cause.kind(), cause.detail()), (kind, Some(detail)));
        }
    }

    #[test]
    fn the_password_never_turns_up() {
        let echoed = "unknown command `AUTH`, with args beginning with: `hunter2`, ";
        let error = redis::make_extension_error("ERR".to_owned(), Some(echoed.to_owned()));
        assert_eq!(of_connect(&error, Some("hunter2")).detail(), Some("ERR unknown command `AUTH`"));

        let error = redis::make_extension_error("ERR".to_owned(), Some("who is hunter2?".to_owned()));
        assert_eq!(of_connect(&error, Some("hunter2")), Cause::new(CauseKind::Server));
        assert_eq!(of_connect(&error, Some("")).detail(), Some("ERR who is hunter2?"));

        let error = RedisError::from((ErrorKind::Client, "why", "hunter2".to_owned()));
        assert_eq!(of_connect(&error, None).detail(), Some("client error"));
        let fault = of_call(&error).unwrap_err();
        assert!(!format!("{fault:?}").contains("hunter2"));
    }
}
