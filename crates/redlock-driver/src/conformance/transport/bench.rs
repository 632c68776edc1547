//! The node at the other end, and what the checks ask of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use redlock_core::{Vote, interpret};

use super::super::outcome::{During as _, Failure, Outcome};
use super::super::time::by;
use crate::{Command, CommandId, Fault, Intent, NodeId, Reply, Runtime, Token, Transport, Ttl};

pub(super) struct Bench<R, T> {
    pub(super) runtime: R,
    pub(super) transport: Arc<T>,
}

impl<R: Runtime, T: Transport> Bench<R, T> {
    /// Sends, and yields what the answer means.
    pub(super) async fn vote(&self, key: &str, intent: Intent) -> Outcome<Vote> {
        let sent = self.send(key, &intent);
        let reply = by(&self.runtime, GENEROUS, sent).await;
        let name = intent.name();
        let unanswered = || Failure::likely(format_args!("{name} was not answered within {GENEROUS:?}"));
        match interpret(&intent, reply.ok_or_else(unanswered)?) {
            Vote::Fault(fault) => Err(Failure::likely(format_args!("{name} failed: {}", fault.cause()))),
            vote => Ok(vote),
        }
    }

    pub(super) fn send(&self, key: &str, intent: &Intent) -> BoxFuture<'static, Result<Reply, Fault>> {
        // Far from the numbers that a lease gives to its commands.
        static COUNT: AtomicU64 = AtomicU64::new(1 << 32);
        let id = CommandId::new(COUNT.fetch_add(1, Ordering::Relaxed));
        let deadline = self.runtime.now().saturating_add(GENEROUS);
        let (node, key, intent) = (NodeId::new(0), key.into(), intent.clone());
        self.transport.send(&Command { id, node, deadline, key, intent }).boxed()
    }
}

impl<R: Clone, T> Clone for Bench<R, T> {
    fn clone(&self) -> Self {
        Self { runtime: self.runtime.clone(), transport: Arc::clone(&self.transport) }
    }
}

/// A token that no other command has.
pub(super) fn token() -> Outcome<Token> {
    let mut bytes = [0; Token::LEN];
    getrandom::fill(&mut bytes).during("random numbers")?;
    Ok(Token::from_bytes(bytes))
}

pub(super) fn set(token: Token, ttl: Duration) -> Outcome<Intent> {
    Ok(Intent::SetNxPx { token, ttl: Ttl::new(ttl).during("a ttl")? })
}

pub(super) fn extend(token: Token, ttl: Duration) -> Outcome<Intent> {
    Ok(Intent::CompareAndPexpire { token, ttl: Ttl::new(ttl).during("a ttl")? })
}

pub(super) const fn delete(token: Token) -> Intent {
    Intent::CompareAndDelete { token }
}

/// A ttl that does not end while a check runs.
pub(super) const LONG: Duration = Duration::from_secs(30);

/// How long what should take no time may take, before it is said never to come.
pub(super) const GENEROUS: Duration = Duration::from_secs(2);
