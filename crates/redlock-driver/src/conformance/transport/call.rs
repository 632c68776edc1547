//! `send`.

use std::task::{Context, Waker};

use futures_channel::oneshot;
use redlock_core::{Vote, interpret};

use super::super::key::{FENCE, key};
use super::super::outcome::{During as _, Failure, Outcome, must, should};
use super::super::time::{LATE, by, ms, pause};
use super::bench::{Bench, GENEROUS, LONG, delete, extend, set, token};
use crate::{Intent, Runtime, Token, Transport, Ttl};

pub(super) async fn carries_every_command<R: Runtime, T: Transport>(bench: Bench<R, T>) -> Outcome {
    let (key, ours, theirs) = (key()?, token()?, token()?);
    let (yes, no) = (Vote::Yes(None), Vote::No);
    let steps = [
        (delete(ours), &no, "no key"),
        (extend(ours, LONG)?, &no, "no key"),
        (set(ours, LONG)?, &yes, "no key"),
        (set(theirs, LONG)?, &no, "a key of another token"),
        (extend(theirs, LONG)?, &no, "a key of another token"),
        (delete(theirs), &no, "a key of another token"),
        (extend(ours, LONG)?, &yes, "the key of this token"),
        (set(ours, LONG)?, &no, "the key of this token"),
        (fenced(theirs)?, &no, "a key of another token"),
        (delete(ours), &yes, "the key of this token"),
        (delete(ours), &no, "a key that was deleted"),
    ];
    for (intent, expected, case) in steps {
        let name = intent.name();
        let vote = bench.vote(&key, intent).await?;
        must(vote == *expected, format_args!("{name} with {case} was answered as {vote:?}"))?;
    }
    let mut last = None;
    for _ in 0..5 {
        let Vote::Yes(Some(number)) = bench.vote(&key, fenced(ours)?).await? else {
            return Err(Failure::certain(
                "fenced-acquire of a key that is not there yielded no fencing token",
            ));
        };
        must(last.is_none_or(|last| last < number), format_args!("{number:?} came after {last:?}"))?;
        last = Some(number);
        let deleted = bench.vote(&key, delete(ours)).await?;
        must(deleted == yes, format_args!("fenced-acquire left no key with its token"))?;
    }
    Ok(())
}

fn fenced(token: Token) -> Outcome<Intent> {
    Ok(Intent::FencedAcquire { fence: FENCE.into(), token, ttl: Ttl::new(LONG).during("a ttl")? })
}

pub(super) async fn lets_keys_expire<R: Runtime, T: Transport>(bench: Bench<R, T>) -> Outcome {
    let (short, extended, shortened) = (key()?, key()?, key()?);
    let token = token()?;
    let ttl = ms(150);
    for (key, before, after) in
        [(&short, ttl, None), (&extended, ttl, Some(LONG)), (&shortened, LONG, Some(ttl))]
    {
        bench.vote(key, set(token, before)?).await?;
        if let Some(after) = after {
            bench.vote(key, extend(token, after)?).await?;
        }
    }
    let early = bench.vote(&short, set(token, LONG)?).await?;
    should(early == Vote::No, format_args!("a key of {ttl:?} was gone at once"))?;
    pause(&bench.runtime, ttl + LATE).await;
    for (key, vote, case) in [
        (&short, Vote::No, "set for 150 ms"),
        (&extended, Vote::Yes(None), "set for 150 ms and extended to 30 s"),
        (&shortened, Vote::No, "set for 30 s and cut down to 150 ms"),
    ] {
        let seen = bench.vote(key, delete(token)).await?;
        must(seen == vote, format_args!("a key {case} was, after 250 ms, deleted with the answer {seen:?}"))?;
    }
    Ok(())
}

/// Half of the commands are refused, so that an answer to another is noticed.
pub(super) async fn serves_many_callers<R: Runtime, T: Transport>(bench: Bench<R, T>) -> Outcome {
    let mut ends = Vec::new();
    for _ in 0..100 {
        let (sender, end) = oneshot::channel();
        let bench = bench.clone();
        let runtime = bench.runtime.clone();
        let task = async move {
            // The check may have ended without waiting.
            let _ = sender.send(take_and_give_back(&bench).await);
        };
        runtime.spawn(task).during("spawning a task")?;
        ends.push(end);
    }
    for end in ends {
        end.await.during("waiting for a task that sends")??;
    }
    Ok(())
}

async fn take_and_give_back<R: Runtime, T: Transport>(bench: &Bench<R, T>) -> Outcome {
    let (key, ours, theirs) = (key()?, token()?, token()?);
    for (intent, yes) in [
        (set(ours, LONG)?, true),
        (set(theirs, LONG)?, false),
        (extend(ours, LONG)?, true),
        (delete(theirs), false),
        (delete(ours), true),
    ] {
        let name = intent.name();
        let vote = bench.vote(&key, intent).await?;
        must((vote == Vote::No) != yes, format_args!("one of many, {name} was answered as {vote:?}"))?;
    }
    Ok(())
}

/// Keeps every other answer, which are the refusals.
pub(super) async fn forgets_dropped_calls<R: Runtime, T: Transport>(bench: Bench<R, T>) -> Outcome {
    let taken = key()?;
    let ours = token()?;
    bench.vote(&taken, set(ours, LONG)?).await?;
    let mut kept = Vec::new();
    for number in 0..30 {
        let (key, intent) = match number % 2 {
            0 => (key()?, set(token()?, GENEROUS)?),
            _ => (taken.clone(), set(token()?, GENEROUS)?),
        };
        let mut sent = bench.send(&key, &intent);
        let polled = sent.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if number % 2 == 1 && polled.is_pending() {
            kept.push((intent, sent));
        }
    }
    for (intent, sent) in kept {
        let reply = by(&bench.runtime, GENEROUS, sent).await;
        let reply = reply.ok_or_else(|| Failure::likely("a command was not answered within two seconds"))?;
        let vote = interpret(&intent, reply);
        must(
            vote == Vote::No,
            format_args!("beside commands that were dropped, one to refuse got {vote:?}"),
        )?;
    }
    let deleted = bench.vote(&taken, delete(ours)).await?;
    must(
        deleted == Vote::Yes(None),
        format_args!("after commands that were dropped a delete got {deleted:?}"),
    )
}
