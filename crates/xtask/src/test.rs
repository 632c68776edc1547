//! `cargo xtask test`: everything that must hold before a change goes in.

use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;
use std::{env, fs, io, thread};

use crate::cargo::{Package, cargo, execute, output, packages};
use crate::dependencies;
use crate::fuzz::{self, Smoke};
use crate::servers::{self, Servers};
use crate::steps::Steps;

/// What the command line chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Also the tests that take minutes.
    pub(crate) long: bool,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        for word in words {
            match *word {
                "--long" => options.long = true,
                _ => return Err(format!("test has no option {word}")),
            }
        }
        Ok(options)
    }
}

/// Runs all steps up to the first one that fails, and sums them up.
pub(crate) fn run(options: Options) -> Result<(), String> {
    let mut steps = Steps::new();

    let servers = steps.run("servers", find_servers)?;
    let packages = steps.run("tools", tools)?;
    steps.run("format", || execute(&mut cargo(&["fmt", "--all", "--check"])))?;
    steps.run("lints", || lint(&packages))?;
    steps.run("dependency rules", dependencies::check)?;
    let not_run = steps.run("tests", || run_tests(&packages, &servers, options))?;
    steps.run("each library alone", || check_libraries(&packages))?;
    steps.run("documentation", document)?;
    steps.run("examples", || execute(&mut cargo(&["build", "--workspace", "--examples", "--locked"])))?;

    steps.run("fuzz corpus", fuzz::check)?;
    let smoke = steps.run("fuzz targets", fuzz::smoke)?;

    println!("\n==== summary");
    print!("{}", steps.summary());
    println!("servers: {}", servers.description);
    print!("{}", closing(&not_run, &smoke));
    Ok(())
}

fn find_servers() -> Result<Servers, String> {
    let servers = servers::provide()?;
    println!("{}", servers.description);
    Ok(servers)
}

/// Makes sure that the toolchain has what the next steps need, and returns the packages to work on.
fn tools() -> Result<Vec<Package>, String> {
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        let version = output(&mut cargo(&[subcommand, "--version"]))
            .map_err(|reason| format!("{reason}\nAdd it with: rustup component add {component}"))?;
        println!("{}", version.trim());
    }
    packages()
}

/// Each package by itself, so that none hides behind features that only another one asks for.
fn lint(packages: &[Package]) -> Result<(), String> {
    packages.iter().try_for_each(|package| {
        let arguments = ["clippy", "--locked", "-p", &package.name, "--all-targets", "--", "-D", "warnings"];
        execute(&mut cargo(&arguments))
    })
}

/// Each library without its tests, as those who depend on it get it: a crate may live on a feature that only
/// its tests ask for.
fn check_libraries(packages: &[Package]) -> Result<(), String> {
    let libraries = packages.iter().filter(|package| package.is_library());
    libraries
        .into_iter()
        .try_for_each(|library| execute(&mut cargo(&["check", "--locked", "-p", &library.name])))
}

fn document() -> Result<(), String> {
    let mut command = cargo(&["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"]);
    execute(command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Runs the tests of all packages, and returns the names of those that could not run.
///
/// Package by package, so that each adapter is tested with what it asks for itself and no more.
fn run_tests(packages: &[Package], servers: &Servers, options: Options) -> Result<Vec<String>, String> {
    let scratch = Scratch::new().map_err(|error| format!("no temporary directory: {error}"))?;
    let not_run = scratch.0.join("not-run");

    for package in packages {
        let mut command = cargo(&["test", "--locked", "-p", &package.name]);
        command.env("REDLOCK_SKIPPED_FILE", &not_run);
        // Servers live in the temporary directory: whatever is left in this one was left by these tests.
        command.env("TMPDIR", &scratch.0);
        if let Some(program) = &servers.program {
            command.env("REDLOCK_REDIS_SERVER", program);
        }
        if options.long {
            command.env("REDLOCK_LONG", "1");
        }
        execute(&mut command)?;
        await_servers_gone(&scratch.0)?;
    }
    match fs::read_to_string(&not_run) {
        Ok(names) => Ok(in_order(&names)),
        // All tests could run.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(format!("{}: {error}", not_run.display())),
    }
}

/// A server ends together with the test process that started it, within a moment. This waits out the moment.
fn await_servers_gone(dir: &Path) -> Result<(), String> {
    for _ in 0..100 {
        if servers_in(dir)?.is_empty() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(100));
    }
    Err(format!("servers that outlived their tests: {:?}", servers_in(dir)?))
}

/// The directories of servers that are still running, or were not stopped properly.
fn servers_in(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_server = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("redlock-server")
    };
    Ok(paths.filter(is_server).collect())
}

/// The lines of `names`, sorted. A test that asked for servers several times is named once.
fn in_order(names: &str) -> Vec<String> {
    let mut names: Vec<String> = names.lines().map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

/// The last words, which must not sound like "all" when it was not all.
fn closing(not_run: &[String], smoke: &Smoke) -> String {
    let (fuzzing, all) = match smoke {
        Smoke::Ran(targets) => (format!("fuzz targets: {targets}\n"), "all passed\n"),
        Smoke::NotRun(reason) => (format!("fuzz targets: NOT RUN, {reason}\n"), "all others passed\n"),
    };
    if not_run.is_empty() {
        return fuzzing + all;
    }
    let lines: String = not_run.iter().map(|name| format!("  {name}\n")).collect();
    let count = not_run.len();
    format!(
        "{fuzzing}not run, because they would harm the servers of REDLOCK_REDIS_ADDRS:\n{lines}\
         all others passed, {count} not run\n"
    )
}

/// A temporary directory that goes when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Self> {
        let dir = env::temp_dir().join(format!("redlock-xtask-{}", process::id()));
        fs::create_dir_all(&dir)?;
        Ok(Self(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // After a failure, a server may be removing its own part at the same time.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        assert_eq!(Options::parse(&[]), Ok(Options { long: false }));
        assert_eq!(Options::parse(&["--long", "--long"]), Ok(Options { long: true }));
        assert!(Options::parse(&["--long", "all"]).is_err());
    }

    #[test]
    fn tests_that_did_not_run_are_listed_once() {
        let names = in_order("b::two\na::one\nb::two\n");
        assert_eq!(names, ["a::one", "b::two"]);
        let ran = Smoke::Ran("a for 5 s each".to_owned());
        let list = closing(&names, &ran);
        assert!(list.ends_with(":\n  a::one\n  b::two\nall others passed, 2 not run\n"), "{list}");
        assert_eq!(closing(&[], &ran), "fuzz targets: a for 5 s each\nall passed\n");
        let not_run = Smoke::NotRun("no compiler");
        assert_eq!(closing(&[], &not_run), "fuzz targets: NOT RUN, no compiler\nall others passed\n");
    }

    #[test]
    fn servers_that_are_left_are_found() {
        let scratch = Scratch::new().unwrap();
        fs::create_dir(scratch.0.join("rustdoctest")).unwrap();
        assert_eq!(servers_in(&scratch.0), Ok(vec![]));
        await_servers_gone(&scratch.0).unwrap();
        let left = scratch.0.join("redlock-server-1");
        fs::create_dir(&left).unwrap();
        assert_eq!(servers_in(&scratch.0), Ok(vec![left]));
    }
}
