//! `cargo xtask dist`: the program `redlock`, with what a package ships beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{cargo, execute, output, workspace_root};

/// Builds the program and puts it, its completions and its manual pages into `target/dist`.
pub(crate) fn run() -> Result<(), String> {
    execute(&mut cargo(&["build", "--release", "--locked", "-p", "redlock-cli", "--features", "tls"]))?;
    let target = target_directory()?;
    let dist = target.join("dist");
    let program = dist.join("bin").join("redlock");
    create_parent(&program)?;
    let built = target.join("release").join("redlock");
    fs::copy(&built, &program).map_err(|error| format!("{}: {error}", built.display()))?;
    for (file, arguments) in generated() {
        let text = output(Command::new(&program).args(arguments))?;
        write(&dist.join(file), &text)?;
    }
    println!("redlock, its completions and its manual pages are in {}", dist.display());
    Ok(())
}

/// The files that the program writes itself, and how to ask for them. Each is called what the shells and `man`
/// look for.
fn generated() -> Vec<(PathBuf, Vec<&'static str>)> {
    let completions = [
        ("share/bash-completion/completions/redlock", "bash"),
        ("share/zsh/site-functions/_redlock", "zsh"),
        ("share/fish/vendor_completions.d/redlock.fish", "fish"),
        ("share/elvish/lib/redlock.elv", "elvish"),
        ("share/powershell/redlock.ps1", "powershell"),
    ];
    let completions = completions.map(|(file, shell)| (PathBuf::from(file), vec!["completions", shell]));
    let pages = ["run", "check", "status", "bench"]
        .map(|name| (PathBuf::from(format!("share/man/man1/redlock-{name}.1")), vec!["man", name]));
    let page = (PathBuf::from("share/man/man1/redlock.1"), vec!["man"]);
    completions.into_iter().chain([page]).chain(pages).collect()
}

/// Where cargo builds: what the environment or the configuration says.
fn target_directory() -> Result<PathBuf, String> {
    let metadata = output(&mut cargo(&["metadata", "--format-version", "1", "--no-deps", "--locked"]))?;
    let named = metadata.split("\"target_directory\":\"").nth(1).and_then(|rest| rest.split('"').next());
    Ok(named.map_or_else(|| workspace_root().join("target"), PathBuf::from))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    create_parent(path)?;
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn create_parent(path: &Path) -> Result<(), String> {
    let Some(parent) = path.parent() else { return Ok(()) };
    fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_place_of_its_own() {
        let mut files: Vec<PathBuf> = generated().into_iter().map(|(file, _)| file).collect();
        let count = files.len();
        files.sort();
        files.dedup();
        assert_eq!((files.len(), count), (10, 10));
        assert!(files.iter().all(|file| file.starts_with("share")));
    }

    #[test]
    fn target_directory_is_found() {
        assert!(target_directory().unwrap().is_absolute());
    }
}
