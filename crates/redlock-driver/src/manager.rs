//! The entry point: a set of nodes and the settings for leases on them.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{Either, select};
use redlock_core::{Cause, CauseKind, Config, ConfigError, Error, Instant, LeaseMachine, LeaseSpec, Token};

use crate::cell::Cell;
use crate::common::Common;
use crate::courtesy::{Courtesy, Rest, Wait};
use crate::hints::{Hints, MANAGER_LEN, Presence};
use crate::leases::Leases;
use crate::redis::timing;
use crate::stats::Counters;
use crate::topology::{NodeFacts, TopologyReport};
use crate::turns::{Asking, Turns};
use crate::{IntoNode, Lease, Lock, Node, Runtime, Stats};

/// A set of nodes, and the settings that leases on them start from. Cheap to clone; all clones share the
/// connections.
///
/// Making one does no I/O and needs no runtime: connections are opened when they are first needed. A node
/// that is down costs its vote and nothing else.
pub struct Manager<R> {
    inner: Arc<Inner<R>>,
}

struct Inner<R> {
    common: Arc<Common<R>>,
    /// The beginning of its tokens, once one was needed.
    id: OnceLock<[u8; MANAGER_LEN]>,
    names: Arc<[Arc<str>]>,
    config: Config,
    turns: Arc<Turns>,
    courtesy: Arc<Courtesy>,
}

impl<R: Runtime + Default> Manager<R> {
    /// Leases on one logical Redis: a server, a Sentinel deployment ([`Node::sentinel`]), or a Cluster
    /// ([`Node::cluster`]).
    ///
    /// The only mode with fencing tokens. A lease is as available and as durable as that Redis is.
    ///
    /// # Errors
    /// [`ConfigError::InvalidNode`] for an address that cannot be used,
    /// [`ConfigError::RestartGuardUnsupported`] for a node on which the restart guard cannot be kept.
    pub fn single(node: impl IntoNode<R>, config: Config) -> Result<Self, ConfigError> {
        Self::single_on(R::default(), node, config)
    }

    /// Leases held by a majority of independent primaries (the Redlock algorithm): an odd number of them,
    /// three or more. They survive the loss of a minority.
    ///
    /// # Errors
    /// [`ConfigError::NodeCount`] for fewer than three nodes or an even number,
    /// [`ConfigError::DuplicateNode`] for an address given twice, [`ConfigError::InvalidNode`] for one
    /// that cannot be used, [`ConfigError::RestartGuardUnsupported`] for one on which the restart guard
    /// cannot be kept.
    pub fn redlock<N: IntoNode<R>>(
        nodes: impl IntoIterator<Item = N>,
        config: Config,
    ) -> Result<Self, ConfigError> {
        Self::redlock_on(R::default(), nodes, config)
    }
}

impl<R: Runtime> Manager<R> {
    /// [`single`](Self::single) on a runtime handle of your own.
    ///
    /// # Errors
    /// As for [`single`](Self::single).
    pub fn single_on(runtime: R, node: impl IntoNode<R>, config: Config) -> Result<Self, ConfigError> {
        let node = node.into_node(&runtime)?;
        Self::new(runtime, [node].into(), config)
    }

    /// [`redlock`](Self::redlock) on a runtime handle of your own.
    ///
    /// # Errors
    /// As for [`redlock`](Self::redlock).
    pub fn redlock_on<N: IntoNode<R>>(
        runtime: R,
        nodes: impl IntoIterator<Item = N>,
        config: Config,
    ) -> Result<Self, ConfigError> {
        let nodes =
            nodes.into_iter().map(|node| node.into_node(&runtime)).collect::<Result<Arc<[_]>, _>>()?;
        if nodes.len() < 3 {
            return Err(ConfigError::NodeCount { given: nodes.len() });
        }
        let manager = Self::new(runtime, nodes, config)?;
        // The count and the names are checked where every lease is described.
        LeaseSpec::new("resource", Arc::clone(&manager.inner.names), manager.inner.config.clone())?;
        Ok(manager)
    }

    fn new(runtime: R, nodes: Arc<[Node]>, config: Config) -> Result<Self, ConfigError> {
        let nodes = match config.restart_guard() {
            None => nodes,
            Some(guard) => nodes.iter().map(|node| node.guarded(guard)).collect::<Result<_, _>>()?,
        };
        let names = nodes.iter().map(|node| Arc::clone(node.name())).collect();
        let (leases, counters) = (Leases::new(), Counters::default());
        let common = Arc::new(Common { runtime, nodes, leases, counters });
        let (turns, courtesy) = (Arc::default(), Arc::default());
        let inner = Inner { common, id: OnceLock::new(), names, config, turns, courtesy };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Describes a lease on `resource`, which is the key that it stands under. Nothing is sent yet; a
    /// mistake in the name is reported when the lease is asked for.
    pub fn lock(&self, resource: impl Into<Arc<str>>) -> Lock<R> {
        Lock::new(self.clone(), resource.into())
    }

    /// The settings that leases start from.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// What was done so far, in numbers.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.inner.common.counters.snapshot(self.inner.common.leases.count())
    }

