//! `connect_listening`, which there need not be.

use std::sync::{Arc, Mutex};

use futures_channel::mpsc;
use futures_util::StreamExt as _;
use redis::{Client, ProtocolVersion, PushKind, Value, cmd};

use super::super::key::key;
use super::super::outcome::{During as _, Failure, Outcome, must};
use super::super::time::by;
use super::bench::{Bench, GENEROUS, ask, id};
use crate::{Connect, Pushes};

/// Somebody else changes a key that was read, and then cuts the connection.
pub(super) async fn hears_of_changes<R: Connect>(bench: Bench<R>) -> Outcome {
    let info = bench.client.get_connection_info().clone();
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    let client = Client::open(info.set_redis_settings(settings)).during("a client for RESP3")?;
    let (sender, mut pushed) = mpsc::channel(16);
    let sender = Arc::new(Mutex::new(sender));
    let pushes = Pushes::new(move |message| {
        let mut sender = sender.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // The check may have ended, and looks at no more than these.
        let _ = sender.try_send(message);
    });
    let dialled = by(&bench.runtime, GENEROUS, bench.runtime.connect_listening(&client, pushes)).await;
    let dialled = dialled.ok_or_else(|| Failure::likely("connecting to the server did not end"))?;
    let Some(connection) = dialled.during("connecting to the server")? else { return Ok(()) };
    let (other, key) = (bench.connect().await?, key()?);
    ask(&connection, cmd("CLIENT").arg("TRACKING").arg("ON")).await.during("CLIENT TRACKING ON")?;
    let value = ask(&connection, cmd("GET").arg(&key)).await.during("GET")?;
    must(value == Value::Nil, format_args!("a key that nobody has set had a value"))?;
    ask(&other, cmd("SET").arg(&key).arg("").arg("PX").arg(60_000)).await.during("SET")?;
    let message = by(&bench.runtime, GENEROUS, pushed.next()).await.flatten();
    let message =
        message.ok_or_else(|| Failure::certain("a change of a key was not handed to the pushes"))?;
    let keys = Value::Array(vec![Value::BulkString(key.clone().into())]);
    let right = message.kind == PushKind::Invalidate && message.data == [keys];
    must(right, format_args!("the change of a key was handed over as {message:?}"))?;
    ask(&other, cmd("DEL").arg(&key)).await.during("DEL")?;
    let number = id(&connection).await?;
    ask(&other, cmd("CLIENT").arg("KILL").arg("ID").arg(number)).await.during("CLIENT KILL")?;
    let message = by(&bench.runtime, GENEROUS, pushed.next()).await.flatten();
    let told = message.is_some_and(|message| message.kind == PushKind::Disconnection);
    must(told, format_args!("that the connection was cut was not handed to the pushes"))
}
