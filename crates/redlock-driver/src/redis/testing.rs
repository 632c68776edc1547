//! A runtime on tokio's paused clock, with a server whose every answer a test decides.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_channel::oneshot;
use redis::{PushInfo, PushKind, RedisResult, Value};
use redlock_core::{Command, CommandId, Instant, Intent, NodeId, Token, Ttl};

use super::{Connect, Connection, Pushes, lock, node_name};
use crate::{NotRunning, Runtime};

/// A command about key `k`, due this many milliseconds after the bench's epoch.
pub(super) fn command(intent: Intent, deadline: u64) -> Command {
    let deadline = Instant::from_epoch(Duration::from_millis(deadline));
    Command { id: CommandId::new(1), node: NodeId::new(0), deadline, key: Arc::from("k"), intent }
}

pub(super) fn token(number: u8) -> Token {
    Token::from_bytes([number; Token::LEN])
}

pub(super) fn set(number: u8, deadline: u64) -> Command {
    command(Intent::SetNxPx { token: token(number), ttl: Ttl::from_millis(1_000).unwrap() }, deadline)
}

pub(super) fn fenced(number: u8, deadline: u64) -> Command {
    let ttl = Ttl::from_millis(1_000).unwrap();
    command(Intent::FencedAcquire { fence: Arc::from("f"), token: token(number), ttl }, deadline)
}

pub(super) fn delete(number: u8, deadline: u64) -> Command {
    command(Intent::CompareAndDelete { token: token(number) }, deadline)
}

pub(super) fn extend(number: u8, deadline: u64) -> Command {
    let ttl = Ttl::from_millis(1_000).unwrap();
    command(Intent::CompareAndPexpire { token: token(number), ttl }, deadline)
}

/// The words of a command as it goes on the wire.
pub(super) fn words(cmd: &redis::Cmd) -> Vec<String> {
    cmd.args_iter()
        .map(|arg| match arg {
            redis::Arg::Simple(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        })
        .collect()
}

/// How the server takes a dial.
#[derive(Clone, Debug)]
pub(crate) enum Dial {
    Accept,
    AcceptAfter(Duration),
    /// Accept after this time, and fail every command at once.
    BreakAfter(Duration),
    Refuse,
    RefuseAfter(Duration),
    Hang,
    Panic,
    Say(redis::RedisError),
}

/// Runtime, dialler and server in one; clones are the same bench.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    epoch: tokio::time::Instant,
    server: Arc<Mutex<Server>>,
}

#[derive(Debug, Default)]
struct Server {
    /// What comes next; when there is nothing, dials are accepted.
    dials: VecDeque<Dial>,
    dialled: Vec<Arc<str>>,
    connections: Vec<Vec<Call>>,
    /// How many commands came together, time after time, whatever the connection.
    batches: Vec<usize>,
    /// Where the connections that listen hand over what they are sent, by their numbers.
    pushes: BTreeMap<usize, Pushes>,
    closed: usize,
}

#[derive(Debug)]
struct Call {
    words: Vec<String>,
    answer: Option<oneshot::Sender<RedisResult<Value>>>,
}

impl Bench {
    pub(crate) fn new(dials: impl IntoIterator<Item = Dial>) -> Self {
        let server = Server { dials: dials.into_iter().collect(), ..Server::default() };
        Self { epoch: tokio::time::Instant::now(), server: Arc::new(Mutex::new(server)) }
    }

    pub(super) fn client() -> redis::Client {
        redis::Client::open("redis://user:hunter2@127.0.0.1:1").unwrap()
    }

    /// How often somebody dialled.
    pub(super) fn dialled(&self) -> usize {
        lock(&self.server).dialled.len()
    }

    /// Whom, one after the other.
    pub(super) fn addresses(&self) -> Vec<Arc<str>> {
        lock(&self.server).dialled.clone()
    }

    /// How many connections were accepted and then dropped by us.
    pub(super) fn dropped(&self) -> usize {
        lock(&self.server).closed
    }

    /// The commands that arrived on a connection: the verb, which for a `SET` with `IFEQ` is `SETIFEQ`, and
    /// the first digit pair of the token.
    pub(super) fn calls(&self, connection: usize) -> Vec<String> {
        let server = lock(&self.server);
        let Some(calls) = server.connections.get(connection) else { return Vec::new() };
        calls.iter().map(|call| summary(&call.words)).collect()
    }

    /// How many commands were written in one go, time after time.
    pub(super) fn batches(&self) -> Vec<usize> {
        lock(&self.server).batches.clone()
    }

    pub(super) fn words(&self, connection: usize, call: usize) -> Vec<String> {
        lock(&self.server).connections[connection][call].words.clone()
    }

    /// Answers a command. False if nobody waits for the answer.
    pub(super) fn answer(&self, connection: usize, call: usize, answer: RedisResult<Value>) -> bool {
        let sender = lock(&self.server).connections[connection][call].answer.take();
        sender.expect("not answered yet").send(answer).is_ok()
    }

    /// Sends unasked that this key has changed, or with `None` that everything has.
    pub(super) fn invalidate(&self, connection: usize, key: Option<&str>) {
        let changed =
            key.map_or(Value::Nil, |key| Value::Array(vec![Value::BulkString(key.as_bytes().to_vec())]));
        self.push(connection, PushInfo { kind: PushKind::Invalidate, data: vec![changed] });
    }

