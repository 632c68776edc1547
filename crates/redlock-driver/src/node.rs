//! One node, however it is reached.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use redlock_core::{Cause, CauseKind, Command, ConfigError, Fault, Instant, Reply};

use crate::guarded_memory::GuardedMemory;
use crate::hints::Watch;
use crate::recipient::{Passage, Recipient};
use crate::redis::{Connect, Connection, Link, Shared, Target, Words, node_name, parse_url, usable};
use crate::topology::{self, Clock};
use crate::{Address, MemoryServer, Runtime, SentinelNode, Transport};

/// One node of a lease: a Redis server, one logical Redis behind a connection that the user brings, or a
/// node in memory.
///
/// Most people never name this type: whatever implements [`IntoNode`] can be given to
/// [`Manager::single`](crate::Manager::single) and [`Manager::redlock`](crate::Manager::redlock).
/// Creating a node does no I/O.
#[derive(Clone)]
pub struct Node {
    name: Arc<str>,
    link: Arc<dyn NodeLink>,
    cluster: bool,
}

/// What can be made into a [`Node`]: a URL, a `redis::Client`, a [`SentinelNode`], a [`MemoryServer`], a
/// [`Node`].
pub trait IntoNode<R> {
    /// Makes the node, without any I/O.
    ///
    /// # Errors
    /// [`ConfigError::InvalidNode`] for an address that cannot be used.
    fn into_node(self, runtime: &R) -> Result<Node, ConfigError>;
}

impl Node {
    /// The primary that sentinels call `service`, as one logical node: see [`SentinelNode`].
    ///
    /// ```
    /// # use redlock_driver::Node;
    /// let node = Node::sentinel(["redis://sentinel-a:26379", "redis://sentinel-b:26379"], "mymaster")
    ///     .primary_like("redis://locker:secret@any");
    /// ```
    pub fn sentinel(
        sentinels: impl IntoIterator<Item = impl Into<Address>>,
        service: impl Into<String>,
    ) -> SentinelNode {
        SentinelNode::new(sentinels, service)
    }

    /// A node behind a connection that the user keeps alive: anything cloneable that can call Redis, such
    /// as a connection manager. `name` stands in reports and must differ between the nodes of a lease.
    ///
    /// The connection must not send a command a second time by itself: a `SET NX` that is repeated
    /// answers "taken", although the key is ours.
    pub fn connection(name: impl Into<Arc<str>>, connection: impl Connection) -> Self {
        let name = name.into();
        Self { link: Arc::new(Shared::new(connection)), name, cluster: false }
    }

    /// A Redis Cluster behind one connection, as one logical node. Lock and fencing counter must share a
    /// slot, which is checked before anything is sent.
    ///
    /// The connection must be made with retries set to zero, for the reason given at
    /// [`connection`](Self::connection): the `redis` crate's cluster client otherwise repeats a command
    /// up to 16 times.
    pub fn cluster(name: impl Into<Arc<str>>, connection: impl Connection) -> Self {
        Self { cluster: true, ..Self::connection(name, connection) }
    }

    /// A node behind a way of sending commands that is all the user's own.
    pub fn transport(name: impl Into<Arc<str>>, transport: impl Transport) -> Self {
        Self { name: name.into(), link: Arc::new(Own(transport)), cluster: false }
    }

