//! `cargo xtask fuzz`: builds the fuzz targets with libFuzzer and runs them for a while; and what
//! `cargo xtask test` does of it.
//!
//! No tool is needed for this but cargo, in its stable version, and a C++ compiler for libFuzzer. What
//! cargo-fuzz passes to the compiler to have coverage counted is passed here.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs, io};

use crate::cargo::{cargo, execute, output, show, workspace_root};

/// What the command line chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// One target instead of all.
    target: Option<String>,
    /// How long each is run.
    seconds: u32,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options = Self { target: None, seconds: 60 };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match *word {
                "--target" => options.target = Some((*value()?).to_owned()),
                "--seconds" => {
                    let number = value()?;
                    options.seconds =
                        number.parse().map_err(|_| format!("not a number of seconds: {number}"))?;
                }
                _ => return Err(format!("fuzz has no option {word}")),
            }
        }
        Ok(options)
    }
}

/// Runs the targets one after the other, up to the first that fails.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let mut targets = targets()?;
    if let Some(chosen) = &options.target {
        if !targets.contains(chosen) {
            return Err(format!("no such target: {chosen}; there are {}", targets.join(", ")));
        }
        targets.retain(|target| target == chosen);
    }
    if !has_compiler() {
        return Err(format!("{NO_COMPILER}; install g++ or clang, or name one in CXX"));
    }
    build(&targets)?;
    targets.iter().try_for_each(|target| fuzz(target, options.seconds))
}

/// What holds without libFuzzer: the crate is in order, and every input of the corpus passes.
pub(crate) fn check() -> Result<(), String> {
    execute(&mut in_fuzz(&["fmt"], &["--check"]))?;
    let compiled = ["--locked", "--no-default-features", "--all-targets"];
    execute(
        in_fuzz(&["clippy"], &compiled).arg("--target-dir").arg(target_dir()).args(["--", "-D", "warnings"]),
    )?;
    execute(in_fuzz(&["test"], &compiled).arg("--target-dir").arg(target_dir()))
}

/// Builds every target and runs it for a moment: that finds what is badly broken, and that it still can be
/// run. Returns what was done, or why nothing was.
pub(crate) fn smoke() -> Result<Smoke, String> {
    if !has_compiler() {
        println!("not run: {NO_COMPILER}");
        return Ok(Smoke::NotRun(NO_COMPILER));
    }
    let targets = targets()?;
    build(&targets)?;
    targets.iter().try_for_each(|target| fuzz(target, MOMENT))?;
    Ok(Smoke::Ran(format!("{} for {MOMENT} s each", targets.join(", "))))
}

/// What came of a short run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Smoke {
    /// These targets, for so long.
    Ran(String),
    /// Nothing, for this reason.
    NotRun(&'static str),
}

