//! Servers that are already running, named by the environment.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Asks the running servers for their versions. `None` when `addresses` is empty.
pub(super) fn describe_running(addresses: &str) -> Result<Option<String>, String> {
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

const PATIENCE: Duration = Duration::from_secs(5);

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