    /// The node's name, without credentials.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) const fn is_cluster(&self) -> bool {
        self.cluster
    }

    /// The same node, with connections of its own and a restart guard.
    pub(crate) fn guarded(&self, guard: Duration) -> Result<Self, ConfigError> {
        let unsupported = || ConfigError::RestartGuardUnsupported { node: self.name.as_ref().into() };
        let link = self.link.guarded(guard).ok_or_else(unsupported)?;
        Ok(Self { name: Arc::clone(&self.name), link, cluster: self.cluster })
    }

    /// Sends a command if a connection is there that takes it at once; its answer is told to `to`. `None` if
    /// that takes more, and [`send`](Self::send) has to do it. The `words` may serve the same command to other
    /// nodes.
    pub(crate) fn hand_over(
        &self,
        now: Instant,
        command: &Command,
        to: &Arc<dyn Recipient>,
        words: &mut Words,
    ) -> Option<Passage> {
        self.link.hand_over(now, command, to, words)
    }

    /// A command that was handed over is not answered by its deadline. True if it is sent once more.
    pub(crate) fn overdue(&self, passage: Passage, command: &Command) -> bool {
        self.link.overdue(passage, command)
    }

    /// Nobody waits any more for the answer to a command that was handed over.
    pub(crate) fn forget(&self, passage: Passage) {
        self.link.forget(passage);
    }

    /// Sends a command, when the future is first polled, whatever that takes.
    pub(crate) fn send(&self, command: &Command) -> Answer {
        self.link.send(command)
    }

    pub(crate) fn close(&self) {
        self.link.close();
    }

    /// Watches a key, where the node can tell of its changes.
    pub(crate) fn watch(&self, key: &Arc<str>) -> Option<Box<dyn Watch>> {
        self.link.watch(key)
    }

    pub(crate) fn survey(
        &self,
        clock: Clock,
    ) -> impl Future<Output = topology::Survey> + Send + 'static + use<> {
        self.link.survey(clock)
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<R> IntoNode<R> for Node {
    fn into_node(self, _: &R) -> Result<Node, ConfigError> {
        Ok(self)
    }
}

impl<R: Connect> IntoNode<R> for redis::Client {
    fn into_node(self, runtime: &R) -> Result<Node, ConfigError> {
        usable(&self)?;
        let name = node_name(&self);
        let link = Link::new(runtime.clone(), self, Arc::clone(&name));
        Ok(Node { name, link: Arc::new(Arc::new(link)), cluster: false })
    }
}

impl<R: Connect> IntoNode<R> for SentinelNode {
    fn into_node(self, runtime: &R) -> Result<Node, ConfigError> {
        let sentinels = self.resolve()?;
        let name = sentinels.name();
        let link = Link::new(runtime.clone(), Target::Sentinel(sentinels), Arc::clone(&name));
        Ok(Node { name, link: Arc::new(Arc::new(link)), cluster: false })
    }
}

impl<R: Connect> IntoNode<R> for &str {
    fn into_node(self, runtime: &R) -> Result<Node, ConfigError> {
        parse_url(self)?.into_node(runtime)
    }
}

impl<R: Connect> IntoNode<R> for String {
    fn into_node(self, runtime: &R) -> Result<Node, ConfigError> {
        self.as_str().into_node(runtime)
    }
}

impl<R: Connect> IntoNode<R> for &String {
    fn into_node(self, runtime: &R) -> Result<Node, ConfigError> {
        self.as_str().into_node(runtime)
    }
}

impl<R: Runtime> IntoNode<R> for MemoryServer {
    fn into_node(self, runtime: &R) -> Result<Node, ConfigError> {
        let name = self.name().into();
        Ok(Node { name, link: Arc::new((runtime.clone(), self)), cluster: false })
    }
}

impl<R: Runtime> IntoNode<R> for &MemoryServer {
    fn into_node(self, runtime: &R) -> Result<Node, ConfigError> {
        self.clone().into_node(runtime)
    }
}

pub(crate) type Answer = Pin<Box<dyn Future<Output = Result<Reply, Fault>> + Send>>;

type Survey = Pin<Box<dyn Future<Output = topology::Survey> + Send>>;

/// What the kinds of nodes have in common.
trait NodeLink: Send + Sync {
    fn send(&self, command: &Command) -> Answer;

    fn hand_over(&self, _: Instant, _: &Command, _: &Arc<dyn Recipient>, _: &mut Words) -> Option<Passage> {
        None
    }

    fn overdue(&self, _: Passage, _: &Command) -> bool {
        false
    }

    fn forget(&self, _: Passage) {}

    fn close(&self) {}

