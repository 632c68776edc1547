//! `call`.

use std::future::ready;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::FutureExt as _;
use redis::{RedisResult, Value, cmd};

use super::super::key::key;
use super::super::outcome::{During as _, Failure, Outcome, must, should};
use super::super::time::{by, ms, timed, yield_now};
use super::bench::{Bench, GENEROUS, ask, echo, flat, is_text, number, slow};
use crate::{Connect, Connection};

/// Polls calls for the first time one after the other, and then waits for the last first.
pub(super) async fn keeps_order<R: Connect>(bench: Bench<R>) -> Outcome {
    let connection = bench.connect().await?;
    let key = key()?;
    ask(&connection, cmd("SET").arg(&key).arg("").arg("PX").arg(60_000)).await.during("SET")?;
    let mut expected = 0;
    for _ in 0..3 {
        // More than 50, the usual buffer; and less than the 128 steps that tokio lets a task do in one go.
        yield_now().await;
        let mut calls = Vec::new();
        for _ in 0..60 {
            let mut call = connection.call(cmd("APPEND").arg(&key).arg("x").to_owned()).boxed();
            // The answer may be there already, if this thread was held up.
            if let Poll::Ready(answer) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                call = ready(answer).boxed();
            }
            expected += 1;
            calls.push((expected, call));
        }
        while let Some((expected, call)) = calls.pop() {
            let answer = by(&bench.runtime, GENEROUS, call).await.map(flat);
            let answer =
                answer.ok_or_else(|| Failure::likely("a call was not answered within two seconds"))?;
            let in_order = matches!(&answer, Ok(Value::Int(length)) if *length == expected);
            must(
                in_order,
                format_args!("the APPEND that was polled as number {expected} answered {answer:?}"),
            )?;
        }
    }
    let length = number(&connection, cmd("STRLEN").arg(&key)).await?;
    must(length == expected, format_args!("{expected} commands were carried out {length} times"))?;
    ask(&connection, cmd("DEL").arg(&key)).await.during("DEL").map(|_| ())
}

pub(super) async fn serves_many_callers<R: Connect>(bench: Bench<R>) -> Outcome {
    let connection = bench.connect().await?;
    let mut ends = Vec::new();
    for caller in 0..100 {
        let (sender, end) = oneshot::channel();
        let connection = connection.clone();
        let task = async move {
            // The check may have ended without waiting.
            let _ = sender.send(echo_five_times(&connection, caller).await);
        };
        bench.runtime.spawn(task).during("spawning a task")?;
        ends.push(end);
    }
    for end in ends {
        end.await.during("waiting for a task that calls")??;
    }
    Ok(())
}

async fn echo_five_times<C: Connection>(connection: &C, caller: u32) -> Outcome {
    for turn in 0..5 {
        let text = format!("{caller}/{turn}");
        expect_echo(&text, &ask(connection, &echo(&text)).await)?;
    }
    Ok(())
}

pub(super) async fn shows_server_errors<R: Connect>(bench: Bench<R>) -> Outcome {
    let connection = bench.connect().await?;
    let unknown = "0000000000000000000000000000000000000000";
    let cases = [("NOSCRIPT", cmd("EVALSHA").arg(unknown).arg(0).to_owned()), ("ERR", cmd("ECHO"))];
    for (code, command) in cases {
        let answer = ask(&connection, &command).await;
        let seen = answer.as_ref().err().and_then(redis::RedisError::code) == Some(code);
        must(seen, format_args!("what the server refuses with {code} was answered {answer:?}"))?;
        expect_echo("after", &ask(&connection, &echo("after")).await)?;
    }
    Ok(())
}

pub(super) async fn forgets_dropped_calls<R: Connect>(bench: Bench<R>) -> Outcome {
    let connection = bench.connect().await?;
    let key = key()?;
    // Some never polled, some dropped while they wait, some kept; all behind one that takes its time.
    let mut held_up = Box::pin(connection.call(slow(&key, ms(100))));
    let _ = held_up.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    let mut kept = Vec::new();
    for number in 0..30 {
        let text = number.to_string();
        let mut call = Box::pin(connection.call(echo(&text)));
        if number % 3 == 0 {
            continue;
        }
        let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        should(polled.is_pending(), format_args!("what waits behind a slow command was answered first"))?;
        if number % 3 == 1 {
            kept.push((text, call));
        }
    }
    drop(held_up);
    for (text, call) in kept {
        expect_echo(&text, &flat(call.await))?;
    }
    for number in 0..10 {
        let text = format!("later {number}");
        expect_echo(&text, &ask(&connection, &echo(&text)).await)?;
    }
    Ok(())
}

pub(super) async fn has_no_timeout<R: Connect>(bench: Bench<R>) -> Outcome {
    let connection = bench.connect().await?;
    let key = key()?;
    let (answer, took) = timed(&bench.runtime, ask(&connection, &slow(&key, SLOW))).await;
    must(answer == Ok(Value::Nil), format_args!("what took the server {SLOW:?} was answered {answer:?}"))?;
    let waited = took + ms(20) >= SLOW;
    should(waited, format_args!("what takes the server {SLOW:?} was answered after {took:?}"))
}

fn expect_echo(text: &str, answer: &RedisResult<Value>) -> Outcome {
    must(is_text(answer, text), format_args!("ECHO {text:?} was answered {answer:?}"))
}

/// More than the 500 ms that a connection of the `redis` crate waits unless it is told otherwise.
const SLOW: Duration = ms(700);
