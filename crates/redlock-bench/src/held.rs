//! Many leases that are held and renewed, and nothing else.

use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use nix::sys::resource::UsageWho;
use redis::Connection;
use redlock_tests::harness::Server;
use redlock_tokio::{Config, Lease, Renewal};

use crate::renewals::{Renewals, Seen};
use crate::sample::quantile;
use crate::workload::cpu;
use crate::{Failure, contestant, urls};

pub(crate) const NAME: &str = "10000 leases, 1 node";
const LEASES: usize = 10_000;
/// More than two intervals of renewal.
const LASTS: Duration = Duration::from_secs(26);

pub(crate) fn run(server: &Server) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let manager = contestant::manager(&urls(std::slice::from_ref(server)))?;
    let lock = |index: usize| manager.lock(key(index)).auto_renew(Renewal::ThirdOfTtl);
    runtime.block_on(async {
        // Connections, scripts and the runtime's own.
        for _ in 0..100 {
            lock(LEASES).acquire().await?.release().await?;
        }
        Ok::<_, Failure>(())
    })?;
    let before = resident()?;
    let leases: Vec<Lease> = runtime.block_on(async {
        let asked = stream::iter(0..LEASES).map(|index| async move { lock(index).acquire().await });
        // In the order of the keys, a few at a time.
        asked.buffered(64).try_collect().await
    })?;
    let keys: usize = (0..LEASES).map(|index| key(index).len()).sum();
    let bytes = (resident()?.saturating_sub(before) as f64 - keys as f64) / LEASES as f64;

    let (stop, stopped) = channel();
    let seen = std::thread::scope(|scope| {
        let (leases, connection) = (&leases, server.connection());
        let watcher = scope.spawn(move || watch(leases, connection, Config::default(), &stopped));
        let used = cpu(UsageWho::RUSAGE_SELF)?;
        std::thread::sleep(LASTS);
        let used = cpu(UsageWho::RUSAGE_SELF)? - used;
        drop(stop);
        let (renewals, watching) = watcher.join().map_err(|_| "the watcher panicked")??;
        Ok::<_, Failure>((renewals, used.saturating_sub(watching)))
    });
    let (renewals, used) = seen?;
    let grown = (resident()?.saturating_sub(before) as f64 - keys as f64) / LEASES as f64;
    let lost = leases.iter().filter(|lease| !lease.is_valid()).count();
    print(bytes, grown, renewals, lost, used);
    runtime.block_on(async move {
        stream::iter(leases).for_each_concurrent(64, async |lease| drop(lease.release().await)).await;
        manager.close().await;
    });
    Ok(())
}

fn key(index: usize) -> String {
    format!("bench:held:{index:05}")
}

/// Looks at all keys and all leases, until it is told to stop: what it saw, and the processor time it took.
fn watch(
    leases: &[Lease],
    mut connection: Connection,
    config: Config,
    stopped: &Receiver<()>,
) -> Result<(Renewals, Duration), Failure> {
    let ttl = config.ttl();
    let validity = config.drift().validity(ttl).ok_or("a lease that is never valid")?;
    let mut renewals = Renewals::new(leases.len(), ttl.as_duration() / 3);
    let epoch = origin();
    loop {
        for (chunk, held) in leases.chunks(CHUNK).enumerate() {
            let mut asking = redis::pipe();
            for index in 0..held.len() {
                asking.cmd("PTTL").arg(key(chunk * CHUNK + index));
            }
            let left: Vec<i64> = asking.query(&mut connection)?;
            // Read after the answer: if anything, a renewal seems later than it was, by a round trip.
            let answered = epoch.elapsed();
            for ((index, lease), left) in held.iter().enumerate().zip(left) {
                let left = Duration::from_millis(u64::try_from(left).map_err(|_| "a key is gone")?);
                let read = epoch.elapsed();
                renewals.look(
                    chunk * CHUNK + index,
                    Seen {
                        asked_for: (read + lease.valid_for()).saturating_sub(validity),
                        arrived: (answered + left).saturating_sub(ttl.as_duration()),
                    },
                );
            }
        }
        match stopped.recv_timeout(LOOK_EVERY) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                return Ok((renewals, cpu(UsageWho::RUSAGE_THREAD)?));
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn origin() -> Instant {
    // So that nothing that is looked at lies before it.
    let now = Instant::now();
    now.checked_sub(Duration::from_secs(60)).unwrap_or(now)
}

/// The memory of this process, in bytes.
fn resident() -> Result<u64, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    Ok(kib.ok_or("no VmRSS in /proc/self/status")?.trim().parse::<u64>()? * 1024)
}

fn print(bytes: f64, grown: f64, renewals: Renewals, lost: usize, used: Duration) {
    let interval = renewals.interval().as_secs_f64() * 1e3;
    let mut late: Vec<f64> = renewals.lateness().iter().map(|late| late.as_secs_f64() * 1e3).collect();
    let mut at = |percent| quantile(&mut late, percent).unwrap_or(f64::NAN);
    let (p50, p99, most) = (at(50), at(99), at(100));
    println!(
        "{NAME:<24} | {bytes:>10.0} | {grown:>13.0} | {:>8} | {p50:>6.0} | {p99:>6.0} | {most:>6.0} ({:>4.1} %) | \
         {lost:>4} | {:>5.2} %",
        late.len(),
        100.0 * most / interval,
        100.0 * used.as_secs_f64() / LASTS.as_secs_f64(),
    );
}

pub(crate) const HEAD: &str = "\
held                     | bytes each | after renewal | renewals | late p50, ms | p99, ms | most, ms (of interval) | lost | client's share of a CPU";
/// As many keys as are asked for in one go.
const CHUNK: usize = 500;
const LOOK_EVERY: Duration = Duration::from_millis(500);
