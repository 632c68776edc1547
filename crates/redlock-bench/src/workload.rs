//! What is measured.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use redlock_tests::harness::Server;
use tokio::task::JoinSet;

use crate::Failure;
use crate::contestant::{Contestant, Kind, Late};
use crate::figures::Figures;

/// So many tasks that acquire and release, each a resource of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) nodes: usize,
    tasks: usize,
    /// By each task in a round.
    cycles: usize,
    pub(crate) trouble: Trouble,
}

/// What is wrong with one of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    None,
    Frozen,
    Down,
}

impl Trouble {
    pub(crate) fn begin(self, servers: &[Server]) {
        let Some(last) = servers.last() else { return };
        match self {
            Self::None => {}
            Self::Frozen => last.freeze(),
            Self::Down => last.kill(),
        }
        std::thread::sleep(Duration::from_millis(if self == Self::None { 0 } else { 1_000 }));
    }

    pub(crate) fn end(self, servers: &[Server]) {
        if let (Self::Frozen, Some(last)) = (self, servers.last()) {
            last.thaw();
        }
    }
}

impl Workload {
    pub(crate) const ALL: [Self; 9] = [
        Self::new("alone, 1 node", 1, 1, 2_000, Trouble::None),
        Self::new("alone, 3 nodes", 3, 1, 1_000, Trouble::None),
        Self::new("alone, 5 nodes", 5, 1, 1_000, Trouble::None),
        Self::new("64 tasks, 1 node", 1, 64, 150, Trouble::None),
        Self::new("64 tasks, 5 nodes", 5, 64, 50, Trouble::None),
        Self::new("1024 tasks, 1 node", 1, 1_024, 10, Trouble::None),
        Self::new("1024 tasks, 5 nodes", 5, 1_024, 4, Trouble::None),
        Self::new("alone, one of 5 frozen", 5, 1, 500, Trouble::Frozen),
        Self::new("alone, one of 5 down", 5, 1, 500, Trouble::Down),
    ];

    const fn new(name: &'static str, nodes: usize, tasks: usize, cycles: usize, trouble: Trouble) -> Self {
        Self { name, nodes, tasks, cycles, trouble }
    }

    /// One round of a contestant; `None` for one that takes too long over such trouble to be waited for.
    #[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
    pub(crate) async fn run(
        &self,
        contestant: &Contestant,
        round: usize,
    ) -> Result<Option<Figures>, Failure> {
        let slow = self.trouble != Trouble::None && contestant.kind() == Kind::Rslock;
        let cycles = if slow { 3 } else { self.cycles };
        let cpu = cpu(UsageWho::RUSAGE_SELF)?;
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        for task in 0..self.tasks {
            let contestant = contestant.clone();
            let resource: Arc<str> = format!("bench:{}:{round}:{task}", contestant.kind().name()).into();
            tasks.spawn(async move {
                let mut times = Vec::with_capacity(cycles);
                let mut late = Late::default();
                for _ in 0..cycles {
                    times.push(contestant.cycle(&resource, &mut late).await?);
                }
                Ok::<_, Failure>(times)
            });
        }
        let mut times = Vec::with_capacity(self.tasks * cycles);
        while let Some(done) = tasks.join_next().await {
            times.extend(done??);
        }
        let elapsed = started.elapsed();
        let cpu = self::cpu(UsageWho::RUSAGE_SELF)?.saturating_sub(cpu);
        Ok(Figures::new(times, elapsed, cpu))
    }
}

/// The processor time that this process, or this thread, has used.
pub(crate) fn cpu(who: UsageWho) -> Result<Duration, Failure> {
    let usage = getrusage(who)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(micros.unsigned_abs()))
}
