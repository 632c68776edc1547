//! Many who want one lease, hold it for a moment and ask again at once.

use std::time::Duration;

use redlock_tests::harness::Server;
use tokio::task::JoinSet;

use crate::contender::Contender;
use crate::contestant::Kind;
use crate::monotonic::now;
use crate::peer::Peer;
use crate::turn::Tally;
use crate::{Failure, commands, contestant, urls};

/// Who contends, where and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contention {
    pub(crate) name: &'static str,
    pub(crate) nodes: usize,
    seats: usize,
    /// A process for each of them, instead of a task.
    processes: bool,
    lasts: Duration,
    /// Only when asked for.
    pub(crate) long: bool,
}

impl Contention {
    pub(crate) const ALL: [Self; 7] = [
        Self::new("8 tasks, 1 node", 1, 8, false, 5),
        Self::new("8 tasks, 5 nodes", 5, 8, false, 5),
        Self::new("8 processes, 1 node", 1, 8, true, 5),
        Self::new("8 processes, 5 nodes", 5, 8, true, 5),
        Self::new("50 tasks, 1 node", 1, 50, false, 10),
        Self::new("50 tasks, 1 node, 60 s", 1, 50, false, 60),
        Self::new("8 processes, 1 node, 60 s", 1, 8, true, 60),
    ];

    const fn new(name: &'static str, nodes: usize, seats: usize, processes: bool, seconds: u64) -> Self {
        let lasts = Duration::from_secs(seconds);
        Self { name, nodes, seats, processes, lasts, long: seconds >= 60 }
    }

    pub(crate) fn run(&self, servers: &[Server]) -> Result<(), Failure> {
        let urls = urls(servers);
        if self.processes {
            let mut peers = Vec::with_capacity(self.seats);
            for _ in 0..self.seats {
                peers.push(Peer::start(&urls, RESOURCE)?);
            }
            for peer in &mut peers {
                peer.hear_time("ready ")?;
            }
            for who in [Kind::Redlock, Kind::Rslock] {
                let before = commands::sent(servers)?;
                let tally = self.among_processes(who, &mut peers)?;
                self.print(who.name(), tally, commands::sent(servers)? - before);
            }
            return Ok(());
        }
        let lock = contestant::manager(&urls)?.lock(RESOURCE);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let rslock = runtime.block_on(Contender::rslock(&urls, RESOURCE))?;
        for contender in [Contender::redlock(lock), rslock] {
            runtime.block_on(contender.contend(0, Duration::ZERO, now()? + WARM_UP))?;
            let before = commands::sent(servers)?;
            let tally = runtime.block_on(self.among_tasks(&contender))?;
            self.print(contender.who(), tally, commands::sent(servers)? - before);
        }
        Ok(())
    }

    async fn among_tasks(&self, contender: &Contender) -> Result<Tally, Failure> {
        let from = now()? + Duration::from_millis(50);
        let until = from + self.lasts;
        let mut tasks = JoinSet::new();
        for seat in 0..self.seats {
            let contender = contender.clone();
            tasks.spawn(async move { contender.contend(seat, from, until).await });
        }
        let mut turns = Vec::new();
        while let Some(done) = tasks.join_next().await {
            turns.extend(done??);
        }
        Tally::of(turns, self.seats)
    }

    fn among_processes(&self, who: Kind, peers: &mut [Peer]) -> Result<Tally, Failure> {
        let from = now()? + Duration::from_millis(200);
        let until = from + self.lasts;
        for (seat, peer) in peers.iter_mut().enumerate() {
            peer.tell(&format!("contend {} {seat} {} {}", who.name(), from.as_nanos(), until.as_nanos()))?;
        }
        let mut turns = Vec::new();
        for peer in peers {
            turns.extend(peer.hear_turns()?);
        }
        Tally::of(turns, self.seats)
    }

    fn print(&self, who: &str, tally: Tally, sent: u64) {
        let seconds = self.lasts.as_secs_f64();
        let Tally { acquisitions, changes, longest_wait, least_wins, most_wins } = tally;
        println!(
            "{:<25} | {who:<7} | {:>9.0} | {:>14.0} | {:>16.0} | {least_wins:>5} / {most_wins:>5} ({:.2}) | {:>7.1} ({:>5.1})",
            self.name,
            changes as f64 / seconds,
            acquisitions as f64 / seconds,
            longest_wait.as_secs_f64() * 1e3,
            least_wins as f64 / most_wins as f64,
            sent as f64 / changes as f64,
            sent as f64 / changes as f64 / if self.processes { self.seats as f64 } else { 1.0 },
        );
    }
}

pub(crate) const HEAD: &str = "\
contention                | who     | changes/s | acquisitions/s | longest wait, ms | least / most wins    | commands/change (and process)";
const RESOURCE: &str = "bench:contention";
const WARM_UP: Duration = Duration::from_millis(50);
