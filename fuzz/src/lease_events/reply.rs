//! What a node that is not honest may say, and what that means.

use std::str;

use redlock_core::{Cause, CauseKind, Fault, Intent, Reply, ServerError};

use crate::bytes::Bytes;

/// What an answer means: a second opinion, beside the core's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// With the fencing token, if the intent takes one.
    Yes(Option<u64>),
    No,
    NotExecuted,
    Unknown,
}

pub(crate) fn meaning(intent: &Intent, reply: &Result<Reply, Fault>) -> Said {
    let reply = match reply {
        Ok(reply) => reply,
        Err(Fault::NotExecuted(_)) => return Said::NotExecuted,
        Err(Fault::Unknown(_)) => return Said::Unknown,
    };
    match (intent, reply) {
        (_, Reply::Error(error)) if error.code() == "READONLY" => Said::NotExecuted,
        (Intent::SetNxPx { .. }, Reply::Error(error)) if error.code() == "OOM" => Said::NotExecuted,
        (Intent::SetNxPx { .. }, Reply::Ok) => Said::Yes(None),
        (Intent::SetNxPx { .. }, Reply::Nil) => Said::No,
        (Intent::SetNxPx { .. }, _) => Said::Unknown,
        (_, Reply::Int(0)) => Said::No,
        (Intent::FencedAcquire { .. }, Reply::Int(number @ 1..)) => Said::Yes(Some(number.unsigned_abs())),
        (Intent::FencedAcquire { .. }, Reply::Text(text)) => {
            let number = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
            number.map_or(Said::Unknown, |number| Said::Yes(Some(number)))
        }
        (Intent::FencedAcquire { .. }, _) => Said::Unknown,
        (_, Reply::Int(1)) => Said::Yes(None),
        _ => Said::Unknown,
    }
}

/// Any answer at all. The likely ones are the first, so that they come often.
pub(crate) fn decode(bytes: &mut Bytes<'_>, intent: Option<&Intent>) -> Result<Reply, Fault> {
    let fenced = matches!(intent, Some(Intent::FencedAcquire { .. }));
    let plain = matches!(intent, Some(Intent::SetNxPx { .. }));
    Ok(match bytes.below(24) {
        0..=3 if plain => Reply::Ok,
        0..=3 if fenced => Reply::Int(1 + i64::from(bytes.byte())),
        0..=3 => Reply::Int(1),
        4..=6 if plain => Reply::Nil,
        4..=6 => Reply::Int(0),
        7..=8 => return Err(fault(Fault::Unknown)),
        9 => return Err(fault(Fault::NotExecuted)),
        10 => Reply::Ok,
        11 => Reply::Nil,
        12 => Reply::Int(1),
        13 => Reply::Int(-1),
        14 => Reply::Int(i64::MIN),
        15 => Reply::Text(COUNTER.as_bytes().into()),
        16 => Reply::Text([].into()),
        17 => Reply::Status("QUEUED".into()),
        18 => Reply::Array(vec![Reply::Ok]),
        19 => Reply::Bool(true),
        20 => Reply::Other,
        21 => Reply::Error(ServerError::new("READONLY", "why")),
        22 => Reply::Error(ServerError::new("OOM", "why")),
        _ => Reply::Error(ServerError::new("ERR", "")),
    })
}

pub(crate) fn fault(kind: fn(Cause) -> Fault) -> Fault {
    kind(Cause::new(CauseKind::Disconnected))
}

/// The largest one, 2^64 - 1.
const COUNTER: &str = "18446744073709551615";
