//! A server in this process, for tests and demonstrations.

mod watch;

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use redlock_core::{Command, Fault, Instant, MemoryNode, Pttl, Reply};

use crate::Runtime;

/// A [`MemoryNode`] that stands in for a Redis server in tests and demonstrations. It lives in this
/// process, on the clock of a runtime: under a paused clock, a lease of 30 s expires in microseconds.
///
/// Clones are handles to one and the same server. Each new server has a name of its own.
///
/// The methods are for the test that looks on: they do not go over the simulated network, and take
/// effect at once. What is not here by name goes through [`with`](Self::with).
///
/// ```
/// use redlock_driver::{MemoryServer, Runtime};
///
/// fn somebody_else_has_it(runtime: impl Runtime) {
///     let server = MemoryServer::new(runtime);
///     server.set("orders:42:lock", "somebody else", None);
///     assert_eq!(server.get("orders:42:lock").as_deref(), Some("somebody else"));
///     server.hang(); // takes commands, answers none, until `server.resume()`
/// }
/// ```
#[derive(Clone)]
pub struct MemoryServer {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    clock: Box<dyn Fn() -> Instant + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    node: MemoryNode,
    last_ticket: u64,
    /// The commands that somebody still waits for.
    waiting: BTreeMap<u64, Waiting>,
    /// Those who look at a key. Each is to look again after anything that may have changed it.
    watching: BTreeMap<u64, Waker>,
}

enum Waiting {
    ForAnswer(Option<Waker>),
    Answered(Result<Reply, Fault>),
}

impl MemoryServer {
    /// A server without keys and without faults, on this runtime's clock. It can be used from other
    /// runtimes as well.
    #[must_use]
    pub fn new(runtime: impl Runtime) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
        let shared = Shared {
            name: format!("memory-{number}"),
            clock: Box::new(move || runtime.now()),
            state: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// `memory-` and a number that no other server of this process has.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Does anything to the node: for the switches and looks that have no method here. The closure gets
    /// the server's time. It must not use this server otherwise, which would be a deadlock.
    ///
    /// What was due before is done before, and what becomes due is done at once.
    pub fn with<T>(&self, act: impl FnOnce(&mut MemoryNode, Instant) -> T) -> T {
        let mut state = self.shared.lock();
        let now = (self.shared.clock)();
        let mut wakers = state.catch_up(now);
        let result = act(&mut state.node, now);
        wakers.extend(state.catch_up(now));
        // Those who still wait have to look again at how long.
        wakers.extend(state.waiting.values_mut().filter_map(Waiting::take_waker));
        wakers.extend(state.watchers());
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        result
    }

    /// Sends a command: in this call, so that the order of calls is the order of arrival. The future
    /// ends with the answer, which may be never. Dropping it forgets the answer and nothing else.
    pub(crate) fn send<R: Runtime>(
        &self,
        runtime: &R,
        command: &Command,
    ) -> impl Future<Output = Result<Reply, Fault>> + Send + 'static + use<R> {
        let mut pending = Pending::new(Arc::clone(&self.shared), runtime.clone(), command);
        poll_fn(move |context| pending.poll(context))
    }
}

/// # Faults
/// See the methods of the same names of [`MemoryNode`].
impl MemoryServer {
    /// Stops the server as SIGSTOP does: commands are taken, and carried out after
    /// [`resume`](Self::resume).
    pub fn hang(&self) {
        self.with(|node, _| node.hang());
    }

    /// Lets a server that hangs go on.
    pub fn resume(&self) {
        self.with(MemoryNode::resume);
    }

    /// Whether the port is closed.
    pub fn refuse(&self, refuse: bool) {
        self.with(|node, _| node.refuse(refuse));
    }

    /// Whether the server is a read-only replica.
    pub fn set_read_only(&self, read_only: bool) {
        self.with(|node, _| node.set_read_only(read_only));
    }

    /// Whether commands get lost on the way there.
    pub fn lose_requests(&self, lose: bool) {
        self.with(|node, _| node.lose_requests(lose));
    }

    /// Whether answers get lost on the way back.
    pub fn lose_replies(&self, lose: bool) {
        self.with(|node, _| node.lose_replies(lose));
    }

