//! Connections that break.

use futures_channel::oneshot;
use redis::cmd;

use super::super::key::key;
use super::super::outcome::{During as _, Failure, Outcome, must};
use super::super::time::{by, ms, pause};
use super::bench::{Bench, GENEROUS, ask, echo, id, slow};
use crate::Connect;

/// The server cuts a connection on which it owes answers.
pub(super) async fn ends_calls_when_cut<R: Connect>(bench: Bench<R>) -> Outcome {
    let (cutter, cut) = (bench.connect().await?, bench.connect().await?);
    let (key, id) = (key()?, id(&cut).await?);
    let mut ends = Vec::new();
    // One is being carried out, and the others wait behind it.
    for command in [slow(&key, 5 * GENEROUS), echo("behind"), echo("behind that")] {
        let (sender, end) = oneshot::channel();
        let connection = cut.clone();
        let task = async move {
            // The check may have ended without waiting.
            let _ = sender.send(ask(&connection, &command).await);
        };
        bench.runtime.spawn(task).during("spawning a task")?;
        ends.push(end);
        pause(&bench.runtime, ms(5)).await;
    }
    ask(&cutter, cmd("CLIENT").arg("KILL").arg("ID").arg(id)).await.during("CLIENT KILL")?;
    for end in ends {
        let end = by(&bench.runtime, GENEROUS, end).await;
        let end = end.ok_or_else(|| Failure::certain("a call on a connection that was cut did not end"))?;
        let answer = end.during("waiting for a task that calls")?;
        must(answer.is_err(), format_args!("a call on a connection that was cut was answered {answer:?}"))?;
    }
    let later = by(&bench.runtime, GENEROUS, ask(&cut, &echo("later"))).await;
    must(later.is_some(), format_args!("a call on a connection that had been cut did not end"))
}
