//! Being woken when a lease that somebody else has goes, while one waits for it.

mod sight;

use std::sync::Arc;
use std::task::{Context, Poll};

use redlock_core::NodeId;

pub(crate) use self::sight::{Mark, Sight, Watch};
use crate::Node;

/// What a waiting caller sees of its key at the nodes, and when that is a reason to ask for the lease again.
///
/// The first news of a held key is taken for its end and is a hint at once: it is what there is to gain. If it
/// was not, because the holder renews, the next look finds the same holder; after that, news from its node is
/// first looked into, so that a renewal costs one read and no attempt. What changes after the key was seen to be
/// free is somebody taking it, and looked into as well.
///
/// A watch lives from the first pause to the end of the waiting. What it hears while the nodes are being asked
/// counts in the next pause, and a key of which nothing was heard need not be read again.
pub(crate) struct Hints {
    nodes: Arc<[Node]>,
    key: Arc<str>,
    /// By node. None of them before the first pause.
    posts: Vec<Post>,
}

/// What there is of a node.
#[derive(Default)]
enum Post {
    #[default]
    Empty,
    Watched(Lookout),
    /// It tells nothing, for this pause.
    Deaf,
}

struct Lookout {
    watch: Box<dyn Watch>,
    seen: Option<Sight>,
    /// Who was seen before that, and whether it is one that renews.
    holder: Option<Mark>,
    renews: bool,
}

impl Hints {
    /// Hints about a key at these nodes. Nothing is watched yet.
    pub(crate) const fn new(nodes: Arc<[Node]>, key: Arc<str>) -> Self {
        Self { nodes, key, posts: Vec::new() }
    }

    /// Whether the key may have gone at this node, as far as is not known yet. To be called in a pause only, and
    /// within a task of the runtime.
    pub(crate) fn poll(&mut self, node: NodeId, context: &mut Context<'_>) -> Poll<()> {
        let Some(known) = self.nodes.get(node.index()) else { return Poll::Pending };
        if self.posts.len() < self.nodes.len() {
            self.posts.resize_with(self.nodes.len(), Post::default);
        }
        let Some(post) = self.posts.get_mut(node.index()) else { return Poll::Pending };
        if let Post::Empty = post {
            *post = known.watch(&self.key).map_or(Post::Deaf, |watch| Post::Watched(Lookout::new(watch)));
        }
        let Post::Watched(lookout) = post else { return Poll::Pending };
        match lookout.poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(true) => Poll::Ready(()),
            Poll::Ready(false) => {
                *post = Post::Deaf;
                Poll::Pending
            }
        }
    }

    /// The pause is over. Nodes that could tell nothing are tried again in the next one.
    pub(crate) fn pause_over(&mut self) {
        for post in &mut self.posts {
            if let Post::Deaf = post {
                *post = Post::Empty;
            }
        }
    }
}

impl Lookout {
    const fn new(watch: Box<dyn Watch>) -> Self {
        Self { watch, seen: None, holder: None, renews: false }
    }

    /// Ends with a hint, or with the news that there will be none.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        loop {
            let Poll::Ready(sight) = self.watch.poll_sight(context) else { return Poll::Pending };
            let before = self.seen.replace(sight);
            match sight {
                Sight::Free => return Poll::Ready(true),
                Sight::Held(mark) => {
                    self.renews = self.holder == Some(mark);
                    self.holder = Some(mark);
                }
                Sight::Changed if matches!(before, Some(Sight::Held(_))) && !self.renews => {
                    return Poll::Ready(true);
                }
                Sight::Changed => {}
                Sight::Over => return Poll::Ready(false),
            }
        }
    }
}

#[cfg(test)]
mod tests;
