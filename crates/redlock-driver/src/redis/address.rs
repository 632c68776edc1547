//! Addresses without what must not be seen: credentials.

use std::net::Ipv6Addr;
use std::sync::Arc;

use redis::io::tcp::TcpSettings;
use redis::{Client, ConnectionAddr};
use redlock_core::ConfigError;

/// The name of the server that a client connects to: `host:port` or `unix:path`, in one spelling and
/// without user, password and database. Two clients with the same name reach the same server, so they
/// must not count as two nodes. (Two with different names may still: a host has many names.)
#[must_use]
pub(crate) fn node_name(client: &Client) -> Arc<str> {
    let address = client.get_connection_info().addr();
    let name = match address {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            match host.trim_matches(['[', ']']).parse::<Ipv6Addr>() {
                Ok(host) => format!("[{host}]:{port}"),
                Err(_) => format!("{}:{port}", host.to_ascii_lowercase()),
            }
        }
        ConnectionAddr::Unix(path) => format!("unix:{}", path.display()),
        // What the crate may add prints its address and nothing else.
        other => other.to_string(),
    };
    name.into()
}

/// A client for a URL such as `redis://user:password@host:port/database`, `rediss://...` for TLS, or
/// `redis+unix:///path`. Small packets are sent at once (`TCP_NODELAY`). Does no I/O.
///
/// # Errors
/// [`ConfigError::InvalidNode`] if the URL cannot be used. It names the host if one can be made out
/// for certain, and never shows what may be a credential.
pub(crate) fn parse_url(url: &str) -> Result<Client, ConfigError> {
    let invalid =
        |reason: &str| ConfigError::InvalidNode { node: redacted(url).into(), reason: reason.into() };
    if !SCHEMES.iter().any(|scheme| url.trim_start().to_ascii_lowercase().starts_with(&format!("{scheme}:")))
    {
        return Err(invalid("not a Redis URL: it must begin with redis://, rediss:// or redis+unix://"));
    }
    let client = Client::open(url).map_err(|error| invalid(reason(&error.to_string())))?;
    let info =
        client.get_connection_info().clone().set_tcp_settings(TcpSettings::default().set_nodelay(true));
    Client::open(info).map_err(|error| invalid(reason(&error.to_string())))
}

/// Whether a connection to the server of `client` can be tried at all.
///
/// # Errors
/// [`ConfigError::InvalidNode`] for TLS where no crypto provider was installed for rustls, which then panics
/// at the first connection; or picks one itself, if it was built with exactly one, and that is nothing to rely
/// on.
pub(crate) fn usable(client: &Client) -> Result<(), ConfigError> {
    #[cfg(feature = "rustls")]
    if matches!(client.get_connection_info().addr(), ConnectionAddr::TcpTls { .. })
        && rustls::crypto::CryptoProvider::get_default().is_none()
    {
        let reason = "TLS needs a crypto provider: before this, call \
                      rustls::crypto::ring::default_provider().install_default(), or that of aws_lc_rs";
        return Err(ConfigError::InvalidNode { node: (*node_name(client)).into(), reason: reason.into() });
    }
    let _ = client;
    Ok(())
}

/// The fixed first part of an error's text; what follows may quote the URL.
fn reason(text: &str) -> &str {
    text.split(" - ").next().unwrap_or_default()
}

/// What of a URL, however misspelt, can be shown: the scheme, and the host and port or the path if it
/// is clear where they are.
fn redacted(url: &str) -> String {
    const HIDDEN: &str = "(address withheld)";
    let url = url.trim();
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let scheme = SCHEMES.iter().find(|known| scheme.eq_ignore_ascii_case(known));
    let shown = scheme.map_or_else(String::new, |scheme| format!("{scheme}://"));
    let plain = rest.find(['?', '#']).map_or(rest, |end| &rest[..end]);
    if rest[plain.len()..].contains('@') {
        // A password with `?` or `#` in it, or one in the query with `@` in it: no telling.
        return shown + HIDDEN;
    }
    let place = plain.rsplit_once('@').map_or(plain, |(_, place)| place);
    if scheme.is_some_and(|scheme| scheme.ends_with("unix")) {
        return shown + place;
    }
    let place = place.find('/').map_or(place, |end| &place[..end]);
    if is_host_and_port(place) { shown + place } else { shown + HIDDEN }
}

/// Whether this can only be meant as a host, perhaps with a port: `user:password` without a host is not.
fn is_host_and_port(place: &str) -> bool {
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !place.ends_with(']') => (host, port),
        _ => (place, ""),
    };
    let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host_is_plain = match literal {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')),
    };
    !host.is_empty() && host_is_plain && port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// What the `redis` crate accepts.