    /// Asks every node about itself, and says what is wrong or risky: a node that cannot be reached, a
    /// replica, one server given twice under different names, shards of one cluster, a server that may evict
    /// or forget locks, clocks that differ, a server that was started less than a ttl ago.
    ///
    /// For start-up checks and monitoring; leases do not wait for it. It takes at most `limit`, over
    /// connections of its own. Uptimes and clocks are judged by the manager's ttl. Needs the right to `INFO`,
    /// and says less without the rights to `TIME`, `CONFIG GET` and, on a cluster, `CLUSTER NODES`.
    ///
    /// # Errors
    /// [`Error::NoRuntime`] where no runtime is running.
    pub async fn verify(&self, limit: Duration) -> Result<TopologyReport, Error> {
        let runtime = &self.inner.common.runtime;
        let deadline = runtime.now().saturating_add(limit);
        let mut asked = Vec::with_capacity(self.inner.common.nodes.len());
        for node in self.inner.common.nodes.iter() {
            let clock = runtime.clone();
            let survey = node.survey(Arc::new(move || clock.now()));
            let (sender, answer) = oneshot::channel();
            let clock = runtime.clone();
            let ask = async move {
                let outcome = match select(pin!(survey), pin!(clock.sleep_until(deadline))).await {
                    Either::Left((survey, _)) => survey,
                    Either::Right(_) => Err(Cause::new(CauseKind::Timeout)),
                };
                // Whoever asked may have gone away.
                let _ = sender.send(outcome);
            };
            runtime.spawn(ask).map_err(|_| Error::NoRuntime)?;
            asked.push((Arc::clone(node.name()), answer));
        }
        let mut nodes = Vec::with_capacity(asked.len());
        for (name, answer) in asked {
            // A task that ended without an answer has lost its runtime.
            let server = answer.await.map_err(|oneshot::Canceled| Error::NoRuntime)?;
            nodes.push(NodeFacts { name, server });
        }
        Ok(TopologyReport::new(nodes, &self.inner.config))
    }

    /// Gives up every lease, finishes the clean-ups that are running and closes the connections. Takes at
    /// most one operation timeout; what could not be taken back by then expires with its ttl.
    ///
    /// Leases that are still held are lost with [`LossReason::Closed`](redlock_core::LossReason::Closed),
    /// acquires under way end as cancelled, later ones fail with [`Error::Closed`]. All clones are closed.
    /// Dropping the future does not stop the closing.
    pub async fn close(&self) {
        let inner = Arc::clone(&self.inner);
        let idle = inner.common.leases.close();
        self.inner.turns.close();
        let (sender, closed) = oneshot::channel();
        let finish = async move {
            let deadline = inner.common.runtime.now().saturating_add(inner.config.operation_timeout());
            let timeout = pin!(inner.common.runtime.sleep_until(deadline));
            match select(idle, timeout).await {
                Either::Left(_) | Either::Right(_) => inner.stop(),
            }
            // The caller may have stopped waiting.
            let _ = sender.send(());
        };
        if self.inner.common.runtime.spawn(finish).is_err() {
            return self.inner.stop();
        }
        // It ends without an answer only if its runtime does, and then there is nothing left to close.
        let _ = closed.await;
    }

    pub(crate) fn names(&self) -> &Arc<[Arc<str>]> {
        &self.inner.names
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.inner.common.nodes.iter().any(Node::is_cluster)
    }

