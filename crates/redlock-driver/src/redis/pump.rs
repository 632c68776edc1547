//! The task of a connection: it takes answers in, and writes what has gathered.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::Poll;

use super::line::Outcome;
use super::wire::Wire;
use super::{Connect, Connection};
use crate::NotRunning;

/// Starts the task. It ends with the wire; if its runtime stops before that, the wire is cut.
pub(super) fn start<R: Connect>(runtime: &R, wire: &Arc<Wire<R::Connection>>) -> Result<(), NotRunning> {
    // Made before the task runs: a runtime that stops may drop it unpolled.
    let mut pump = Pump::of(wire);
    runtime.spawn(async move { pump.run().await })
}

pub(super) struct Pump<C: Connection> {
    wire: Weak<Wire<C>>,
    /// Answers that are yet to be told.
    left: Option<Outcome>,
}

impl<C: Connection> Pump<C> {
    pub(super) fn of(wire: &Arc<Wire<C>>) -> Self {
        Self { wire: Arc::downgrade(wire), left: None }
    }

    pub(super) async fn run(&mut self) {
        let mut gathered = false;
        poll_fn(|cx| {
            let Some(wire) = self.wire.upgrade() else { return Poll::Ready(()) };
            loop {
                let work = wire.poll(&mut self.left, cx);
                if wire.was_cut().is_some() {
                    self.tell_all(&wire);
                    return Poll::Ready(());
                }
                if self.left.is_some() {
                    // Others can run in between, and what they have said is on its way meanwhile.
                    if work {
                        wire.write_on();
                    }
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
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

    fn tell_all(&mut self, wire: &Arc<Wire<C>>) {
        if let Some(mut outcome) = self.left.take() {
            wire.conclude(&mut outcome, usize::MAX);
        }
    }
}

impl<C: Connection> Drop for Pump<C> {
    fn drop(&mut self) {
        let Some(wire) = self.wire.upgrade() else { return };
        self.tell_all(&wire);
        if wire.was_cut().is_none() {
            wire.fall_silent();
        }
    }
}
