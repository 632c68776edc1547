//! One node, as a waiting caller sees it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;

use super::others::Others;
use super::sight::{Mark, Sight, Watch};
use crate::Runtime;
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
    /// The key is free, and that is a hint when this ends.
    hint_in: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// How long until it is the next one.
    again: Duration,
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
    pub(super) const fn new(runtime: R, watch: Box<dyn Watch>) -> Self {
        Self { runtime, watch, simply_held: false, holder: None, hint_in: None, again: FIRST_AGAIN }
    }

    /// Ends with the next hint. Some of the others may have to go first.
    pub(super) fn poll(&mut self, others: &mut Others, context: &mut Context<'_>) -> Poll<News> {
        while let Poll::Ready(sight) = self.watch.poll_sight(context) {
            (self.hint_in, self.again) = (None, FIRST_AGAIN);
            let simply_held = std::mem::take(&mut self.simply_held);
            match sight {
                Sight::Free => match others.leave() {
                    None => return Poll::Ready(self.hint()),
                    Some(left_to_others) => self.hint_in(left_to_others),
                },
                Sight::Held(mark) => {
                    let renews = self.holder.replace(mark) == Some(mark);
                    // What we have left there ourselves, and are about to delete, makes no hint when it goes.
                    self.simply_held = !renews && others.are(mark.owner());
                    others.see(mark.owner());
                }
                Sight::Changed if simply_held && others.leave().is_none() => {
                    return Poll::Ready(News::Hint);
                }
                Sight::Changed => {}
                Sight::Over => return Poll::Ready(News::None),
            }
        }
        match &mut self.hint_in {
            Some(end) => end.poll_unpin(context).map(|()| self.hint()),
            None => Poll::Pending,
        }
    }

    /// A hint that the key is free; and for as long as it is and nobody has taken the hint, another one from time
    /// to time. That costs nothing: that it is not free any more is heard.
    fn hint(&mut self) -> News {
        self.hint_in(self.again);
        self.again = self.again.saturating_mul(2).min(LAST_AGAIN);
        News::Hint
    }

    fn hint_in(&mut self, span: Duration) {
        let runtime = self.runtime.clone();
        self.hint_in = Some(async move { timing::pause(&runtime, span).await }.boxed());
    }
}

const FIRST_AGAIN: Duration = Duration::from_millis(2);
const LAST_AGAIN: Duration = Duration::from_millis(32);

#[cfg(test)]
mod tests;
