//! The Redis servers that the tests run against: found, or else installed.
//!
//! The tests start and stop their servers themselves; this only sees to it that there is a program to start.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, path};

use crate::cargo::{execute, output};

/// What the tests run against.
#[derive(Debug)]
pub(crate) struct Servers {
    /// The program that tests start.
    pub(crate) program: Option<PathBuf>,
    /// For the closing summary.
    pub(crate) description: String,
}

/// Finds the servers that the environment names, or a server program, or installs one. Says what to do when
/// nothing of that works.
pub(crate) fn provide() -> Result<Servers, String> {
    let running = env::var("REDLOCK_REDIS_ADDRS").unwrap_or_default();
    if let Some(description) = describe_running(&running)? {
        // Someone who has servers running does not ask for another to be installed.
        let program = find().map(|(program, _)| program);
        if let Err(reason) = &program {
            println!("{reason}; tests that need more than the running servers will fail");
        }
        return Ok(Servers { program: program.ok(), description });
    }
    let (program, version) = find().or_else(|reason| {
        install(&reason)?;
        find()
    })?;
    Ok(Servers { program: Some(program), description: format!("started by the tests: {version}") })
}

/// The program and its version.
fn find() -> Result<(PathBuf, String), String> {
    let name = env::var_os(PROGRAM_VARIABLE).unwrap_or_else(|| SERVER.into());
    // Tests run in the directories of their packages: a path from here would lead nowhere there.
    let program = match Path::new(&name).components().count() {
        1 => PathBuf::from(name),
        // Links stay as they are: a server looks at the name that it was called by.
        _ => path::absolute(&name).map_err(|error| format!("{}: {error}", name.display()))?,
    };
    let version = output(Command::new(&program).arg("--version"))?;
    Ok((program, version.trim().to_owned()))
}

/// Installs the server with the system's package manager, where that needs no password.
fn install(reason: &str) -> Result<(), String> {
    if env::var_os(PROGRAM_VARIABLE).is_some() {
        return Err(format!("{PROGRAM_VARIABLE} does not name a Redis server: {reason}"));
    }
    if !succeeds(Command::new("apt-get").arg("--version")) {
        return Err(format!("{reason}\n{ADVICE}"));
    }
    let is_root = output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    let mut command = if is_root {
        Command::new("sh")
    } else if succeeds(Command::new("sudo").args(["-n", "true"])) {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "sh"]);
        sudo
    } else {
        return Err(format!("{reason}\n{ADVICE}"));
    };
    println!("{reason}; installing it with apt-get");
    execute(command.args(["-c", INSTALL])).map_err(|error| format!("{error}\n{ADVICE}"))
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Asks the running servers for their versions. `None` when `addresses` is empty.
fn describe_running(addresses: &str) -> Result<Option<String>, String> {
    let addresses = addresses.split(',').map(str::trim).filter(|address| !address.is_empty());
    let described = addresses.map(|address| {
        let version =
            version_at(address).map_err(|reason| format!("REDLOCK_REDIS_ADDRS: {address}: {reason}"))?;
        Ok(format!("{address} ({version})"))
    });
    let described = described.collect::<Result<Vec<_>, String>>()?;
    Ok((!described.is_empty()).then(|| format!("those of REDLOCK_REDIS_ADDRS: {}", described.join(", "))))
}

/// The version that a running server reports.
fn version_at(address: &str) -> Result<String, String> {
    let text = |error: std::io::Error| error.to_string();
    let target = address.to_socket_addrs().map_err(text)?.next().ok_or("no such host")?;
    let mut stream = TcpStream::connect_timeout(&target, PATIENCE).map_err(text)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
    stream.write_all(b"INFO server\r\nQUIT\r\n").map_err(text)?;
    let mut answer = Vec::new();
    stream.take(64 * 1024).read_to_end(&mut answer).map_err(text)?;
    version_in(&String::from_utf8_lossy(&answer))
}

/// Reads the answer to `INFO server`. Valkey reports the Redis version that it is compatible with beside its
/// own.
fn version_in(info: &str) -> Result<String, String> {
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    match (field("valkey_version"), field("redis_version")) {
        (Some(version), _) => Ok(format!("Valkey {version}")),
        (None, Some(version)) => Ok(format!("Redis {version}")),
        (None, None) => Err(format!("not a Redis server: {:?}", info.lines().next().unwrap_or_default())),
    }
}

const SERVER: &str = "redis-server";

const PROGRAM_VARIABLE: &str = "REDLOCK_REDIS_SERVER";

const PATIENCE: Duration = Duration::from_secs(5);

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
    fn versions_are_read_from_the_answer() {
        let redis = "$300\r\n# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n\r\n+OK\r\n";
        assert_eq!(version_in(redis), Ok("Redis 7.0.15".to_owned()));
        let valkey =
            "$300\r\n# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n";
        assert_eq!(version_in(valkey), Ok("Valkey 9.1.2".to_owned()));
        let refusal = version_in("-NOAUTH Authentication required.\r\n");
        assert_eq!(refusal, Err("not a Redis server: \"-NOAUTH Authentication required.\"".to_owned()));
    }

    #[test]
    fn no_addresses_mean_no_running_servers() {
        assert_eq!(describe_running(""), Ok(None));
        assert_eq!(describe_running(" , "), Ok(None));
    }

    #[test]
    fn unreachable_server_is_named() {
        let message = describe_running("127.0.0.1:1").unwrap_err();
        assert!(message.starts_with("REDLOCK_REDIS_ADDRS: 127.0.0.1:1: "), "{message}");
        let message = describe_running("127.0.0.1").unwrap_err();
        assert!(message.starts_with("REDLOCK_REDIS_ADDRS: 127.0.0.1: "), "{message}");
    }
}