    /// Waits for the turn within this process, asks for the lease and waits for the answer.
    pub(crate) async fn acquire(&self, spec: LeaseSpec, asking: Asking) -> Result<Lease<R>, Error> {
        let inner = &self.inner;
        let begun = inner.common.runtime.now();
        let config = spec.config().clone();
        let (turn, waited) =
            inner.turns.await_turn(&inner.common.runtime, spec.resource(), asking, &config).await?;
        let (base, seed) = random(inner.id()?)?;
        let (hints, rested) =
            self.let_others_in(turn.is_some().then_some(waited), begun, asking, &spec, base).await?;
        let waited = waited.saturating_add(rested);
        let presence =
            Presence::new(Arc::clone(&inner.courtesy), hints.as_deref().map_or(Wait::None, Hints::wait));
        let machine = LeaseMachine::new(spec, base, seed);
        let common = Arc::clone(&inner.common);
        let timekeeper = common.leases.timekeeper(&common.runtime);
        let cell = Arc::new(Cell::new(common, timekeeper, machine, turn, presence, hints));
        inner.common.leases.enter(&cell)?;
        // From here on dropping this future drops the lease, which takes back what was asked for.
        let lease = Lease::new(Arc::clone(&cell));
        match cell.acquire(asking.patience(&config, begun, waited))?.await {
            Ok(Ok(())) => Ok(lease),
            Ok(Err(error)) => Err(error),
            Err(oneshot::Canceled) => Err(Error::NoRuntime),
        }
    }
}

impl<R: Runtime> Manager<R> {
    /// Leaves the lease to those of other processes who wait for it, if somebody here has just had it. The wait
    /// itself runs on the runtime, whatever polls this future.
    async fn let_others_in(
        &self,
        waited_for_turn: Option<Duration>,
        begun: Instant,
        asking: Asking,
        spec: &LeaseSpec,
        token: Token,
    ) -> Result<(Option<Box<Hints<R>>>, Duration), Error> {
        let (runtime, courtesy) = (&self.inner.common.runtime, &self.inner.courtesy);
        let (config, now) = (spec.config(), runtime.now());
        // Whatever is seen or not, nobody rests for longer than the pause between two attempts can be.
        let longest = config.retry_delay().saturating_mul(3) / 2;
        let end = begun.saturating_add(asking.longest_wait(config)).min(now.saturating_add(longest));
        // Who asks out of turn has no time for courtesies.
        let passed_on = waited_for_turn.map(|waited| !waited.is_zero());
        let rest = passed_on
            .and_then(|passed_on| courtesy.before(spec.resource(), passed_on, now, config.retry_delay()));
        let Some(rest) = rest.filter(|_| now < end) else { return Ok((None, Duration::ZERO)) };
        let hints = Hints::new(runtime.clone(), Arc::clone(&self.inner.common.nodes), spec, token);
        let mut hints = Box::new(hints);
        let (mut sender, rested) = oneshot::channel();
        let clock = runtime.clone();
        let wait = async move {
            let others = async {
                match rest {
                    Rest::Others(expected, until) => hints.rest(expected, until.min(end)).await,
                    Rest::Until(until) => timing::reach(&clock, until.min(end)).await,
                }
            };
            if let Either::Right(_) = select(pin!(others), sender.cancellation()).await {
                // The caller has gone.
                return;
            }
            // It may have gone just now.
            let _ = sender.send(hints);
        };
        runtime.spawn(wait).map_err(|_| Error::NoRuntime)?;
        let hints = rested.await.map_err(|oneshot::Canceled| Error::NoRuntime)?;
        Ok((Some(hints), runtime.now().saturating_since(now)))
    }
}

impl<R: Runtime> Inner<R> {
    fn id(&self) -> Result<[u8; MANAGER_LEN], Error> {
        if let Some(id) = self.id.get() {
            return Ok(*id);
        }
        let mut id = [0; MANAGER_LEN];
        getrandom::fill(&mut id).map_err(|_| Error::NoRandomness)?;
        Ok(*self.id.get_or_init(|| id))
    }

    fn stop(&self) {
        self.common.leases.stop();
        for node in self.common.nodes.iter() {
            node.close();
        }
    }
}

/// The base of a lease's tokens, and the seed of its jitter. The tokens of a manager begin alike, so that others
/// can tell who takes turns with them; 12 random bytes of each are its own.
fn random(id: [u8; MANAGER_LEN]) -> Result<(Token, u64), Error> {
    // In one go: the system is asked for each lease.
    let mut bytes = [0_u8; Token::LEN + size_of::<u64>()];
    getrandom::fill(&mut bytes).map_err(|_| Error::NoRandomness)?;
    let (mut token, mut seed) = ([0_u8; Token::LEN], [0_u8; size_of::<u64>()]);
    let (first, last) = bytes.split_at(Token::LEN);
    token.copy_from_slice(first);
    seed.copy_from_slice(last);
    for (byte, of_manager) in token.iter_mut().zip(id) {
        *byte = of_manager;
    }
    Ok((Token::from_bytes(token), u64::from_ne_bytes(seed)))
}

impl<R> Clone for Manager<R> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<R> fmt::Debug for Manager<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { names, config, .. } = &*self.inner;
        f.debug_struct("Manager").field("nodes", names).field("config", config).finish_non_exhaustive()
    }
}
