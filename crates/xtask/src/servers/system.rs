//! The system's `redis-server`, or the one that the environment names; installed if there is none.

use std::path::{Path, PathBuf};
use std::{env, path};

use super::packages;
use super::program::Program;

/// Finds the program, or installs it where the environment names none.
pub(super) fn provide() -> Result<Program, String> {
    find().or_else(|reason| {
        install(&reason)?;
        find()
    })
}

/// The program that the environment names, or the one on the `PATH`.
pub(super) fn find() -> Result<Program, String> {
    let name = env::var_os(PROGRAM_VARIABLE).unwrap_or_else(|| SERVER.into());
    let program = match Path::new(&name).components().count() {
        1 => on_the_path(Path::new(&name)),
        // Tests run in the directories of their packages: a path from here would lead nowhere there. Links stay
        // as they are: a server looks at the name that it was called by.
        _ => path::absolute(&name).map_err(|error| format!("{}: {error}", name.display()))?,
    };
    Program::at(&program)
}

/// Where the program `name` is; the name itself if it is nowhere.
fn on_the_path(name: &Path) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut candidates = env::split_paths(&path).map(|directory| directory.join(name));
    candidates.find(|candidate| candidate.is_file()).unwrap_or_else(|| name.to_owned())
}

/// Installs the server with the system's package manager, where that needs no password.
fn install(reason: &str) -> Result<(), String> {
    if env::var_os(PROGRAM_VARIABLE).is_some() {
        return Err(format!("{PROGRAM_VARIABLE} does not name a Redis server: {reason}"));
    }
    match packages::run(reason, INSTALL) {
        Some(installed) => installed.map_err(|error| format!("{error}\n{ADVICE}")),
        None => Err(format!("{reason}\n{ADVICE}")),
    }
}

const SERVER: &str = "redis-server";

pub(super) const PROGRAM_VARIABLE: &str = "REDLOCK_REDIS_SERVER";

const ADVICE: &str = "\
The tests need a Redis server. Install one:
  Debian, Ubuntu:  apt-get install redis-server
  Fedora:          dnf install redis
  macOS:           brew install redis
or name its program in REDLOCK_REDIS_SERVER, or name running servers in REDLOCK_REDIS_ADDRS=host:port,...
(for example those of docker-compose.yml).";

/// Installs the package without its service: tests start their own servers, and a machine on which tests ran
/// must not have a database listening for ever after. The policy file keeps package scripts from starting
/// services, the last lines are for a machine whose own policy allows it, and for the next boot.
const INSTALL: &str = r#"
set -e
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi
apt-get update -q
apt-get install -y -q --no-install-recommends redis-server
service redis-server stop >/dev/null 2>&1 || true
if command -v systemctl >/dev/null; then systemctl disable redis-server || true; fi
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_up_on_the_path() {
        let shell = on_the_path(Path::new("sh"));
        assert!(shell.is_absolute() && shell.is_file(), "{}", shell.display());
        assert_eq!(on_the_path(Path::new("no-such-program")), Path::new("no-such-program"));
    }
}
