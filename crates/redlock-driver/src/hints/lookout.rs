//! One node, as a waiting caller sees it.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;

use super::sight::{Mark, Owner, Sight, Watch};
use crate::Runtime;
use crate::courtesy::{self, MOST_OTHERS};
use crate::redis::timing;

/// Makes hints of what is seen of a key.
///
/// The first news of a held key is taken for its end and is a hint at once: it is what there is to gain. If it
/// was not, because the holder renews, the next look finds the same holder; after that, news is first looked
/// into, so that a renewal costs one read and no attempt. So is what changes after the key was seen to be free,
/// which is somebody taking it, or to be ours, and everything while others are to go first.
pub(super) struct Lookout<R> {
    runtime: R,
    watch: Box<dyn Watch>,
    /// The last sight was of somebody who has it and does not renew.
    simply_held: bool,
    /// Who was last seen to have it.
    holder: Option<Mark>,
    /// Who is none of the others.
    us: Owner,
    /// Who has had it, up to a limit.
    others: Vec<Owner>,
    /// The key is free, and is left to others until this ends.
    left_to_others: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// What a look has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// The key may have gone.
    Hint,
    /// There will be no more hints.
    None,
}

impl<R: Runtime> Lookout<R> {
    pub(super) const fn new(runtime: R, watch: Box<dyn Watch>, us: Owner) -> Self {
        let others = Vec::new();
        Self { runtime, watch, simply_held: false, holder: None, us, others, left_to_others: None }
    }

    /// How many others were seen to have the lease.
    pub(super) fn others(&self) -> u32 {
        u32::try_from(self.others.len()).unwrap_or(u32::MAX)
    }

    /// Ends with the next hint. `expected` is how many others are to go first.
    pub(super) fn poll(&mut self, expected: u32, context: &mut Context<'_>) -> Poll<News> {
        while let Poll::Ready(sight) = self.watch.poll_sight(context) {
            self.left_to_others = None;
            let simply_held = std::mem::take(&mut self.simply_held);
            match sight {
                Sight::Free => match courtesy::leave(expected, self.others()) {
                    None => return Poll::Ready(News::Hint),
                    Some(span) => {
                        let runtime = self.runtime.clone();
                        let left = async move { timing::pause(&runtime, span).await };
                        self.left_to_others = Some(left.boxed());
                    }
                },
                Sight::Held(mark) => {
                    let renews = self.holder.replace(mark) == Some(mark);
                    let owner = mark.owner();
                    // What we have left there ourselves, and are about to delete, makes no hint when it goes.
                    self.simply_held = !renews && owner != self.us;
                    if owner != self.us && !self.others.contains(&owner) && self.others() < MOST_OTHERS {
                        self.others.push(owner);
                    }
                }
                Sight::Changed if simply_held && courtesy::leave(expected, self.others()).is_none() => {
                    return Poll::Ready(News::Hint);
                }
                Sight::Changed => {}
                Sight::Over => return Poll::Ready(News::None),
            }
        }
        let Some(left) = &mut self.left_to_others else { return Poll::Pending };
        left.poll_unpin(context).map(|()| {
            self.left_to_others = None;
            News::Hint
        })
    }
}

#[cfg(test)]
mod tests;
