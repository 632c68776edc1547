//! A lease without async: plain threads, channels, and the blocking client of the `redis` crate.
//!
//! ```text
//! cargo run -p redlock-core --example blocking -- redis://127.0.0.1:6379
//! ```
//!
//! The machine says what to send and is told what came back; everything else is here. One thread per
//! node owns its connection, so that a silent node holds up nobody else. The main thread owns the
//! machine, hands its commands out, and sleeps until an answer comes or the machine's next timer is due.

use std::error::Error;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use redis::{Client, Cmd, Connection, RedisError, Value};
use redlock_core::{
    Cause, CauseKind, Command, CommandId, Config, Event, Fault, Instant, Intent, LeaseMachine, LeaseSpec,
    Output, Patience, Reply, ServerError, Token, Ttl, script,
};

type Outcome = Result<Reply, Fault>;
type Answer = (CommandId, Outcome);

/// More commands than one lease has under way. A node that lets more pile up is not waited for.
const QUEUE: usize = 64;
/// The least time that a command gets: one that comes late may still have something to clean up.
const SHORTEST: Duration = Duration::from_millis(50);

fn main() -> Result<(), Box<dyn Error>> {
    let mut urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        urls.extend((6381..=6383).map(|port| format!("redis://127.0.0.1:{port}")));
    }
    let mut lease = Blocking::new("example:lock", &urls)?;
    let result = lease.work();
    // Whatever happened, leave nothing behind. No verdict waits for the last node; this does.
    lease.machine.abandon(lease.now());
    while !lease.machine.is_settled() {
        lease.step()?;
    }
    result
}

/// A lease and the threads that carry out its commands.
struct Blocking {
    machine: LeaseMachine,
    start: std::time::Instant,
    nodes: Vec<SyncSender<Command>>,
    answers: Receiver<Answer>,
}

impl Blocking {
    fn new(resource: &str, urls: &[String]) -> Result<Self, Box<dyn Error>> {
        let clients: Vec<_> = urls.iter().map(|url| Client::open(&**url)).collect::<Result<_, _>>()?;
        // The address, not the URL: reports must not contain passwords.
        let name = |client: &Client| client.get_connection_info().addr().to_string().into();
        let names: Vec<_> = clients.iter().map(name).collect();
        let config = Config::builder().ttl(Duration::from_secs(5)).build()?;
        let (mut base, seed) = ([0; Token::LEN], std::process::id());
        getrandom::fill(&mut base)?;
        let spec = LeaseSpec::new(resource, names, config)?;
        let machine = LeaseMachine::new(spec, Token::from_bytes(base), seed.into());

        #[allow(clippy::disallowed_methods, reason = "this is the clock: the one place that asks the system")]
        let start = std::time::Instant::now();
        let (report, answers) = mpsc::sync_channel(QUEUE * clients.len());
        let node = |client: Client| {
            let (commands, inbox) = mpsc::sync_channel(QUEUE);
            let report = report.clone();
            thread::spawn(move || serve(&client, start, &inbox, &report));
            commands
        };
        Ok(Self { machine, start, nodes: clients.into_iter().map(node).collect(), answers })
    }

    /// Three requests, each with the events that may end it. Whatever else happens is only printed.
    fn work(&mut self) -> Result<(), Box<dyn Error>> {
        let patience = Patience::Attempts(self.machine.spec().config().attempts().get());
        self.machine.acquire(self.now(), patience)?;
        let end = self.run(|event| matches!(event, Event::Acquired { .. } | Event::AcquireFailed(_)))?;
        if let Event::AcquireFailed(error) = end {
            return Err(error.into());
        }
        self.machine.extend(self.now(), Duration::from_secs(10))?;
        self.run(|event| matches!(event, Event::Extended { .. } | Event::ExtendFailed(_)))?;
        self.machine.release(self.now())?;
        self.run(|event| matches!(event, Event::Released(_) | Event::ReleaseFailed(_))).map(drop)
    }

    /// Drives the machine until an event that satisfies `ends`, and returns it.
    fn run(&mut self, ends: impl Fn(&Event) -> bool) -> Result<Event, Box<dyn Error>> {
        loop {
            match self.step()? {
                Some(event) if ends(&event) => return Ok(event),
                Some(_) | None => {}
            }
        }
    }

