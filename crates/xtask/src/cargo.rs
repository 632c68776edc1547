//! Running cargo, and the packages of this workspace.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// A cargo command in the workspace's root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    // Cargo names itself to the programs that it runs, so that all use the same toolchain.
    let program = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(workspace_root()).args(arguments);
    command
}

/// Runs a command, showing it and its output.
pub(crate) fn execute(command: &mut Command) -> Result<(), String> {
    let shown = show(command);
    println!("$ {shown}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{shown}`: {status}")),
        Err(error) => Err(format!("`{shown}` cannot be run: {error}")),
    }
}

/// Runs a command and returns what it writes to its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let shown = show(command);
    let output = command.output().map_err(|error| format!("`{shown}` cannot be run: {error}"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{shown}`: {}\n{}", output.status, message.trim_end()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// One package of the workspace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    root: PathBuf,
}

impl Package {
    /// Whether others can depend on it.
    pub(crate) fn is_library(&self) -> bool {
        self.root.join("src/lib.rs").is_file()
    }
}

/// The packages of this workspace.
pub(crate) fn packages() -> Result<Vec<Package>, String> {
    let tree = output(&mut cargo(&["tree", "--workspace", "--depth", "0", "--prefix", "none", "--locked"]))?;
    let packages: Vec<Package> = tree.lines().filter_map(parse_package).collect();
    if packages.is_empty() {
        return Err(format!("no package in the output of `cargo tree`:\n{tree}"));
    }
    Ok(packages)
}

/// Reads a line such as `redlock-core v0.1.0 (/home/me/redlock/crates/redlock-core)`.
fn parse_package(line: &str) -> Option<Package> {
    let (name, rest) = line.split_once(' ')?;
    let root = rest.split_once('(')?.1.strip_suffix(')')?;
    Some(Package { name: name.to_owned(), root: PathBuf::from(root) })
}

/// The directory of the workspace's manifest, which is two above this package's own.
pub(crate) fn workspace_root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    PathBuf::from(package).ancestors().nth(2).map(PathBuf::from).unwrap_or_default()
}

/// A command as one would type it.
pub(crate) fn show(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    // The toolchain's directory is of no interest.
    let program = if program.ends_with("/cargo") { "cargo".to_owned() } else { quote(&program) };
    let settings = command.get_envs().filter_map(|(name, value)| {
        let value = value?.to_string_lossy();
        Some(format!("{}={}", name.to_string_lossy(), quote(&value)))
    });
    let arguments = command.get_args().map(|argument| quote(&argument.to_string_lossy()));
    settings.chain([program]).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn quote(word: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./=:,@".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_from_the_tree() {
        let package = parse_package("redlock-core v0.1.0 (/home/me/my redlock/crates/redlock-core)");
        let root = PathBuf::from("/home/me/my redlock/crates/redlock-core");
        assert_eq!(package, Some(Package { name: "redlock-core".to_owned(), root }));
        assert_eq!(parse_package(""), None);
        assert_eq!(parse_package("rand v0.10.4"), None);
    }

    #[test]
    fn this_package_is_in_the_workspace_and_no_library() {
        let packages = packages().unwrap();
        let this = packages.iter().find(|package| package.name == "xtask").unwrap();
        assert!(!this.is_library());
        assert!(packages.iter().any(Package::is_library));
    }

    #[test]
    fn commands_are_shown_as_typed() {
        let mut command = Command::new("/opt/toolchain/bin/cargo");
        command.args(["doc", "-p", "redlock-core", "it's", ""]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(show(&command), "RUSTDOCFLAGS='-D warnings' cargo doc -p redlock-core 'it'\\''s' ''");
    }

    #[test]
    fn failing_command_is_named() {
        let message = execute(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(message, "`sh -c 'exit 3'`: exit status: 3");
        let message = output(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        assert_eq!(message, "`sh -c 'echo why >&2; exit 3'`: exit status: 3\nwhy");
    }
}