/// The names of the targets, in order.
fn targets() -> Result<Vec<String>, String> {
    let folder = workspace_root().join("fuzz/fuzz_targets");
    let files = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let names = files.filter_map(|file| {
        let path = file.ok()?.path();
        path.extension().is_some_and(|extension| extension == "rs").then_some(())?;
        Some(path.file_stem()?.to_str()?.to_owned())
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    Ok(names)
}

fn build(targets: &[String]) -> Result<(), String> {
    // With a target triple, cargo keeps the flags away from build scripts and macros.
    let mut command = in_fuzz(&["build", "--release", "--locked"], &["--target", &host()?]);
    command.arg("--target-dir").arg(target_dir()).env("RUSTFLAGS", COVERAGE);
    execute(command.args(targets.iter().flat_map(|target| ["--bin", target])))
}

/// Runs a target that is built, from the committed corpus on and whatever earlier runs have found.
fn fuzz(target: &str, seconds: u32) -> Result<(), String> {
    let found = target_dir().join("corpus").join(target);
    let artifacts = workspace_root().join("fuzz/artifacts").join(target);
    for folder in [&found, &artifacts] {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let mut command = Command::new(target_dir().join(host()?).join("release").join(target));
    command.current_dir(workspace_root());
    // An input that takes seconds is a finding too.
    command.args(["-verbosity=0", "-print_funcs=0", "-print_final_stats=1", "-timeout=10", "-max_len=512"]);
    command.arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    command.arg(&found).arg(format!("fuzz/corpus/{target}"));
    watch(&mut command).map_err(|error| {
        format!(
            "{error}\nThe input is in {}. Once its cause is removed, it belongs into fuzz/corpus/{target}, where \
             every test run replays it.",
            artifacts.display()
        )
    })
}

/// Runs a target and passes on what it says, but for the dictionary that libFuzzer recommends to itself.
fn watch(command: &mut Command) -> Result<(), String> {
    let shown = show(command);
    println!("$ {shown}");
    let failed = |error: io::Error| format!("`{shown}` cannot be run: {error}");
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(failed)?;
    let output = child.stderr.take().map(BufReader::new);
    let lines = output.into_iter().flat_map(|output| output.split(b'\n')).map_while(Result::ok);
    let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    without_dictionary(lines, |line| println!("{line}"));
    match child.wait().map_err(failed)? {
        status if status.success() => Ok(()),
        status => Err(format!("`{shown}`: {status}")),
    }
}

fn without_dictionary(lines: impl Iterator<Item = String>, mut pass_on: impl FnMut(&str)) {
    let mut in_dictionary = false;
    for line in lines {
        in_dictionary |= line.starts_with("###### Recommended dictionary");
        if !in_dictionary {
            pass_on(&line);
        }
        in_dictionary &= !line.starts_with("###### End of recommended dictionary");
    }
}

/// A cargo command on the fuzz crate, which is a workspace of its own.
fn in_fuzz(command: &[&str], options: &[&str]) -> Command {
    cargo(&[command, &["--manifest-path", "fuzz/Cargo.toml"], options].concat())
}

/// Apart from the rest of the workspace, whose builds would otherwise take turns with these.
fn target_dir() -> PathBuf {
    let root = workspace_root();
    match env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root.join(folder).join("fuzz"),
        None => root.join("fuzz/target"),
    }
}

/// The triple of this machine.
fn host() -> Result<String, String> {
    let version = output(&mut cargo(&["-vV"]))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| format!("no host in the output of `cargo -vV`:\n{version}"))
}

fn has_compiler() -> bool {
    let compiler = env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let mut version = Command::new(compiler);
    version.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

const NO_COMPILER: &str = "no C++ compiler to build libFuzzer with";

/// How long the targets run in a test, in seconds.
const MOMENT: u32 = 5;

/// Counts which edges are taken, and shows the fuzzer what is compared with what.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        assert_eq!(Options::parse(&[]), Ok(Options { target: None, seconds: 60 }));
        let options = Options::parse(&["--seconds", "5", "--target", "reply_bytes"]);
        assert_eq!(options, Ok(Options { target: Some("reply_bytes".to_owned()), seconds: 5 }));
        assert_eq!(Options::parse(&["--target"]), Err("--target needs a value".to_owned()));
        assert_eq!(Options::parse(&["--seconds", "-1"]), Err("not a number of seconds: -1".to_owned()));
        assert_eq!(Options::parse(&["--jobs"]), Err("fuzz has no option --jobs".to_owned()));
    }

    #[test]
    fn every_target_has_a_corpus() {
        let targets = targets().unwrap();
        assert!(targets.contains(&"reply_bytes".to_owned()), "{targets:?}");
        for target in targets {
            assert!(workspace_root().join("fuzz/corpus").join(&target).is_dir(), "{target}");
        }
    }

    #[test]
    fn dictionary_is_left_out() {
        let said = "seed\n###### Recommended dictionary. ######\n\"1\" # Uses: 2\n\
                    ###### End of recommended dictionary. ######\nstat";
        let mut shown = Vec::new();
        without_dictionary(said.lines().map(str::to_owned), |line| shown.push(line.to_owned()));
        assert_eq!(shown, ["seed", "stat"]);
    }

    #[test]
    fn unknown_target_is_refused_with_the_known_ones() {
        let message = run(&Options { target: Some("nothing".to_owned()), seconds: 0 }).unwrap_err();
        assert!(
            message.starts_with("no such target: nothing; there are lease_events, reply_bytes"),
            "{message}"
        );
    }
}
