//! `cargo xtask test`: everything that must hold before a change goes in.

mod bench;
mod matrix;
mod options;
mod valkey;

use self::bench::Bench;
pub(crate) use self::options::Options;
use self::valkey::Valkey;
use crate::cargo::{Package, cargo, execute, output, packages};
use crate::dependencies;
use crate::fuzz::{self, Smoke};
use crate::servers::{self, Servers};
use crate::steps::Steps;

/// Runs all steps up to the first one that fails, and sums them up; or the tests on several servers.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    if let Some(entries) = &options.servers {
        return matrix::run(entries, options.long);
    }
    let mut steps = Steps::new();

    let (servers, valkey) = steps.run("servers", find_servers)?;
    let packages = steps.run("tools", tools)?;
    steps.run("format", || execute(&mut cargo(&["fmt", "--all", "--check"])))?;
    steps.run("lints", || lint(&packages))?;
    steps.run("dependency rules", dependencies::check)?;
    let not_run = steps.run("tests", || run_tests(&packages, &servers, options.long))?;
    steps.run("tests on Valkey", || valkey.test(options.long))?;
    steps.run("each library alone", || check_libraries(&packages))?;
    steps.run("documentation", document)?;
    steps.run("examples", || execute(&mut cargo(&["build", "--workspace", "--examples", "--locked"])))?;

    steps.run("fuzz corpus", fuzz::check)?;
    let smoke = steps.run("fuzz targets", fuzz::smoke)?;

    println!("\n==== summary");
    print!("{}", steps.summary());
    println!("servers: {}", servers.description);
    print!("{}", closing(&not_run, &valkey, &smoke));
    Ok(())
}

fn find_servers() -> Result<(Servers, Valkey), String> {
    let servers = servers::provide()?;
    println!("{}", servers.description);
    let valkey = Valkey::provide()?;
    if let Valkey::Found(program) = &valkey {
        println!("beside them: {}, {}", program.version, program.path.display());
    }
    Ok((servers, valkey))
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
fn run_tests(packages: &[Package], servers: &Servers, long: bool) -> Result<Vec<String>, String> {
    let bench = Bench::new(servers.program.clone(), long)?;
    packages.iter().try_for_each(|package| bench.test(&["-p", &package.name]))?;
    bench.not_run()
}

/// The last words, which must not sound like "all" when it was not all.
fn closing(not_run: &[String], valkey: &Valkey, smoke: &Smoke) -> String {
    let valkey_line = match valkey {
        Valkey::Found(program) => format!("{}, the tests that depend on the server", program.version),
        Valkey::NotRun(reason) => format!("NOT RUN, {reason}"),
    };
    let fuzz_line = match smoke {
        Smoke::Ran(targets) => targets.clone(),
        Smoke::NotRun(reason) => format!("NOT RUN, {reason}"),
    };
    let head = format!("Valkey: {valkey_line}\nfuzz targets: {fuzz_line}\n");
    if !not_run.is_empty() {
        let lines: String = not_run.iter().map(|name| format!("  {name}\n")).collect();
        return format!(
            "{head}not run, because they would harm the servers of REDLOCK_REDIS_ADDRS:\n{lines}\
             all others passed, {} not run\n",
            not_run.len()
        );
    }
    let all_ran = matches!((valkey, smoke), (Valkey::Found(_), Smoke::Ran(_)));
    head + if all_ran { "all passed\n" } else { "all others passed\n" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::Program;

    fn found() -> Valkey {
        Valkey::Found(Program { path: "/opt/valkey-server".into(), version: "Valkey 9.1.2".to_owned() })
    }

    #[test]
    fn what_ran_is_named() {
        let ran = Smoke::Ran("a for 5 s each".to_owned());
        assert_eq!(
            closing(&[], &found(), &ran),
            "Valkey: Valkey 9.1.2, the tests that depend on the server\nfuzz targets: a for 5 s each\nall passed\n"
        );
    }

    #[test]
    fn what_did_not_run_is_not_called_passed() {
        let ran = Smoke::Ran("a for 5 s each".to_owned());
        let names = ["a::one".to_owned(), "b::two".to_owned()];
        let list = closing(&names, &found(), &ran);
        assert!(list.ends_with(":\n  a::one\n  b::two\nall others passed, 2 not run\n"), "{list}");

        let end = closing(&[], &found(), &Smoke::NotRun("no compiler"));
        assert!(end.ends_with("fuzz targets: NOT RUN, no compiler\nall others passed\n"), "{end}");

        let end = closing(&[], &Valkey::NotRun("no network".to_owned()), &ran);
        assert!(end.starts_with("Valkey: NOT RUN, no network\n"), "{end}");
        assert!(end.ends_with("\nall others passed\n"), "{end}");
    }
}
