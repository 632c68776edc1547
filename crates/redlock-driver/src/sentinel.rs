//! A primary that sentinels watch over, as one logical node.

use std::fmt;

use redlock_core::ConfigError;

use crate::redis::{Sentinels, parse_url, usable};

/// The primary of a Sentinel deployment, wherever it is at the moment. Made by
/// [`Node::sentinel`](crate::Node::sentinel).
///
/// Whenever a connection is needed, the sentinels are asked one after the other where the primary is; the
/// server that they name is connected to, and used if it says itself that it is a primary (`ROLE`). A
/// connection that is lost, or that leads to a server which has become a replica, is replaced in the same way.
///
/// Replication is asynchronous, so a replica may be promoted without having heard of a lease. Its holder is
/// told at the next renewal, or when the validity ends: nothing that a client does could tell it sooner.
#[derive(Clone)]
pub struct SentinelNode {
    service: String,
    sentinels: Vec<Address>,
    primary: Address,
}

impl SentinelNode {
    pub(crate) fn new(
        sentinels: impl IntoIterator<Item = impl Into<Address>>,
        service: impl Into<String>,
    ) -> Self {
        let sentinels = sentinels.into_iter().map(Into::into).collect();
        Self { service: service.into(), sentinels, primary: Address::from("redis://localhost") }
    }

    /// How to connect to the primary: like this, with the host and port that the sentinels say. From here come
    /// user, password, database, protocol and TLS; a `redis::Client` can bring certificates. What is in the
    /// sentinels' own addresses is for the sentinels only.
    #[must_use]
    pub fn primary_like(mut self, address: impl Into<Address>) -> Self {
        self.primary = address.into();
        self
    }

    /// Checks the addresses.
    pub(crate) fn resolve(self) -> Result<Sentinels, ConfigError> {
        let sentinels = self.sentinels.into_iter().map(Address::client).collect::<Result<_, _>>()?;
        Sentinels::new(&self.service, sentinels, self.primary.client()?)
    }
}

impl fmt::Debug for SentinelNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentinelNode").field("service", &self.service).finish_non_exhaustive()
    }
}

/// The address of a server: a URL, or a `redis::Client`.
#[derive(Clone)]
pub struct Address(Form);

#[derive(Clone)]
enum Form {
    Url(String),
    Client(Box<redis::Client>),
}

impl Address {
    fn client(self) -> Result<redis::Client, ConfigError> {
        let client = match self.0 {
            Form::Url(url) => parse_url(&url)?,
            Form::Client(client) => *client,
        };
        usable(&client)?;
        Ok(client)
    }
}

impl From<&str> for Address {
    fn from(url: &str) -> Self {
        url.to_owned().into()
    }
}

impl From<String> for Address {
    fn from(url: String) -> Self {
        Self(Form::Url(url))
    }
}

impl From<&String> for Address {
    fn from(url: &String) -> Self {
        url.clone().into()
    }
}

impl From<redis::Client> for Address {
    fn from(client: redis::Client) -> Self {
        Self(Form::Client(Box::new(client)))
    }
}

impl fmt::Debug for Address {
    /// Without what it holds, which may be a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Node;

    fn refusal(node: SentinelNode) -> String {
        node.resolve().unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_work_is_refused_and_named() {
        let one = ["redis://sentinel-a:26379"];
        assert!(refusal(Node::sentinel(one, "")).contains("the name by which"));
        assert!(refusal(Node::sentinel([""; 0], "mymaster")).contains("mymaster: no sentinel is given"));
        let socket = Node::sentinel(one, "mymaster").primary_like("redis+unix:///run/redis.sock");
        assert!(refusal(socket).contains("Unix socket"));
        for wrong in [
            Node::sentinel(["http://:hunter2@sentinel-a"], "mymaster"),
            Node::sentinel(one, "mymaster").primary_like("redis://:hunter2@any/x"),
        ] {
            let text = format!("{wrong:?} {}", refusal(wrong.clone()));
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn the_name_has_the_sentinels_in_order_and_no_credentials() {
        let node = |sentinels: [&str; 2]| {
            let node = Node::sentinel(sentinels, "mymaster").primary_like("redis://:hunter2@any");
            node.resolve().unwrap().name()
        };
        let name = node(["redis://b:26379", "redis://:hunter2@A:26379"]);
        assert_eq!(&*name, "mymaster@a:26379,b:26379");
        assert_eq!(name, node(["redis://a:26379", "redis://b:26379"]));
    }

    #[test]
    fn a_client_is_an_address_too() {
        let client = redis::Client::open("redis://sentinel-a:26379").unwrap();
        let node = Node::sentinel([client.clone()], "mymaster").primary_like(client);
        assert_eq!(&*node.resolve().unwrap().name(), "mymaster@sentinel-a:26379");
    }
}
