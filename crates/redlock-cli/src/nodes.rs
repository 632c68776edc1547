//! The nodes that the command line or the environment names, and the password for them.

use std::path::Path;
use std::{env, fs, io};

use redis::io::tcp::TcpSettings;
use redlock_tokio::{Config, IntoNode as _, Manager, Tokio};

use crate::args::NodeArgs;
use crate::exit::Failure;

/// The variable that names the nodes.
pub(crate) const NODES: &str = "REDLOCK_NODES";

/// The variable with the password.
pub(crate) const PASSWORD: &str = "REDLOCK_PASSWORD";

/// One node: how to reach it, and what to call it.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) client: redis::Client,
}

/// All nodes, in the order in which they were named.
pub(crate) fn targets(args: &NodeArgs) -> Result<Vec<Target>, Failure> {
    let urls = urls(&args.urls, env::var(NODES))?;
    let password = match &args.password_file {
        Some(path) => Some(password_in(path)?),
        None => password_of(env::var(PASSWORD))?,
    };
    // Which of several would be used, if another crate brought another, is not to be left to chance. A second
    // call changes nothing.
    #[cfg(feature = "tls")]
    let _ = rustls::crypto::ring::default_provider().install_default();
    urls.iter().map(|url| target(url, password.as_deref())).collect()
}

/// The leases that these nodes can grant: with one node, those of one logical Redis.
pub(crate) fn manager(targets: &[Target], config: Config) -> Result<Manager, Failure> {
    match targets {
        [only] => Ok(Manager::single(only.client.clone(), config)?),
        several => Ok(Manager::redlock(several.iter().map(|target| target.client.clone()), config)?),
    }
}

/// Whether the nodes in the environment carry passwords. Then they are none of a command's business.
pub(crate) fn environment_has_passwords() -> bool {
    env::var(NODES).is_ok_and(|list| split(&list).any(has_password))
}

fn urls(options: &[String], variable: Result<String, env::VarError>) -> Result<Vec<String>, Failure> {
    if !options.is_empty() {
        // Everybody on the machine can read the process list.
        return match options.iter().position(|url| has_password(url)) {
            Some(index) => Err(Failure::usage(format!(
                "the password in --node number {} is visible in the process list: write \
                 redis://USER@HOST:PORT or redis://HOST:PORT, and put the password into {PASSWORD} or into a \
                 file for --password-file",
                index + 1
            ))),
            None => Ok(options.to_vec()),
        };
    }
    let named: Vec<String> = match variable {
        Ok(list) => split(&list).map(str::to_owned).collect(),
        Err(env::VarError::NotPresent) => Vec::new(),
        Err(env::VarError::NotUnicode(_)) => return Err(Failure::usage(format!("{NODES} is not UTF-8"))),
    };
    if named.is_empty() {
        return Err(Failure::usage(format!(
            "which nodes? Write --node redis://HOST:PORT, once for each, or set \
             {NODES}=redis://HOST:PORT,redis://HOST:PORT,..."
        )));
    }
    Ok(named)
}

fn split(list: &str) -> impl Iterator<Item = &str> {
    list.split(|letter: char| letter == ',' || letter.is_whitespace()).filter(|url| !url.is_empty())
}

/// Whether this is a URL with a password in it. What is no URL is refused elsewhere, and not shown there.
fn has_password(url: &str) -> bool {
    redis::Client::open(url)
        .is_ok_and(|client| client.get_connection_info().redis_settings().password().is_some())
}

fn password_in(path: &Path) -> Result<String, Failure> {
    let refused = |error: io::Error| {
        Failure::usage(format!("--password-file {}: {}; name a readable file", path.display(), error))
    };
    let text = fs::read_to_string(path).map_err(refused)?;
    // Editors and `echo` end a file with a newline, which is hardly part of the password.
    let password = text.strip_suffix('\n').unwrap_or(&text);
    let password = password.strip_suffix('\r').unwrap_or(password);
    if password.is_empty() {
        let message = format!("--password-file {} is empty: write the password into it", path.display());
        return Err(Failure::usage(message));
    }
    Ok(password.to_owned())
}

