//! How long it takes until the command runs.

use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redlock_tests::harness::{Primary, Stopwatch, unique};

use crate::support::{ms, run, shared};

const ROUNDS: usize = 30;

/// The command notes the time in which it runs. What it and the shell take themselves is measured without
/// `redlock`, in turns, and subtracted.
#[test]
fn the_command_runs_soon() {
    for count in [1, 3] {
        let (nodes, urls) = shared(count);
        let (mut direct, mut held, mut pings) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let mut command = Command::new("date");
            direct.push(until_it_runs(command.arg("+%s%N")));
            held.push(until_it_runs(run(&urls, &unique("cli:startup"), &[]).args(["date", "+%s%N"])));
            pings.push(round_trip(&nodes[0]));
        }
        let [direct, held, ping] = [direct, held, pings].map(median);
        let added = held.saturating_sub(direct);
        let build = if cfg!(debug_assertions) { "debug" } else { "release" };
        println!(
            "{build} build, {count} nodes: the command runs {added:?} later than without redlock \
             ({held:?} against {direct:?}), connecting and acquiring included; PING takes {ping:?}"
        );
        // Some 3 ms in a release build on an idle machine. This is for machines that do much else.
        assert!(added < ms(150), "{added:?}");
    }
}

fn until_it_runs(command: &mut Command) -> Duration {
    let started = wall_clock();
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    let at: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
    Duration::from_nanos(at).saturating_sub(started)
}

fn round_trip(node: &Primary) -> Duration {
    let mut connection = node.connection();
    let mut ping = || redis::cmd("PING").query::<String>(&mut connection).unwrap();
    ping();
    let watch = Stopwatch::start();
    ping();
    watch.elapsed()
}

fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort_unstable();
    durations[durations.len() / 2]
}

#[allow(clippy::disallowed_methods, reason = "the command can tell no other time")]
fn wall_clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}