    /// The whole art of driving: take one output, do what it says.
    fn step(&mut self) -> Result<Option<Event>, Box<dyn Error>> {
        match self.machine.poll_output() {
            Output::Send(command) => self.send(command),
            Output::Wait(until) => self.wait(until)?,
            Output::Event(event) => {
                self.print(&format!("{event:?}"));
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn send(&mut self, command: Command) {
        let id = command.id;
        self.print(&format!("{id} to {}: {}", command.node, command.intent.name()));
        if self.nodes[command.node.index()].try_send(command).is_err() {
            let full = Fault::NotExecuted(Cause::new(CauseKind::Overloaded));
            self.machine.handle_reply(self.now(), id, Err(full));
        }
    }

    fn wait(&mut self, until: Option<Instant>) -> Result<(), Box<dyn Error>> {
        let until = until.unwrap_or(Instant::from_epoch(Duration::MAX));
        match self.answers.recv_timeout(until.saturating_since(self.now())) {
            Ok((id, outcome)) => {
                self.print(&format!("{id} answered {outcome:?}"));
                self.machine.handle_reply(self.now(), id, outcome);
            }
            Err(RecvTimeoutError::Timeout) => self.machine.handle_timeout(self.now()),
            Err(RecvTimeoutError::Disconnected) => return Err("all node threads are gone".into()),
        }
        Ok(())
    }

    /// The machine knows only spans since an epoch. Here that is when the program started.
    fn now(&self) -> Instant {
        Instant::from_epoch(self.start.elapsed())
    }

    fn print(&self, what: &str) {
        println!("{:>12.3?} {what}", self.start.elapsed());
    }
}

/// One node's thread: carries out one command after the other.
fn serve(client: &Client, start: std::time::Instant, inbox: &Receiver<Command>, report: &SyncSender<Answer>) {
    let mut connection = None;
    for command in inbox {
        let limit = command.deadline.since_epoch().saturating_sub(start.elapsed()).max(SHORTEST);
        let result = call(client, &mut connection, &command, limit);
        // An answer that comes after all must not be taken for the next command's.
        connection = connection.filter(|_| result.is_ok());
        let Ok(()) = report.send((command.id, result)) else { return };
    }
}

fn call(client: &Client, open: &mut Option<Connection>, command: &Command, limit: Duration) -> Outcome {
    let cause = |kind, error: RedisError| Cause::with_detail(kind, error.to_string());
    // Until something is sent, nothing can have been carried out.
    let unsent = |error| Fault::NotExecuted(cause(CauseKind::Unreachable, error));
    let connection = match open {
        Some(connection) => connection,
        None => open.insert(client.get_connection_with_timeout(limit).map_err(unsent)?),
    };
    connection.set_read_timeout(Some(limit)).map_err(unsent)?;
    connection.set_write_timeout(Some(limit)).map_err(unsent)?;
    request(command).query(connection).map(reply).or_else(|error: RedisError| match error.code() {
        Some(code) => Ok(Reply::Error(ServerError::new(code, error.detail().unwrap_or_default()))),
        None if error.is_timeout() => Err(Fault::Unknown(Cause::new(CauseKind::Timeout))),
        None => Err(Fault::Unknown(cause(CauseKind::Disconnected, error))),
    })
}

fn request(command: &Command) -> Cmd {
    let (key, token) = (&*command.key, command.intent.token().to_hex());
    let eval = |text: &str, keys: &[&str], ttl: Option<&Ttl>| {
        let mut request = redis::cmd("EVAL").arg(text).arg(keys.len()).arg(keys).arg(token.as_bytes()).take();
        request.arg(ttl.map(|ttl| ttl.as_millis())).take()
    };
    match &command.intent {
        Intent::SetNxPx { ttl, .. } => {
            redis::cmd("SET").arg(key).arg(token.as_bytes()).arg("NX").arg("PX").arg(ttl.as_millis()).take()
        }
        Intent::FencedAcquire { fence, ttl, .. } => eval(script::FENCED_ACQUIRE, &[key, fence], Some(ttl)),
        Intent::CompareAndDelete { .. } => eval(script::COMPARE_AND_DELETE, &[key], None),
        Intent::CompareAndPexpire { ttl, .. } => eval(script::COMPARE_AND_PEXPIRE, &[key], Some(ttl)),
    }
}

fn reply(value: Value) -> Reply {
    match value {
        Value::Nil => Reply::Nil,
        Value::Okay => Reply::Ok,
        Value::Int(number) => Reply::Int(number),
        Value::BulkString(bytes) => Reply::Text(bytes.into()),
        _ => Reply::Other,
    }
}