fn password_of(variable: Result<String, env::VarError>) -> Result<Option<String>, Failure> {
    match variable {
        Ok(password) => Ok(Some(password).filter(|password| !password.is_empty())),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => Err(Failure::usage(format!("{PASSWORD} is not UTF-8"))),
    }
}

fn target(url: &str, password: Option<&str>) -> Result<Target, Failure> {
    // The library's errors show no credentials; those of the client may.
    let node = url.into_node(&Tokio::default());
    if node.is_err() && cfg!(not(feature = "tls")) && WITH_TLS.iter().any(|scheme| url.starts_with(scheme)) {
        return Err(Failure::usage(
            "rediss:// needs TLS, and this program was built without: build it with --features tls",
        ));
    }
    let name = node?.name().to_string();
    let refused = || Failure::usage(format!("node {name}: the address cannot be used"));
    let client = redis::Client::open(url).map_err(|_| refused())?;
    let info = client.get_connection_info().clone();
    let mut settings = info.redis_settings().clone();
    if let (Some(password), None) = (password, settings.password()) {
        settings = settings.set_password(password);
    }
    let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true)).set_redis_settings(settings);
    let client = redis::Client::open(info).map_err(|_| refused())?;
    Ok(Target { name, client })
}

const WITH_TLS: [&str; 2] = ["rediss://", "valkeys://"];

#[cfg(test)]
mod tests {
    use super::*;

    fn names(options: &[&str], variable: Option<&str>) -> Result<Vec<String>, String> {
        let options: Vec<String> = options.iter().map(|&url| url.to_owned()).collect();
        let variable = variable.map(str::to_owned).ok_or(env::VarError::NotPresent);
        urls(&options, variable).map_err(|failure| failure.message)
    }

    #[test]
    fn options_come_before_the_environment() {
        let both = names(&["redis://a"], Some("redis://b,redis://c"));
        assert_eq!(both, Ok(vec!["redis://a".to_owned()]));
        let variable = names(&[], Some(" redis://b, redis://:secret@c\nredis://d,"));
        assert_eq!(variable.unwrap(), ["redis://b", "redis://:secret@c", "redis://d"]);
    }

    #[test]
    fn no_nodes_at_all_are_asked_for() {
        for variable in [None, Some(""), Some(" , ")] {
            let message = names(&[], variable).unwrap_err();
            assert!(message.contains("--node redis://HOST:PORT"), "{message}");
        }
    }

    #[test]
    fn passwords_do_not_belong_on_the_command_line() {
        for url in ["redis://user:hunter2@a", "redis://:hunter2@a:1", "unix:///s?pass=hunter2"] {
            let message = names(&["redis://b", url], None).unwrap_err();
            assert!(message.contains("REDLOCK_PASSWORD") && message.contains("number 2"), "{message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
        assert!(names(&["redis://user@a"], None).is_ok());
    }

    #[test]
    fn the_password_is_for_nodes_that_have_none() {
        let password = |url: &str| {
            let client = target(url, Some("sesame")).unwrap().client;
            client.get_connection_info().redis_settings().password().map(str::to_owned)
        };
        assert_eq!(password("redis://user@a").as_deref(), Some("sesame"));
        assert_eq!(password("redis://:own@a").as_deref(), Some("own"));
        assert_eq!(target("redis://user@A:1/3", None).unwrap().name, "a:1");
    }

    #[test]
    fn tls_works_or_is_asked_for() {
        match target("rediss://user@a", None) {
            Ok(target) => assert_eq!((target.name.as_str(), cfg!(feature = "tls")), ("a:6379", true)),
            Err(failure) => assert!(failure.message.contains("--features tls"), "{}", failure.message),
        }
    }

    #[test]
    fn an_unusable_address_is_refused_without_its_password() {
        for url in ["http://user:hunter2@a", "redis://user:hunter2@a:b"] {
            let failure = target(url, None).map(|target| target.name).unwrap_err();
            assert!(!failure.message.contains("er2"), "{}", failure.message);
        }
    }
}
