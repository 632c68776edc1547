//! A lease in the user's hands.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_channel::oneshot;
use redlock_core::{Error, FencingToken, LeaseMachine, LockLost, LossReason, Token};

use crate::cell::{Cell, Ending};
use crate::{Lost, Runtime};

/// A lease that was acquired. Held until the earliest of: it is released or dropped, a quorum of nodes
/// says that it is not ours, the local clock reaches the end of its validity.
///
/// Dropping it gives it back in the background; [`release`](Self::release) also says how that went.
#[must_use = "a lease that is dropped is given back"]
pub struct Lease<R: Runtime> {
    cell: Arc<Cell<R>>,
}

impl<R: Runtime> Lease<R> {
    pub(crate) const fn new(cell: Arc<Cell<R>>) -> Self {
        Self { cell }
    }

    /// Whether the lease is held now. Reads the clock; touches no network and waits for nobody.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.valid_for() > Duration::ZERO
    }

    /// How long the lease is still held if nothing more is heard of any node; zero when it is not. Reads
    /// the clock; touches no network and waits for nobody.
    #[must_use]
    pub fn valid_for(&self) -> Duration {
        self.cell.valid_for()
    }

    /// The fencing token, if the lock takes one: for the protected resource to refuse older ones.
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.cell.fencing()
    }

    /// The resource: the key that the lock stands under.
    #[must_use]
    pub fn resource(&self) -> &str {
        self.cell.spec().resource()
    }

    /// The value of the key at the nodes that granted it. Whoever knows it can release the lease.
    #[must_use]
    pub fn token(&self) -> Token {
        self.cell.machine(LeaseMachine::token)
    }

    /// Ends when the lease is lost, with the reason; never if it is released first.
    ///
    /// Drop or release a lost lease soon: some nodes may still have its key, and keep others waiting until
    /// that expires.
    pub fn lost(&self) -> Lost<R> {
        Lost::new(&self.cell)
    }

    /// Runs `work` for as long as the lease is held. If it is lost, the work is dropped where it awaits.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work; the lease stays as it is.
    ///
    /// # Errors
    /// [`LockLost`] when the lease was lost before the work had ended, also when the work ended in the
    /// same moment: work whose end the lease did not see may have been overtaken by another holder.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, LockLost> {
        let mut lost = self.lost();
        let mut work = pin!(work);
        poll_fn(|cx| {
            if let Poll::Ready(reason) = std::pin::Pin::new(&mut lost).poll(cx) {
                return Poll::Ready(Err(LockLost { reason }));
            }
            let Poll::Ready(done) = work.as_mut().poll(cx) else { return Poll::Pending };
            // The work may have blocked for longer than the lease was valid.
            match self.cell.loss() {
                Some(reason) => Poll::Ready(Err(LockLost { reason })),
                None => Poll::Ready(Ok(done)),
            }
        })
        .await
    }

    /// Sets the lease's time to live to `ttl` from now on, and that of later automatic renewals. It takes
    /// a quorum of the nodes; no new fencing token is taken.
    ///
    /// After an earlier, shorter extension of which nobody knows what became of it, the lease may be granted
    /// less than was asked for: [`valid_for`](Self::valid_for) says how much.
    ///
    /// # Cancel safety
    /// Once polled, the extension goes on in the background when the future is dropped.
    ///
    /// # Errors
    /// [`Error::NotExtended`] when too few nodes answered: the lease is still held, to its old end (or the
    /// new one, if that is sooner). [`Error::LockLost`] when it is over. [`Error::Config`] for a ttl out of
    /// bounds, [`Error::ExtensionPending`] while an earlier one is under way; nothing is sent then.
    pub async fn extend(&self, ttl: Duration) -> Result<(), Error> {
        end_of(self.cell.extend(ttl)?).await
    }

    /// Gives the lease back. From the first poll on it is not held.
    ///
    /// Answers as soon as it is certain how it went, which takes no answer of the slowest node; the rest
    /// is cleaned up in the background.
    ///
    /// # Cancel safety
    /// The lease is given back even if the future is dropped, or never polled.
    ///
    /// # Errors
    /// [`Error::LockLost`] when the lease had ended before: somebody else may have held it in between.
    /// [`Error::NotReleased`] when too few nodes are known to be free of it; it ends there with its ttl.
    pub async fn release(self) -> Result<(), Error> {
        end_of(self.cell.release()?).await
    }
}

async fn end_of(ending: Ending) -> Result<(), Error> {
    match ending.await {
        Ok(ending) => ending,
        // The task is gone, and with it the runtime.
        Err(oneshot::Canceled) => Err(LockLost { reason: LossReason::Closed }.into()),
    }
}

impl<R: Runtime> Drop for Lease<R> {
    fn drop(&mut self) {
        self.cell.abandon();
    }
}

impl<R: Runtime> fmt::Debug for Lease<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("resource", &self.resource())
            .field("valid_for", &self.valid_for())
            .finish_non_exhaustive()
    }
}