    /// How long commands take to arrive.
    pub fn set_request_delay(&self, delay: Duration) {
        self.with(|node, _| node.set_request_delay(delay));
    }

    /// How long answers take to arrive.
    pub fn set_reply_delay(&self, delay: Duration) {
        self.with(|node, _| node.set_reply_delay(delay));
    }

    /// Restarts the server, which forgets all keys. Commands without an answer fail with an unknown
    /// outcome.
    pub fn restart_empty(&self) {
        self.with(|node, _| node.restart_empty());
    }

    /// The same, but the keys are kept.
    pub fn restart_with_data(&self) {
        self.with(|node, _| node.restart_with_data());
    }

    /// Puts the server's clock forward.
    pub fn jump_clock_forward(&self, by: Duration) {
        self.with(|node, _| node.jump_clock_forward(by));
    }

    /// Puts the server's clock back.
    pub fn jump_clock_back(&self, by: Duration) {
        self.with(|node, _| node.jump_clock_back(by));
    }
}

/// # Looking and changing by hand
impl MemoryServer {
    /// The key's value.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<String> {
        self.with(|node, now| node.get(now, key).map(String::from))
    }

    /// How long the key has to live.
    #[must_use]
    pub fn pttl(&self, key: &str) -> Pttl {
        self.with(|node, now| node.pttl(now, key))
    }

    /// The keys that there are, in order.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.with(|node, now| node.keys(now).map(String::from).collect())
    }

    /// Sets a key, whatever was there before. Without a `ttl` it stays.
    pub fn set(&self, key: &str, value: &str, ttl: Option<Duration>) {
        self.with(|node, now| node.set(now, key, value, ttl));
    }

    /// Deletes a key, whatever its value. Says whether there was one.
    pub fn remove(&self, key: &str) -> bool {
        self.with(|node, now| node.remove(now, key))
    }
}

/// The name only: a server's values are tokens.
impl fmt::Debug for MemoryServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryServer").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A test's assertion that failed within `with` is no reason to fail elsewhere too.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Hands the answers that have arrived to those who wait for them. Returns whom to wake, which must
    /// be done outside the lock.
    fn catch_up(&mut self, now: Instant) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some((ticket, result)) = self.node.poll(now) {
            if let Some(waiting) = self.waiting.get_mut(&ticket) {
                wakers.extend(waiting.take_waker());
                *waiting = Waiting::Answered(result);
            }
            wakers.extend(self.watchers());
        }
        wakers
    }

    fn watchers(&mut self) -> impl Iterator<Item = Waker> + use<> {
        std::mem::take(&mut self.watching).into_values()
    }

    fn submit(&mut self, now: Instant, command: &Command) -> u64 {
        self.last_ticket += 1;
        let waiting = match self.node.submit(now, self.last_ticket, command) {
            Ok(()) => Waiting::ForAnswer(None),
            Err(fault) => Waiting::Answered(Err(fault)),
        };
        self.waiting.insert(self.last_ticket, waiting);
        self.last_ticket
    }
}

impl Waiting {
    const fn take_waker(&mut self) -> Option<Waker> {
        match self {
            Self::ForAnswer(waker) => waker.take(),
            Self::Answered(_) => None,
        }
    }
}

/// One command that was sent, and whoever waits for its answer. There is no task behind the server:
/// each of those who wait sees to it that the node goes on in time.
struct Pending<R> {
    shared: Arc<Shared>,
    runtime: R,
    ticket: u64,
    timer: Option<Timer>,
}

