//! The task of a connection: it takes answers in, and writes what has gathered.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::Poll;

use super::wire::Wire;
use super::{Connect, Connection};
use crate::NotRunning;

/// Starts the task. It ends with the wire; if its runtime stops before that, the wire is cut.
pub(super) fn start<R: Connect>(runtime: &R, wire: &Arc<Wire<R::Connection>>) -> Result<(), NotRunning> {
    // Made before the task runs: a runtime that stops may drop it unpolled.
    let unfinished = Unfinished(Arc::downgrade(wire));
    runtime.spawn(async move { pump(&unfinished.0).await })
}

async fn pump<C: Connection>(wire: &Weak<Wire<C>>) {
    let mut gathered = false;
    poll_fn(|cx| {
        let Some(wire) = wire.upgrade() else { return Poll::Ready(()) };
        loop {
            let work = wire.poll(cx);
            if wire.was_cut().is_some() {
                return Poll::Ready(());
            }
            if !work {
                gathered = false;
                return Poll::Pending;
            }
            if !std::mem::replace(&mut gathered, true) {
                // Whatever else can run is let run first: it may have more to send.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            gathered = false;
            wire.write_on();
        }
    })
    .await;
}

struct Unfinished<C: Connection>(Weak<Wire<C>>);

impl<C: Connection> Drop for Unfinished<C> {
    fn drop(&mut self) {
        if let Some(wire) = self.0.upgrade()
            && wire.was_cut().is_none()
        {
            wire.fall_silent();
        }
    }
}
