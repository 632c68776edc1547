//! How long a lease that was given back idles before the one that waits for it has it.
//!
//! The gap goes from the call of `release` to the return of the waiter's `acquire`. The one that releases does
//! not ask again until it has been handed over.

use std::time::{Duration, Instant};

use redlock_tests::harness::Server;

use crate::monotonic::now;
use crate::peer::{PATIENCE, Peer};
use crate::ping::Ping;
use crate::sample::{mean, micros, quantile};
use crate::{Failure, commands, contestant, in_one_thread, urls};

/// Between whom a lease is handed over, and on how many nodes it is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandOver {
    pub(crate) name: &'static str,
    pub(crate) nodes: usize,
    between_processes: bool,
}

impl HandOver {
    pub(crate) const ALL: [Self; 4] = [
        Self::new("one process, 1 node", 1, false),
        Self::new("one process, 5 nodes", 5, false),
        Self::new("two processes, 1 node", 1, true),
        Self::new("two processes, 5 nodes", 5, true),
    ];

    const fn new(name: &'static str, nodes: usize, between_processes: bool) -> Self {
        Self { name, nodes, between_processes }
    }

    pub(crate) fn run(&self, servers: &[Server]) -> Result<(), Failure> {
        let measured = if self.between_processes {
            between_processes(servers)?
        } else {
            in_one_thread(within_one_process(servers))?
        };
        let sent = commands::sent(servers)?.saturating_sub(measured.sent_before);
        measured.print(self.name, sent);
        Ok(())
    }
}

pub(crate) const HEAD: &str = "\
hand-over                | count | gap p50, us (round trips) | gap mean, us (round trips) | gap p99, us | PING p50, us | commands each";

/// Gaps, and the round trips between them.
#[derive(Debug, Default)]
struct Measured {
    gaps: Vec<f64>,
    pings: Vec<f64>,
    /// Commands that were sent before the first of them.
    sent_before: u64,
}

impl Measured {
    fn is_complete(&self, started: Instant) -> bool {
        self.gaps.len() >= COUNT || started.elapsed() >= LIMIT
    }

    fn print(mut self, name: &str, sent: u64) {
        let count = self.gaps.len() as f64;
        let p50 = quantile(&mut self.gaps, 50).unwrap_or(f64::NAN);
        let p99 = quantile(&mut self.gaps, 99).unwrap_or(f64::NAN);
        let ping = quantile(&mut self.pings, 50).unwrap_or(f64::NAN);
        let gap_mean = mean(&self.gaps);
        // The round trips are ours.
        let commands = (sent as f64 - self.pings.len() as f64) / count;
        println!(
            "{name:<24} | {count:>5} | {p50:>17.0} ({:>5.2}) | {gap_mean:>18.0} ({:>5.2}) | {p99:>11.0} | \
             {ping:>12.0} | {commands:>13.1}",
            p50 / ping,
            gap_mean / ping
        );
    }
}

/// Two tasks with one manager.
#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
async fn within_one_process(servers: &[Server]) -> Result<Measured, Failure> {
    let urls = urls(servers);
    let mut ping = Ping::connect(first(&urls)?).await?;
    let lock = contestant::manager(&urls)?.lock("bench:hand-over:one");
    for _ in 0..WARM_UP {
        lock.acquire().await?.release().await?;
    }
    let mut measured = Measured { sent_before: commands::sent(servers)?, ..Measured::default() };
    let mut lease = lock.acquire().await?;
    let started = Instant::now();
    while !measured.is_complete(started) {
        let waiting = lock.clone();
        let waiter = tokio::spawn(async move {
            let lease = waiting.acquire_within(PATIENCE).await?;
            Ok::<_, Failure>((lease, now()?))
        });
        tokio::time::sleep(pause(measured.gaps.len())).await;
        let released = now()?;
        lease.release().await?;
        let (next, acquired) = waiter.await??;
        measured.gaps.push(micros(acquired.saturating_sub(released)));
        lease = next;
        // After the same pause, so that what the machine makes of idleness is in both.
        tokio::time::sleep(pause(measured.gaps.len())).await;
        measured.pings.push(micros(ping.round_trip().await?));
    }
    lease.release().await?;
    Ok(measured)
}

/// Two children with a manager each, in turn.
#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn between_processes(servers: &[Server]) -> Result<Measured, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let urls = urls(servers);
    let mut ping = runtime.block_on(Ping::connect(first(&urls)?))?;
    let resource = "bench:hand-over:two";
    let (mut holder, mut waiter) = (Peer::start(&urls, resource)?, Peer::start(&urls, resource)?);
    for peer in [&mut holder, &mut waiter] {
        peer.hear_time("ready ")?;
    }
    let mut measured = Measured { sent_before: commands::sent(servers)?, ..Measured::default() };
    holder.tell("ask")?;
    holder.hear_time("acquired ")?;
    let started = Instant::now();
    while !measured.is_complete(started) {
        waiter.tell("ask")?;
        std::thread::sleep(pause(measured.gaps.len()));
        holder.tell("release")?;
        let acquired = waiter.hear_time("acquired ")?;
        let released = holder.hear_time("released ")?;
        measured.gaps.push(micros(acquired.saturating_sub(released)));
        std::mem::swap(&mut holder, &mut waiter);
        std::thread::sleep(pause(measured.gaps.len()));
        measured.pings.push(micros(runtime.block_on(ping.round_trip())?));
    }
    Ok(measured)
}

fn first(urls: &[String]) -> Result<&str, Failure> {
    Ok(urls.first().ok_or("no node")?)
}

/// How long the waiter has waited when the lease is given back. Not the same every time, so that no timer of a
/// poller falls into step with it.
fn pause(turn: usize) -> Duration {
    Duration::from_micros(5_000 + (turn as u64 * 1_237) % 5_000)
}

/// So many at most,
const COUNT: usize = 200;
/// or as many as this allows.
const LIMIT: Duration = Duration::from_secs(10);
const WARM_UP: usize = 20;
