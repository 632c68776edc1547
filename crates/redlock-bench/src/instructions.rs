//! Instructions, counted by callgrind: figures that do not depend on what else the machine does.
//!
//! Each is the difference of two runs, one with more cycles than the other, divided by the difference in
//! cycles. What is done once per process drops out.

use std::process::Command;

use redlock_tests::harness::Server;

use crate::contestant::{Contestant, Kind, Late};
use crate::{Failure, core_alone, in_one_thread, servers, urls};

/// Prints all figures; with `check`, fails when the core's is too far above the one on record.
pub(crate) fn count(check: bool) -> Result<(), Failure> {
    println!("\n{HEAD}");
    let core = core_round()?;
    print("core: acquire and release, 5 nodes", core);
    if check {
        let recorded: f64 = recorded(RECORD).ok_or("no figure on record")?;
        if core > recorded * TOLERANCE {
            return Err(
                format!("the core takes {core:.0} instructions a cycle; {recorded} are on record").into()
            );
        }
        println!("(on record: {recorded})");
        return Ok(());
    }
    let [server] = &servers(1)?[..] else { return Err("one node".into()) };
    for (tasks, few, many) in [(1, 200, 1_200), (64, 5, 25)] {
        for kind in [Kind::Floor, Kind::Redlock] {
            let cycle = cycle(kind, tasks, [few, many], server)?;
            print(&format!("{}: a cycle, 1 node, {tasks} at once", kind.name()), cycle);
        }
    }
    Ok(())
}

/// The life of a counted process: so many cycles by each of so many tasks on one thread.
pub(crate) fn live(arguments: &[String]) -> Result<(), Failure> {
    let [kind, tasks, cycles, url] = arguments else { return Err("who, how often, and where?".into()) };
    let (tasks, cycles): (usize, usize) = (tasks.parse()?, cycles.parse()?);
    in_one_thread(async {
        let contestant =
            Contestant::all(std::slice::from_ref(url)).await?.into_iter().find(|it| it.kind().name() == kind);
        let contestant = contestant.ok_or("no such contestant")?;
        let mut running = tokio::task::JoinSet::new();
        for task in 0..tasks {
            let contestant = contestant.clone();
            running.spawn(async move {
                let mut late = Late::default();
                let resource = format!("bench:instructions:{task}");
                for _ in 0..cycles {
                    contestant.cycle(&resource, &mut late).await?;
                }
                Ok::<_, Failure>(())
            });
        }
        while let Some(done) = running.join_next().await {
            done??;
        }
        Ok(())
    })
}

fn core_round() -> Result<f64, Failure> {
    let [few, many] = [1_000_u32, 11_000];
    let run = |times: u32| {
        collected(Command::new("valgrind"), |valgrind| {
            Ok(valgrind.arg(core_alone::program()?).args(["repeat", &times.to_string()]))
        })
    };
    Ok((run(many)? - run(few)?) / f64::from(many - few))
}

fn cycle(kind: Kind, tasks: u32, [few, many]: [u32; 2], server: &Server) -> Result<f64, Failure> {
    let [url] = &urls(std::slice::from_ref(server))[..] else { return Err("one node".into()) };
    let run = |cycles: u32| {
        collected(Command::new("valgrind"), |valgrind| {
            let arguments = [ROLE, kind.name(), &tasks.to_string(), &cycles.to_string(), url];
            Ok(valgrind.arg(std::env::current_exe()?).args(arguments))
        })
    };
    Ok((run(many)? - run(few)?) / f64::from(tasks * (many - few)))
}

/// How many instructions callgrind collects in one run.
fn collected(
    mut valgrind: Command,
    arguments: impl FnOnce(&mut Command) -> Result<&mut Command, Failure>,
) -> Result<f64, Failure> {
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    let output = arguments(&mut valgrind)?.output()?;
    let report = String::from_utf8_lossy(&output.stderr);
    let collected = report.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    match collected {
        Some(collected) if output.status.success() => Ok(collected),
        _ => Err(format!("{valgrind:?}: {}\n{report}", output.status).into()),
    }
}

fn print(name: &str, instructions: f64) {
    println!("{name:<40} | {instructions:>12.0}");
}

/// The figure of a record, which is the first line that is no comment.
fn recorded(record: &str) -> Option<f64> {
    record.lines().find(|line| !line.starts_with('#'))?.trim().parse().ok()
}

/// The first argument of a process that is counted.
pub(crate) const ROLE: &str = "counted";
const HEAD: &str = "instructions                             |    per cycle";
const RECORD: &str = include_str!("../core-instructions.txt");
const TOLERANCE: f64 = 1.05;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_figure_on_record() {
        assert!(recorded(RECORD).is_some_and(|figure| figure > 0.0));
        assert_eq!(recorded("# what it is\n123\n"), Some(123.0));
        assert_eq!(recorded("# nothing\n"), None);
    }
}