    fn push(&self, connection: usize, message: PushInfo) {
        let pushes = lock(&self.server).pushes.get(&connection).cloned();
        pushes.expect("a connection that listens").push(message);
    }

    /// Breaks a connection that listens.
    pub(super) fn disconnect(&self, connection: usize) {
        self.hang_up(connection);
        self.push(connection, PushInfo { kind: PushKind::Disconnection, data: vec![] });
    }

    /// Breaks a connection: everything unanswered on it fails.
    pub(super) fn hang_up(&self, connection: usize) {
        for call in &mut lock(&self.server).connections[connection] {
            call.answer = None;
        }
    }
}

fn summary(words: &[String]) -> String {
    let token = words.iter().find(|word| word.len() == 40 && word[..2].repeat(20) == **word);
    let verb =
        if words.iter().any(|word| word == "IFEQ") && words[0] == "SET" { "SETIFEQ" } else { &words[0] };
    format!("{verb} {}", token.map_or("-", |token| &token[..2]))
}

impl Runtime for Bench {
    fn now(&self) -> Instant {
        Instant::from_epoch(tokio::time::Instant::now().saturating_duration_since(self.epoch))
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + Send + 'static {
        tokio::time::sleep_until(self.epoch + deadline.since_epoch())
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<(), NotRunning> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| NotRunning)?;
        drop(runtime.spawn(task));
        Ok(())
    }

    fn here(&self) -> Option<impl Eq + Send + Sync + 'static> {
        tokio::runtime::Handle::try_current().map(|runtime| runtime.id()).ok()
    }
}

impl Connect for Bench {
    type Connection = Wired;

    fn connect(&self, client: &redis::Client) -> impl Future<Output = RedisResult<Wired>> + Send + 'static {
        let bench = self.clone();
        let dial = {
            let mut server = lock(&self.server);
            server.dialled.push(node_name(client));
            server.dials.pop_front().unwrap_or(Dial::Accept)
        };
        async move {
            let refused = || io::Error::from_raw_os_error(111).into();
            match &dial {
                Dial::Accept => {}
                Dial::AcceptAfter(span) | Dial::BreakAfter(span) => tokio::time::sleep(*span).await,
                Dial::Refuse => return Err(refused()),
                Dial::RefuseAfter(span) => {
                    tokio::time::sleep(*span).await;
                    return Err(refused());
                }
                Dial::Hang => std::future::pending().await,
                Dial::Panic => panic!("a dial that panics"),
                Dial::Say(error) => return Err(error.clone()),
            }
            let mut server = lock(&bench.server);
            server.connections.push(Vec::new());
            let number = server.connections.len() - 1;
            drop(server);
            let broken = matches!(dial, Dial::BreakAfter(_));
            Ok(Wired { number, broken, socket: Arc::new(Socket(bench)) })
        }
    }

    fn connect_listening(
        &self,
        client: &redis::Client,
        pushes: Pushes,
    ) -> impl Future<Output = RedisResult<Option<Wired>>> + Send + 'static {
        assert_eq!(client.get_connection_info().redis_settings().protocol(), redis::ProtocolVersion::RESP3);
        let (bench, dialled) = (self.clone(), self.connect(client));
        async move {
            let connection = dialled.await?;
            lock(&bench.server).pushes.insert(connection.number, pushes);
            Ok(Some(connection))
        }
    }
}

/// A connection of the bench.
#[derive(Clone, Debug)]
pub(crate) struct Wired {
    number: usize,
    broken: bool,
    socket: Arc<Socket>,
}

/// Counts when the last clone of a connection goes.
#[derive(Debug)]
struct Socket(Bench);

impl Drop for Socket {
    fn drop(&mut self) {
        lock(&self.0.server).closed += 1;
    }
}

impl Wired {
    fn send(&self, command: &redis::Cmd) -> oneshot::Receiver<RedisResult<Value>> {
        let (sender, receiver) = oneshot::channel();
        let sender = Some(sender).filter(|_| !self.broken);
        let call = Call { words: words(command), answer: sender };
        lock(&self.socket.0.server).connections[self.number].push(call);
        receiver
    }
}

impl Connection for Wired {
    fn call(&self, command: redis::Cmd) -> impl Future<Output = RedisResult<Value>> + Send + 'static {
        let this = self.clone();
        async move {
            lock(&this.socket.0.server).batches.push(1);
            this.send(&command)
                .await
                .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::BrokenPipe).into()))
        }
    }

    fn call_all(
        &self,
        commands: redis::Pipeline,
    ) -> impl Future<Output = RedisResult<Vec<Value>>> + Send + 'static {
        let this = self.clone();
        async move {
            lock(&this.socket.0.server).batches.push(commands.len());
            let receivers: Vec<_> = commands.cmd_iter().map(|command| this.send(command)).collect();
            let mut answers = Vec::new();
            for receiver in receivers {
                let answer = receiver.await;
                answers
                    .push(answer.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::BrokenPipe).into()))?);
            }
            Ok(answers)
        }
    }
}