const SCHEMES: [&str; 7] = ["redis", "rediss", "valkey", "valkeys", "redis+unix", "valkey+unix", "unix"];

#[cfg(test)]
mod tests {
    use super::*;

    fn name(url: &str) -> String {
        node_name(&parse_url(url).unwrap()).to_string()
    }

    #[test]
    fn one_server_has_one_name() {
        for (url, expected) in [
            ("redis://127.0.0.1:6381", "127.0.0.1:6381"),
            ("redis://127.0.0.1", "127.0.0.1:6379"),
            ("valkey://127.0.0.1/", "127.0.0.1:6379"),
            ("redis://user:hunter2@127.0.0.1/3?protocol=resp3", "127.0.0.1:6379"),
            ("redis://:hunter2@Redis-A.Example:7000", "redis-a.example:7000"),
            ("redis://[::1]:6379", "[::1]:6379"),
            ("redis://[0:0:0:0:0:0:0:1]", "[::1]:6379"),
            ("redis+unix:///run/redis.sock?pass=hunter2&db=1", "unix:/run/redis.sock"),
            ("unix:///run/redis.sock", "unix:/run/redis.sock"),
        ] {
            assert_eq!(name(url), expected, "{url}");
        }
        let by_hand = Client::open(("::1", 6379)).unwrap();
        assert_eq!(&*node_name(&by_hand), "[::1]:6379");
    }

    #[test]
    fn small_packets_are_sent_at_once_and_the_rest_is_kept() {
        let client = parse_url("redis://user:hunter2@127.0.0.1/3?protocol=resp3").unwrap();
        let info = client.get_connection_info();
        assert!(info.tcp_settings().nodelay());
        let redis = info.redis_settings();
        assert_eq!((redis.username(), redis.password(), redis.db()), (Some("user"), Some("hunter2"), 3));
        assert_eq!(redis.protocol(), redis::ProtocolVersion::RESP3);
    }

    /// The feature comes with that of the `redis` crate.
    #[cfg(not(feature = "rustls"))]
    #[test]
    fn tls_without_the_feature_is_refused() {
        let error = parse_url("rediss://:hunter2@redis-a:6380").unwrap_err().to_string();
        assert!(error.contains("rediss://redis-a:6380") && error.contains("TLS"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn an_unusable_url_is_named_without_its_credentials() {
        let not_redis = "not a Redis URL: it must begin with redis://, rediss:// or redis+unix://";
        let table = [
            ("http://user:hunter2@host:80/x", "host:80", not_redis),
            ("user:hunter2@host:6379", "host:6379", not_redis),
            ("host", "host", not_redis),
            ("user:hunter2", "(address withheld)", not_redis),
            ("hunter2@redis://host", "host", not_redis),
            ("redis://user:hunter2@host:port", "redis://(address withheld)", "Redis URL did not parse"),
            ("redis://user:hunter2@host:99999", "redis://host:99999", "Redis URL did not parse"),
            ("redis://user:hunter2", "redis://(address withheld)", "Redis URL did not parse"),
            ("redis://:hunter2@", "redis://(address withheld)", "Redis URL did not parse"),
            ("redis://user:hunt/er2@host:6379", "redis://host:6379", "Redis URL did not parse"),
            ("redis://user:hunt?er2@host:6379", "redis://(address withheld)", "Redis URL did not parse"),
            ("redis://user:hunt#er2@host:6379", "redis://(address withheld)", "Redis URL did not parse"),
            ("redis://user:hunter2@host/x", "redis://host", "Invalid database number"),
            ("redis://user:hunter2@host?protocol=9", "redis://host", "Invalid protocol version"),
            (
                "redis://:hunter2@0.0.0.0",
                "redis://0.0.0.0",
                "Cannot connect to a wildcard address (0.0.0.0 or ::)",
            ),
            ("redis://:hunter2@[::1", "redis://(address withheld)", "Redis URL did not parse"),
            ("unix:///s?db=x&pass=hunter2", "unix:///s", "Invalid database number"),
            ("unix:///s?db=x&pass=hunter2@", "unix://(address withheld)", "Invalid database number"),
        ];
        for (url, expected, because) in table {
            let error = parse_url(url).unwrap_err();
            let ConfigError::InvalidNode { node, reason } = &error else { panic!("{url}: {error}") };
            assert_eq!((&**node, &**reason), (expected, because), "{url}");
            assert!(!format!("{error} {error:?}").contains("er2"), "{url}: {error}");
        }
    }
}
