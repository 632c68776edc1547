//! A node behind a connection that was handed to us.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use futures_util::poll;
use redlock_core::{Command, Fault, Reply};

use super::backlog::{Backlog, Entry};
use super::dialect::Dialect;
use super::phrasing::Phrasing;
use super::wire::Answer;
use super::{Connection, lock};

/// One node, reached by a connection that somebody else made and looks after: a connection manager, a
/// cluster's connection, or anything else that is a [`Connection`].
///
/// It is used as it is: nothing is dialled, replaced or given up here, and no deadline is watched. What
/// is sent is sent once, except in another form after a refusal: see [`Dialect`]. The servers behind it may
/// differ in what they take. Unanswered commands are bounded as on a [`Link`](super::Link).
pub(crate) struct Shared<C> {
    inner: Arc<Inner<C>>,
}

struct Inner<C> {
    connection: C,
    dialect: Dialect,
    backlog: Mutex<Backlog>,
}

impl<C: Connection> Shared<C> {
    /// A node behind this connection. Does no I/O.
    #[must_use]
    pub(crate) fn new(connection: C) -> Self {
        let (dialect, backlog) = (Dialect::new(Arc::default()), Mutex::default());
        Self { inner: Arc::new(Inner { connection, dialect, backlog }) }
    }

    /// The connection itself, for questions besides the commands of leases.
    pub(crate) fn connection(&self) -> C {
        self.inner.connection.clone()
    }

    /// Sends one command, when the future is first polled, and waits for the answer for as long as it
    /// takes. Dropping the future forgets the command; it may be carried out all the same.
    pub(crate) fn send(
        &self,
        command: &Command,
    ) -> impl Future<Output = Result<Reply, Fault>> + Send + 'static + use<C> {
        let inner = Arc::clone(&self.inner);
        let command = command.clone();
        async move { inner.carry_out(&command).await }
    }
}

impl<C: Connection> Inner<C> {
    async fn carry_out(&self, command: &Command) -> Result<Reply, Fault> {
        let place = Place { backlog: &self.backlog, entry: lock(&self.backlog).enter(&command.intent)? };
        let mut phrasing = Phrasing::new(&self.dialect, &command.intent);
        loop {
            let reply = self.call(phrasing.words(command)).await;
            let wanted = || lock(&self.backlog).wants(&place.entry);
            if let Some(reply) = phrasing.hear(&self.dialect, command, wanted, reply) {
                return reply;
            }
        }
    }

    async fn call(&self, words: redis::Cmd) -> Result<Reply, Fault> {
        let mut call = pin!(self.connection.call(words));
        let (result, at_once) = match poll!(call.as_mut()) {
            Poll::Ready(result) => (result, true),
            Poll::Pending => (call.await, false),
        };
        Answer::of(result.map(Some).as_mut().map(Option::take), at_once).reply
    }
}

/// A command's place among the unanswered ones.
struct Place<'a> {
    backlog: &'a Mutex<Backlog>,
    entry: Entry,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        lock(self.backlog).leave(&self.entry);
    }
}