struct Timer {
    /// On the server's clock.
    at: Instant,
    sleep: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl<R: Runtime> Pending<R> {
    fn new(shared: Arc<Shared>, runtime: R, command: &Command) -> Self {
        let mut state = shared.lock();
        let now = (shared.clock)();
        // Answers that nobody waits for any more would count against the node's bound.
        let wakers = state.catch_up(now);
        let ticket = state.submit(now, command);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        Self { shared, runtime, ticket, timer: None }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Reply, Fault>> {
        // A timer may end a little early. It counts as in time, or this would go in circles.
        let mut earliest = Instant::EPOCH;
        loop {
            let next = match self.look(earliest, context.waker()) {
                Look::Answered(result) => return Poll::Ready(result),
                Look::Waiting(next) => next,
            };
            let Some(next) = next else {
                self.timer = None;
                return Poll::Pending;
            };
            let timer = match self.timer.take() {
                Some(timer) if timer.at == next.at => timer,
                _ => {
                    // The server's clock may count from another epoch than this runtime's.
                    let deadline = self.runtime.now().saturating_add(next.left);
                    Timer { at: next.at, sleep: Box::pin(self.runtime.sleep_until(deadline)) }
                }
            };
            if self.timer.insert(timer).sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.timer = None;
            earliest = next.at;
        }
    }

    fn look(&self, earliest: Instant, waker: &Waker) -> Look {
        let mut state = self.shared.lock();
        let now = (self.shared.clock)().max(earliest);
        let wakers = state.catch_up(now);
        let mut stale = None;
        let look = match state.waiting.remove(&self.ticket) {
            Some(Waiting::Answered(result)) => Look::Answered(result),
            before => {
                stale = before;
                state.waiting.insert(self.ticket, Waiting::ForAnswer(Some(waker.clone())));
                let next = state.node.next_timeout();
                Look::Waiting(next.map(|at| Next { at, left: at.saturating_since(now) }))
            }
        };
        drop(state);
        // A waker may be the last owner of a task that waits for this server too: like waking,
        // dropping one is nothing to be done under the lock.
        drop(stale);
        wakers.into_iter().for_each(Waker::wake);
        look
    }
}

enum Look {
    Answered(Result<Reply, Fault>),
    Waiting(Option<Next>),
}

/// When the server has something to do.
struct Next {
    /// On the server's clock.
    at: Instant,
    left: Duration,
}

impl<R> Drop for Pending<R> {
    fn drop(&mut self) {
        // In two steps, so that a waker in there is dropped outside the lock.
        let forgotten = self.shared.lock().waiting.remove(&self.ticket);
        drop(forgotten);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NotRunning;
    use futures_util::future::{join_all, select};
    use futures_util::task::noop_waker;
    use redlock_core::{CauseKind, CommandId, Intent, NodeId, Token, Ttl};
    use std::pin::pin;

    const OURS: Token = Token::from_bytes([1; Token::LEN]);
    const THEIRS: Token = Token::from_bytes([2; Token::LEN]);

    /// Tokio's clock and timer, counted from an epoch of each value's own.
    #[derive(Clone, Copy)]
    struct Paused {
        epoch: tokio::time::Instant,
        /// By how much timers end too early.
        grain: Duration,
    }

    impl Paused {
        fn new() -> Self {
            Self { epoch: tokio::time::Instant::now(), grain: Duration::ZERO }
        }
    }

    impl Runtime for Paused {
        fn now(&self) -> Instant {
            Instant::from_epoch(self.epoch.elapsed())
        }

        fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + Send + 'static {
            tokio::time::sleep_until(self.epoch + deadline.since_epoch().saturating_sub(self.grain))
        }

        fn spawn(&self, _: impl Future<Output = ()> + Send + 'static) -> Result<(), NotRunning> {
            Err(NotRunning)
        }
    }

    fn command(intent: Intent) -> Command {
        Command {
            id: CommandId::new(0),
            node: NodeId::new(0),
            deadline: Instant::EPOCH,
            key: "lock".into(),
            intent,
        }
    }

    fn set(token: Token) -> Command {
        command(Intent::SetNxPx { token, ttl: Ttl::from_millis(1_000).unwrap() })
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// The answer and how long it took; `None` if it is not there within a minute.
    async fn timed<T>(answer: impl Future<Output = T>) -> Option<(T, Duration)> {
        let start = tokio::time::Instant::now();
        let answer = tokio::time::timeout(millis(60_000), answer).await.ok()?;
        Some((answer, start.elapsed()))
    }

    #[tokio::test(start_paused = true)]
    async fn answers_come_in_the_order_of_the_calls() {
        let runtime = Paused::new();
        let server = MemoryServer::new(runtime);
        let ours = server.send(&runtime, &set(OURS));
        let theirs = server.send(&runtime, &set(THEIRS));
        assert_eq!(theirs.await, Ok(Reply::Nil));
        assert_eq!(ours.await, Ok(Reply::Ok));
        assert_eq!(server.get("lock").as_deref(), Some(OURS.to_hex().as_str()));
        assert!(server.shared.lock().waiting.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn keys_expire_without_anybody_sending() {
        let runtime = Paused::new();
        let server = MemoryServer::new(runtime);
        server.send(&runtime, &set(OURS)).await.unwrap();
        tokio::time::advance(millis(999)).await;
        assert_eq!(server.pttl("lock"), Pttl::Expires(millis(1)));
        tokio::time::advance(millis(1)).await;
        assert_eq!((server.get("lock"), server.pttl("lock")), (None, Pttl::NoKey));
        assert!(server.keys().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn delays_take_the_time_they_say() {
        let runtime = Paused::new();
        let server = MemoryServer::new(runtime);
        server.set_request_delay(millis(30));
        server.set_reply_delay(millis(12));
        assert_eq!(timed(server.send(&runtime, &set(OURS))).await, Some((Ok(Reply::Ok), millis(42))));
        assert_eq!(server.pttl("lock"), Pttl::Expires(millis(988)));
    }

    #[tokio::test(start_paused = true)]
    async fn many_wait_at_once_and_each_gets_its_own_answer() {
        let runtime = Paused::new();
        let server = MemoryServer::new(runtime);
        let sent = (0..50).map(|number| {
            server.set_request_delay(millis(100 - number));
            tokio::spawn(timed(server.send(&runtime, &set(OURS.for_attempt(number as u32)))))
        });
        let answers = join_all(sent).await;
        for (number, answer) in answers.into_iter().enumerate() {
            // The last one overtakes all.
            let reply = if number == 49 { Reply::Ok } else { Reply::Nil };
            assert_eq!(answer.unwrap(), Some((Ok(reply), millis(100 - number as u64))));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_order_stands_even_when_the_first_of_those_who_wait_gives_up() {
        let runtime = Paused::new();
        let server = MemoryServer::new(runtime);
        server.set_request_delay(millis(100));
        let (first, second) = (server.send(&runtime, &set(OURS)), server.send(&runtime, &set(THEIRS)));
        let second = tokio::spawn(timed(second));
        assert!(tokio::time::timeout(millis(50), first).await.is_err());
        assert_eq!(second.await.unwrap(), Some((Ok(Reply::Nil), millis(100))));
    }

    #[tokio::test(start_paused = true)]
    async fn dropping_the_future_forgets_the_answer_and_not_the_command() {
        let runtime = Paused::new();
        let server = MemoryServer::new(runtime);
        server.set_request_delay(millis(100));
        drop(server.send(&runtime, &set(OURS)));
        assert!(server.shared.lock().waiting.is_empty());
        tokio::time::advance(millis(600)).await;
        assert_eq!(server.pttl("lock"), Pttl::Expires(millis(500)), "executed on time, not when looked at");
        tokio::time::advance(millis(500)).await;
        assert_eq!(server.get("lock"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_nobody_waits_for_do_not_pile_up() {
        let runtime = Paused::new();
        let server = MemoryServer::new(runtime);
        for _ in 0..MemoryNode::MAX_PENDING {
            drop(server.send(&runtime, &set(OURS)));
        }
        assert_eq!(server.send(&runtime, &set(THEIRS)).await, Ok(Reply::Nil));

        server.hang();
        let held = (0..MemoryNode::MAX_PENDING).map(|_| server.send(&runtime, &set(OURS)));
        let held = held.collect::<Vec<_>>();
        let refused = server.send(&runtime, &set(OURS)).await;
        assert!(matches!(refused, Err(Fault::NotExecuted(cause)) if cause.kind() == CauseKind::Overloaded));
        drop(held);
    }

    #[tokio::test(start_paused = true)]
    async fn a_switch_wakes_those_who_wait() {
        let runtime = Paused::new();
        let server = MemoryServer::new(runtime);
        server.hang();
        let resumed = tokio::spawn(timed(server.send(&runtime, &set(OURS))));
        tokio::time::sleep(millis(5_000)).await;
        server.resume();
        assert_eq!(resumed.await.unwrap(), Some((Ok(Reply::Ok), millis(5_000))));

        server.hang();
        let ended = tokio::spawn(timed(server.send(&runtime, &set(THEIRS))));
        tokio::time::sleep(millis(100)).await;
        server.with(|node, now| node.hang_until(now.saturating_add(millis(2_000))));
        assert_eq!(ended.await.unwrap(), Some((Ok(Reply::Ok), millis(2_100))));

        server.hang();
        let broken = tokio::spawn(timed(server.send(&runtime, &set(OURS))));
        tokio::time::sleep(millis(100)).await;
        server.restart_empty();
        let (result, elapsed) = broken.await.unwrap().unwrap();
        assert!(matches!(result, Err(Fault::Unknown(cause)) if cause.kind() == CauseKind::Disconnected));
        assert_eq!(elapsed, millis(100));
        assert!(server.keys().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_other_switches_reach_the_node() {
        let runtime = Paused::new();
        let server = MemoryServer::new(runtime);
        server.refuse(true);
        let refused = server.send(&runtime, &set(OURS)).await;
        assert!(matches!(refused, Err(Fault::NotExecuted(cause)) if cause.kind() == CauseKind::Unreachable));
        server.refuse(false);
        server.set_read_only(true);
        let reply = server.send(&runtime, &set(OURS)).await;
        assert!(matches!(reply, Ok(Reply::Error(error)) if error.code() == "READONLY"));
        server.set_read_only(false);

        server.lose_requests(true);
        assert_eq!(timed(server.send(&runtime, &set(OURS))).await, None);
        assert_eq!(server.get("lock"), None);
        server.lose_requests(false);
        server.lose_replies(true);
        let lost = server.send(&runtime, &set(OURS));
        assert!(server.get("lock").is_some());
        server.lose_replies(false);
        assert_eq!(timed(lost).await, None);

        server.set("lock", "by hand", Some(millis(100)));
        server.restart_with_data();
        server.jump_clock_back(millis(50));
        server.jump_clock_forward(millis(20));
        assert_eq!(server.pttl("lock"), Pttl::Expires(millis(130)));
        assert!(server.remove("lock") && !server.remove("lock"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_runtime_with_another_epoch_and_early_timers_gets_its_answer_in_time() {
        let server = MemoryServer::new(Paused::new());
        tokio::time::advance(millis(7_000)).await;
        let other = Paused { grain: millis(3), ..Paused::new() };
        server.set_request_delay(millis(50));
        assert_eq!(timed(server.send(&other, &set(OURS))).await, Some((Ok(Reply::Ok), millis(47))));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_may_be_waited_for_in_one_task_after_another() {
        let runtime = Paused::new();
        let server = MemoryServer::new(runtime);
        server.set_request_delay(millis(100));
        let mut answer = Box::pin(server.send(&runtime, &set(OURS)));
        assert!(answer.as_mut().poll(&mut Context::from_waker(&noop_waker())).is_pending());
        let (elapsed, answer) = match select(pin!(tokio::time::sleep(millis(10))), answer).await {
            futures_util::future::Either::Left(((), answer)) => (millis(10), answer),
            futures_util::future::Either::Right(_) => panic!("too early"),
        };
        let rest = tokio::spawn(timed(answer)).await.unwrap();
        assert_eq!(rest, Some((Ok(Reply::Ok), millis(100) - elapsed)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_in_a_closure_leaves_the_server_usable() {
        let runtime = Paused::new();
        let server = MemoryServer::new(runtime);
        let clone = server.clone();
        std::thread::spawn(move || clone.with(|_, _| panic!("a test's assertion"))).join().unwrap_err();
        assert_eq!(server.send(&runtime, &set(OURS)).await, Ok(Reply::Ok));
    }

    #[tokio::test(start_paused = true)]
    async fn each_server_has_a_name_and_shows_nothing_else() {
        let (a, b) = (MemoryServer::new(Paused::new()), MemoryServer::new(Paused::new()));
        a.set("lock", OURS.to_hex().as_str(), None);
        assert!(a.name().starts_with("memory-") && a.name() != b.name());
        assert_eq!(a.clone().name(), a.name());
        assert_eq!(format!("{a:?}"), format!("MemoryServer {{ name: {:?}, .. }}", a.name()));
    }
}
