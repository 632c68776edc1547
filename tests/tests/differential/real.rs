//! The side of the real server.

use std::future::Future;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use redis::{Client, Cmd, ConnectionLike, FromRedisValue, RedisResult, cmd};
use redlock_core::{Command, CommandId, Fault, Instant, Intent, NodeId, Reply};
use redlock_driver::{Connection, Node, Transport};
use redlock_tests::harness::{Dialect, shared_primaries, unique};

use super::step::{ALL_KEYS, Key, Lifetime, Name, PAUSE, Step, Told, What};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Protocol {
    Resp2,
    Resp3,
}

/// How the driver is made to write the intents that compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// With the best that the server has.
    Commands,
    /// With scripts: it is told that nothing else is there.
    Scripts,
}

/// A server.
pub(crate) struct Real {
    /// Which server, and how it is spoken to.
    pub(crate) name: String,
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
    /// The server in every way that it can be spoken to.
    pub(crate) fn all() -> Vec<Self> {
        let [primary] = &shared_primaries(1)[..] else { panic!("one node") };
        let dialect = Dialect::of(primary);
        let ways: &[Way] = match dialect.releases_by_comparing() {
            true => &[Way::Commands, Way::Scripts],
            false => &[Way::Scripts],
        };
        println!("the server has {dialect}; spoken to by way of {ways:?}");
        let protocols = [Protocol::Resp2, Protocol::Resp3];
        protocols
            .into_iter()
            .flat_map(|protocol| ways.iter().map(move |way| Self::connect(protocol, *way)))
            .collect()
    }

    fn connect(protocol: Protocol, way: Way) -> Self {
        let [primary] = &shared_primaries(1)[..] else { panic!("one node") };
        let version = match protocol {
            Protocol::Resp2 => "resp2",
            Protocol::Resp3 => "resp3",
        };
        let client = Client::open(format!("{}?protocol={version}", primary.url())).unwrap();
        let connection = Blocking { way, connection: Arc::new(Mutex::new(client.get_connection().unwrap())) };
        let nodes = [Node::connection("real", connection.clone())].into();
        let real = Self { name: format!("{protocol:?} {way:?}"), connection, nodes };
        real.learn();
        real
    }

    /// Has the driver find out what there is, so that every step takes the same way.
    fn learn(&self) {
        let session = self.begin();
        for what in [What::CompareAndDelete, What::CompareAndPexpire] {
            let intent = what.intent("unused", Name::Ours, Lifetime::Minutes(1));
            assert_eq!(session.carry_out(Key::A, intent), Ok(Reply::Int(0)));
        }
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
        command.query(&mut *self.real.connection.connection.lock().unwrap()).unwrap()
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
struct Blocking {
    way: Way,
    connection: Arc<Mutex<redis::Connection>>,
}

impl Connection for Blocking {
    fn call(&self, command: Cmd) -> impl Future<Output = RedisResult<redis::Value>> + Send + 'static {
        let this = self.clone();
        async move {
            let compares = command.args_iter().any(
                |arg| matches!(arg, redis::Arg::Simple(word) if [&b"DELIFEQ"[..], b"DELEX", b"IFEQ"].contains(&word)),
            );
            if compares && this.way == Way::Scripts {
                return redis::parse_redis_value(b"-ERR unknown command\r\n");
            }
            this.connection.lock().unwrap().req_packed_command(&command.get_packed_command())
        }
    }
}