impl<C> Clone for Shared<C> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<C> fmt::Debug for Shared<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::backlog::MOST_OTHERS;
    use super::super::testing::{Bench, Wired, delete, extend, fenced, set};
    use super::super::{Connect, Connection};
    use super::*;
    use futures_util::FutureExt;
    use redis::Value;
    use redlock_core::{Cause, CauseKind};

    async fn shared() -> (Bench, Shared<Wired>) {
        let bench = Bench::new([]);
        let connection = bench.connect(&Bench::client()).await.unwrap();
        (bench, Shared::new(connection))
    }

    #[tokio::test(start_paused = true)]
    async fn sends_once_and_waits_beyond_the_deadline() {
        let (bench, shared) = shared().await;
        let sent = tokio::spawn(shared.send(&set(1, 10)));
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        assert_eq!(bench.calls(0), ["SET 01"]);
        bench.answer(0, 0, Ok(Value::Okay));
        assert_eq!(sent.await.unwrap(), Ok(Reply::Ok));
    }

    #[tokio::test(start_paused = true)]
    async fn an_unknown_script_follows_in_full() {
        let (bench, shared) = shared().await;
        let sent = tokio::spawn(shared.clone().send(&fenced(1, 10)));
        tokio::task::yield_now().await;
        let noscript = redis::parse_redis_value(b"-NOSCRIPT No matching script\r\n");
        bench.answer(0, 0, noscript);
        tokio::task::yield_now().await;
        assert_eq!(bench.calls(0), ["EVALSHA 01", "EVAL 01"]);
        bench.answer(0, 1, Ok(Value::Int(1)));
        assert_eq!(sent.await.unwrap(), Ok(Reply::Int(1)));
    }

    /// Two shards of a cluster in the middle of an upgrade, by turns.
    #[tokio::test(start_paused = true)]
    async fn the_servers_behind_it_may_differ() {
        let (bench, shared) = shared().await;
        let mut calls = 0;
        let mut expected = Vec::new();
        // The newer one takes all; from what the older one does not take, one falls back, and stays.
        let script: &[(&str, &[u8])] = &[("EVALSHA 01", b":1\r\n")];
        let turns: [&[(&str, &[u8])]; 4] = [
            &[("DELIFEQ 01", b":1\r\n")],
            &[
                ("DELIFEQ 01", b"-ERR unknown command 'DELIFEQ'\r\n"),
                ("DELEX 01", b"-ERR unknown command 'DELEX'\r\n"),
                ("EVALSHA 01", b":1\r\n"),
            ],
            script,
            script,
        ];
        for turn in turns {
            let sent = tokio::spawn(shared.send(&delete(1, 10)));
            for (call, answer) in turn {
                tokio::task::yield_now().await;
                expected.push(*call);
                assert_eq!(bench.calls(0), expected);
                bench.answer(0, calls, redis::parse_redis_value(answer));
                calls += 1;
            }
            assert_eq!(sent.await.unwrap(), Ok(Reply::Int(1)));
        }
    }

    /// What looks after this connection may have dialled anew; a proxy that hung up on a command would do so
    /// again.
    #[tokio::test(start_paused = true)]
    async fn a_command_under_which_it_broke_is_not_tried_again() {
        let (bench, shared) = shared().await;
        let sent = tokio::spawn(shared.send(&delete(1, 10)));
        tokio::task::yield_now().await;
        bench.hang_up(0);
        assert!(matches!(sent.await.unwrap(), Err(Fault::Unknown(_))));
        let again = tokio::spawn(shared.send(&delete(1, 10)));
        tokio::task::yield_now().await;
        bench.answer(0, 1, Ok(Value::Int(1)));
        assert_eq!(again.await.unwrap(), Ok(Reply::Int(1)));
        assert_eq!(bench.calls(0), ["DELIFEQ 01", "EVALSHA 01"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_broken_connection_stays_in_use() {
        let (bench, shared) = shared().await;
        let sent = tokio::spawn(shared.send(&set(1, 10)));
        tokio::task::yield_now().await;
        bench.hang_up(0);
        let lost = Cause::with_detail(CauseKind::Disconnected, "broken pipe");
        assert_eq!(sent.await.unwrap(), Err(Fault::Unknown(lost)));
        let again = tokio::spawn(shared.send(&set(2, 10)));
        tokio::task::yield_now().await;
        bench.answer(0, 1, Ok(Value::Nil));
        assert_eq!(again.await.unwrap(), Ok(Reply::Nil));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_unanswered_is_bounded() {
        let (_bench, shared) = shared().await;
        let _sent: Vec<_> = (0..MOST_OTHERS).map(|_| tokio::spawn(shared.send(&extend(1, 10)))).collect();
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        let overloaded = Some(Err(Fault::NotExecuted(Cause::new(CauseKind::Overloaded))));
        assert_eq!(shared.send(&set(1, 10)).now_or_never(), overloaded);
        assert_eq!(shared.send(&delete(1, 10)).now_or_never(), None);
    }

    #[test]
    fn a_node_is_a_cheap_handle() {
        fn handle<T: Clone + Send + Sync + 'static>() {}
        fn connection<C: Connection>() {
            handle::<Shared<C>>();
        }
        connection::<Wired>();
    }
}