    /// Watches a key; `None` where the node cannot tell of its changes, or does not want to watch more.
    fn watch(&self, _: &Arc<str>) -> Option<Box<dyn Watch>> {
        None
    }

    /// The same with a restart guard; `None` where a restart cannot be seen.
    fn guarded(&self, _: Duration) -> Option<Arc<dyn NodeLink>> {
        None
    }

    /// Asks the server about itself, if there is one. Takes as long as it takes.
    fn survey(&self, _: Clock) -> Survey {
        Box::pin(std::future::ready(Ok(None)))
    }
}

impl<R: Connect> NodeLink for Arc<Link<R>> {
    fn send(&self, command: &Command) -> Answer {
        Box::pin(Link::send(self, command))
    }

    fn hand_over(
        &self,
        now: Instant,
        command: &Command,
        to: &Arc<dyn Recipient>,
        words: &mut Words,
    ) -> Option<Passage> {
        Link::hand_over(self, now, command, to, words)
    }

    fn overdue(&self, passage: Passage, command: &Command) -> bool {
        Link::overdue(self, passage, command)
    }

    fn forget(&self, passage: Passage) {
        Link::forget(self, passage);
    }

    fn close(&self) {
        Link::close(self);
    }

    fn watch(&self, key: &Arc<str>) -> Option<Box<dyn Watch>> {
        Some(Box::new(self.listener().watch(key)?))
    }

    fn guarded(&self, guard: Duration) -> Option<Arc<dyn NodeLink>> {
        Some(Arc::new(Self::new(Link::guarded(self, guard))))
    }

    fn survey(&self, clock: Clock) -> Survey {
        let dialled = self.dial();
        Box::pin(async { topology::survey(clock, dialled.await?).await })
    }
}

impl<C: Connection> NodeLink for Shared<C> {
    fn send(&self, command: &Command) -> Answer {
        Box::pin(Self::send(self, command))
    }

    fn survey(&self, clock: Clock) -> Survey {
        Box::pin(topology::survey(clock, self.connection()))
    }
}

/// A transport of the user's.
struct Own<T>(T);

impl<T: Transport> NodeLink for Own<T> {
    fn send(&self, command: &Command) -> Answer {
        Box::pin(self.0.send(command))
    }
}

impl<R: Runtime> NodeLink for (R, MemoryServer) {
    fn send(&self, command: &Command) -> Answer {
        Box::pin(self.1.send(&self.0, command))
    }

    fn watch(&self, key: &Arc<str>) -> Option<Box<dyn Watch>> {
        Some(Box::new(self.1.watch(&self.0, key)))
    }

    fn guarded(&self, guard: Duration) -> Option<Arc<dyn NodeLink>> {
        Some(Arc::new(GuardedMemory::new(self.0.clone(), self.1.clone(), guard)))
    }
}

impl<R: Runtime> NodeLink for GuardedMemory<R> {
    fn send(&self, command: &Command) -> Answer {
        match self.check(command) {
            Ok(()) => Box::pin(self.server().send(self.runtime(), command)),
            Err(fault) => Box::pin(std::future::ready(Err(fault))),
        }
    }

    fn watch(&self, key: &Arc<str>) -> Option<Box<dyn Watch>> {
        Some(Box::new(self.server().watch(self.runtime(), key)))
    }

    fn guarded(&self, guard: Duration) -> Option<Arc<dyn NodeLink>> {
        Some(Arc::new(Self::new(self.runtime().clone(), self.server().clone(), guard)))
    }
}

/// Several nodes, in order: those that a command names by their numbers.
impl Transport for Arc<[Node]> {
    fn send(&self, command: &Command) -> impl Future<Output = Result<Reply, Fault>> + Send + 'static {
        let answer = self.get(command.node.index()).map(|node| node.send(command));
        async move {
            match answer {
                Some(answer) => answer.await,
                None => Err(Fault::NotExecuted(Cause::new(CauseKind::Unreachable))),
            }
        }
    }
}
