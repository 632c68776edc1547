//! The side of the real server.

use std::future::Future;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use redis::{Client, Cmd, ConnectionLike, FromRedisValue, RedisResult, cmd};
use redlock_core::{Command, CommandId, Fault, Instant, Intent, NodeId, Reply};
use redlock_driver::{Connection, Node, Transport};
use redlock_tests::harness::{shared_primaries, unique};

use super::step::{ALL_KEYS, Key, PAUSE, Step, Told};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Protocol {
    Resp2,
    Resp3,
}

/// A server.
pub(crate) struct Real {
    connection: Blocking,
    /// The driver's view of the same connection.
    nodes: Arc<[Node]>,
}

/// The server, with keys that nobody else uses.
pub(crate) struct Session<'a> {
    real: &'a Real,
    names: [String; 3],
}

impl Real {
    pub(crate) fn connect(protocol: Protocol) -> Self {
        let [primary] = &shared_primaries(1)[..] else { panic!("one node") };
        let version = match protocol {
            Protocol::Resp2 => "resp2",
            Protocol::Resp3 => "resp3",
        };
        let client = Client::open(format!("{}?protocol={version}", primary.url())).unwrap();
        let connection = Blocking(Arc::new(Mutex::new(client.get_connection().unwrap())));
        let nodes = [Node::connection("real", connection.clone())].into();
        Self { connection, nodes }
    }

    pub(crate) fn begin(&self) -> Session<'_> {
        Session { real: self, names: ALL_KEYS.map(|key| unique(&format!("differential-{key:?}"))) }
    }
}

impl Session<'_> {
    pub(crate) fn take(&self, step: &Step) -> Told {
        match step {
            Step::CarryOut { lock, fence, what, name, lifetime } => {
                Told::Reply(self.carry_out(*lock, what.intent(self.name(*fence), *name, *lifetime)))
            }
            Step::Get(key) => Told::Value(self.ask(cmd("GET").arg(self.name(*key)))),
            Step::Pttl(key) => Told::Pttl(self.ask(cmd("PTTL").arg(self.name(*key)))),
            Step::Set { key, value, lifetime } => {
                let mut set = cmd("SET");
                set.arg(self.name(*key)).arg(&value.0);
                if let Some(lifetime) = lifetime {
                    set.arg("PX").arg(lifetime.ttl().as_millis());
                }
                self.ask::<()>(&set);
                Told::Nothing
            }
            Step::Del(key) => Told::Existed(self.ask(cmd("DEL").arg(self.name(*key)))),
            // The first millisecond of 1970.
            Step::Expire(key) => Told::Existed(self.ask(cmd("PEXPIREAT").arg(self.name(*key)).arg(1))),
            Step::Pause => {
                std::thread::sleep(PAUSE);
                Told::Nothing
            }
        }
    }

    /// As a lease would have it done.
    fn carry_out(&self, lock: Key, intent: Intent) -> Result<Reply, Fault> {
        let command = Command {
            id: CommandId::new(0),
            node: NodeId::new(0),
            deadline: Instant::EPOCH,
            key: self.name(lock).into(),
            intent,
        };
        self.real
            .nodes
            .send(&command)
            .now_or_never()
            .expect("an answer at once, from a connection that blocks")
    }

    fn ask<T: FromRedisValue>(&self, command: &Cmd) -> T {
        command.query(&mut *self.real.connection.0.lock().unwrap()).unwrap()
    }

    fn name(&self, key: Key) -> &str {
        &self.names[key as usize]
    }

    /// Removes what is left of the keys.
    pub(crate) fn clear(&self) {
        self.ask::<()>(cmd("DEL").arg(&self.names));
    }
}

/// The `redis` crate's blocking connection behind the driver's asynchronous interface.
#[derive(Clone)]
struct Blocking(Arc<Mutex<redis::Connection>>);

impl Connection for Blocking {
    fn call(&self, command: Cmd) -> impl Future<Output = RedisResult<redis::Value>> + Send + 'static {
        let connection = Arc::clone(&self.0);
        async move { connection.lock().unwrap().req_packed_command(&command.get_packed_command()) }
    }
}
