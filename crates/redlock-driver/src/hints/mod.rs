//! Being woken when a lease that somebody else has goes, while one waits for it.

mod lookout;
mod others;
mod presence;
mod sight;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::{Either, select};
use redlock_core::{Instant, LeaseSpec, NodeId, Token};

use self::lookout::{Lookout, News};
use self::others::Others;
pub(crate) use self::presence::Presence;
pub(crate) use self::sight::{MANAGER_LEN, Mark, Sight, Watch};
use crate::courtesy::{self, Wait};
use crate::redis::timing;
use crate::{Node, Runtime};

/// What a waiting caller sees of its key at the nodes, and when that is a reason to ask for the lease again.
///
/// A watch lives from the first pause to the end of the waiting. What it hears while the nodes are being asked
/// counts in the next pause, and a key of which nothing was heard need not be read again.
pub(crate) struct Hints<R> {
    runtime: R,
    nodes: Arc<[Node]>,
    key: Arc<str>,
    /// Whether it is wanted at all.
    wanted: bool,
    others: Others,
    /// There was a pause, so somebody was in the way.
    paused: bool,
    /// By node. None of them before the first look.
    posts: Vec<Post<R>>,
}

/// What there is of a node.
#[derive(Default)]
enum Post<R> {
    #[default]
    Empty,
    Watched(Lookout<R>),
    /// It tells nothing, for this pause.
    Deaf,
}

impl<R: Runtime> Hints<R> {
    /// Hints about the key of this lease at these nodes, if they are wanted. Nothing is watched yet.
    pub(crate) fn new(runtime: R, nodes: Arc<[Node]>, spec: &LeaseSpec, token: Token) -> Self {
        let (key, wanted) = (Arc::clone(spec.resource()), spec.config().wake_on_release());
        let others = Others::than(Mark::of(token.to_hex().as_bytes()).owner());
        Self { runtime, nodes, key, wanted, others, paused: false, posts: Vec::new() }
    }

    /// Lets so many others than us have the lease first, as far as one node shows them, but does not wait for
    /// it longer than `until`. To be called within a task of the runtime.
    pub(crate) async fn rest(&mut self, expected: u32, until: Instant) {
        self.others.expected = expected;
        let runtime = self.runtime.clone();
        let hinted = poll_fn(|context| match self.look(NodeId::new(0), context) {
            Some(Poll::Ready(())) => Poll::Ready(true),
            Some(Poll::Pending) => Poll::Pending,
            None => Poll::Ready(false),
        });
        match select(pin!(hinted), pin!(timing::reach(&runtime, until))).await {
            Either::Left((true, _)) | Either::Right(_) => {}
            // Nothing to be seen. They had time to come.
            Either::Left((false, _)) => {
                let left = courtesy::leave(expected, 0).unwrap_or_default();
                timing::reach(&runtime, until.min(runtime.now().saturating_add(left))).await;
            }
        }
    }

    /// Whether the key may have gone at this node, as far as is not known yet. To be called in a pause only, and
    /// within a task of the runtime.
    pub(crate) fn poll(&mut self, node: NodeId, context: &mut Context<'_>) -> Poll<()> {
        self.paused = true;
        self.look(node, context).unwrap_or(Poll::Pending)
    }

    /// The same; `None` where nothing is to be seen.
    fn look(&mut self, node: NodeId, context: &mut Context<'_>) -> Option<Poll<()>> {
        let known = self.nodes.get(node.index()).filter(|_| self.wanted)?;
        if self.posts.len() < self.nodes.len() {
            self.posts.resize_with(self.nodes.len(), Post::default);
        }
        let post = self.posts.get_mut(node.index())?;
        if let Post::Empty = post {
            let watch = known.watch(&self.key);
            *post =
                watch.map_or(Post::Deaf, |watch| Post::Watched(Lookout::new(self.runtime.clone(), watch)));
        }
        let Post::Watched(lookout) = post else { return None };
        match lookout.poll(&mut self.others, context) {
            Poll::Pending => Some(Poll::Pending),
            Poll::Ready(News::Hint) => Some(Poll::Ready(())),
            Poll::Ready(News::None) => {
                *post = Post::Deaf;
                None
            }
        }
    }

    /// The nodes are being asked. Those that could tell nothing are tried again in the next pause.
    pub(crate) fn pause_over(&mut self) {
        for post in &mut self.posts {
            if let Post::Deaf = post {
                *post = Post::Empty;
            }
        }
    }

    /// What was seen of others so far.
    pub(crate) fn wait(&self) -> Wait {
        if self.posts.iter().any(|post| matches!(post, Post::Watched(_))) {
            Wait::Seen(self.others.count())
        } else if self.paused {
            Wait::Unseen
        } else {
            Wait::None
        }
    }
}
