//! A runtime on tokio's clock, timer and tasks that is wrong in one way at a time.

mod clock;
mod sleep;
mod task;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use futures_util::future::Shared;

use crate::{Instant, NotRunning, Runtime};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Right,
    ClockStandsStill,
    ClockGoesBack,
    ClockIsSlow,
    ClockStartsWithEachClone,
    ClockStartsWithEachThread,
    ClockPanicsElsewhere,
    SleepsEndEarlyBy(u64),
    SleepsEndLateBy(u64),
    SleepsTakeAtLeast(u64),
    SleepsPanicInThePast,
    SleepsStartAtTheFirstPoll,
    SleepsEndInTheOrderOfTheirMaking,
    SleepsAreAHundredAtMost,
    SleepsWakeTheFirstWaker,
    SleepsEndWhenAnotherIsDropped,
    SleepsPanicAtTheEndOfTime,
    SleepsEndAtTheEndOfTime,
    SpawnDrops,
    SpawnForgets,
    SpawnBlocks,
    SpawnBlocksOnAThread,
    SpawnPanicsElsewhere,
    SpawnDropsElsewhere,
    TasksStartLate,
    TasksRunOneByOne,
    TasksCannotSpawn,
    TasksAreDeafToThreads,
    TasksEndWithAnothersPanic,
    TasksStopWithAnothersPanic,
    TasksAreDroppedWhenOld,
    TasksSayTheyAreElsewhere,
}

pub(super) struct Wrong {
    kind: Kind,
    epoch: tokio::time::Instant,
    home: ThreadId,
    shared: Arc<State>,
}

/// What clones share.
#[derive(Default)]
struct State {
    readings: AtomicU64,
    sleeps: AtomicU64,
    dropped_sleeps: AtomicU64,
    panicked: AtomicBool,
    last_sleep: Mutex<Option<Chain>>,
    last_task: Mutex<Option<Chain>>,
}

/// The end of something that something else waits for.
type Chain = Shared<Pin<Box<dyn Future<Output = ()> + Send>>>;

impl Wrong {
    /// Must be called where the runtime is to be used.
    pub(super) fn new(kind: Kind) -> Self {
        let (epoch, home) = (tokio::time::Instant::now(), thread::current().id());
        Self { kind, epoch, home, shared: Arc::default() }
    }

    fn is_elsewhere(&self) -> bool {
        thread::current().id() != self.home
    }
}

impl Clone for Wrong {
    fn clone(&self) -> Self {
        let epoch = match self.kind {
            Kind::ClockStartsWithEachClone => tokio::time::Instant::now(),
            _ => self.epoch,
        };
        Self { epoch, shared: Arc::clone(&self.shared), ..*self }
    }
}

impl Runtime for Wrong {
    fn now(&self) -> Instant {
        clock::now(self)
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + Send + 'static {
        sleep::until(self, deadline)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<(), NotRunning> {
        task::spawn(self, Box::pin(task))
    }

    fn here(&self) -> Option<impl Eq + Send + Sync + 'static> {
        task::here(self)
    }
}
