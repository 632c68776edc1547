//! One `redis-server` process.

mod clock;
mod supervisor;

use std::ffi::{OsStr, OsString};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use std::{env, fs, thread};

use clock::ClockShift;
use redis::cmd;
use supervisor::Supervisor;

use super::clock::{Stopwatch, wait_until};
use super::nodes::unique;
use super::ports::free_port;
use super::primary::{Primary, field_of, millis};

/// A `redis-server` that belongs to one test, on a loopback port and in a temporary directory of its own.
///
/// It answers when the call that starts it returns, and it and its directory are gone when it is dropped,
/// frozen or not. Both also go when the test process ends in any other way, by a signal too: the server's
/// parent is not the test process but a small supervisor, which sees the test process end.
///
/// All methods take `&self`, so that one thread can harm a server while another one uses it. Through
/// [`Deref`] it offers what every [`Primary`] does.
///
/// Unless the builder is told otherwise, a server keeps nothing on disk: it comes back empty from
/// [`restart`](Self::restart).
#[derive(Debug)]
pub struct Server {
    primary: Primary,
    port: u16,
    dir: PathBuf,
    supervisor: Mutex<Supervisor>,
    clock: Option<ClockShift>,
}

/// Options for a [`Server`].
#[derive(Clone, Debug, Default)]
pub struct ServerBuilder {
    appendonly: bool,
    password: Option<String>,
    arguments: Vec<String>,
    config: Option<String>,
    files: Vec<(String, String)>,
    sentinel: bool,
    of_the_system: bool,
    clock: bool,
}

impl ServerBuilder {
    /// Whether it logs every write to disk before it answers, and so comes back with its data from
    /// [`Server::restart`], even after [`Server::kill`].
    pub fn appendonly(mut self, on: bool) -> Self {
        self.appendonly = on;
        self
    }

    /// The password that clients have to give. [`Primary::url`] includes it.
    ///
    /// # Panics
    /// When it is empty, which would mean that none is needed.
    #[track_caller]
    pub fn password(mut self, password: &str) -> Self {
        assert!(!password.is_empty(), "an empty password is none");
        self.password = Some(password.to_owned());
        self
    }

    /// One more option, as on the command line: `arg("--maxmemory", "1mb")`. The last one of a name counts.
    pub fn arg(mut self, name: &str, value: &str) -> Self {
        self.arguments.extend([name.to_owned(), value.to_owned()]);
        self
    }

    /// Lines of a configuration file, for what cannot be said on a command line.
    pub fn config(mut self, lines: &str) -> Self {
        self.config = Some(lines.to_owned());
        self
    }

    /// A file in the directory of the server, where an option finds it by its bare name.
    pub fn file(mut self, name: &str, content: &str) -> Self {
        self.files.push((name.to_owned(), content.to_owned()));
        self
    }

    /// Makes it a sentinel, with what [`config`](Self::config) says. It rewrites that file, so it remembers
    /// what it has learned over [`Server::restart`].
    pub fn sentinel(mut self) -> Self {
        self.sentinel = true;
        self
    }

    /// Takes the `redis-server` on the `PATH`, whatever the environment names: for what not every server was
    /// built with.
    pub fn of_the_system(mut self) -> Self {
        self.of_the_system = true;
        self
    }

    /// Gives it a wall clock of its own, which [`Server::shift_clock`] sets. Needs a C compiler.
    pub fn clock(mut self) -> Self {
        self.clock = true;
        self
    }

    /// Starts the server and waits until it answers.
    ///
    /// # Panics
    /// When there is no `redis-server`, saying what to install, and when it does not start, with the end of
    /// its log.
    #[track_caller]
    pub fn start(self) -> Server {
        for _ in 0..PORT_ATTEMPTS {
            let server = self.launch(free_port());
            let started = server.start_process(&mut server.supervisor());
            match started {
                Ok(()) => return server,
                // Another process was faster. There are more ports.
                Err(Failure::PortTaken) => {}
                Err(Failure::Other(reason)) => panic!("redis-server did not start: {reason}"),
            }
        }
        panic!("redis-server did not start: {PORT_ATTEMPTS} ports, and each was taken by another process");
    }

    /// A server that is yet to be started.
    fn launch(&self, port: u16) -> Server {
        let dir = env::temp_dir().join(unique("redlock-server"));
        let program = if self.of_the_system { system_program() } else { program() };
        let clock = self.clock.then(ClockShift::new);
        let command_line = self.command_line(port, &dir);
        let mut supervisor = match &clock {
            None => Supervisor::new(&dir, program, &command_line),
            Some(clock) => {
                // `env` replaces itself by the server, so it is still that process which signals reach.
                let mut words = clock.prefix();
                words.push(program.clone());
                words.extend(command_line.into_iter().map(OsString::from));
                Supervisor::new(&dir, OsStr::new("env"), &words)
            }
        };
        // It answers when it has made the directory.
        supervisor.is_alive();
        let config = self.config.iter().map(|lines| (CONFIG_FILE, lines));
        let files = self.files.iter().map(|(name, content)| (name.as_str(), content));
        for (name, content) in config.chain(files) {
            let path = dir.join(name);
            fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        let primary = Primary::new(format!("127.0.0.1:{port}"), self.password.clone());
        Server { primary, port, dir, supervisor: Mutex::new(supervisor), clock }
    }

    fn command_line(&self, port: u16, dir: &Path) -> Vec<String> {
        let (port, config, socket) = (port.to_string(), dir.join(CONFIG_FILE), dir.join(SOCKET));
        let (config, socket, dir) =
            (config.to_string_lossy(), socket.to_string_lossy(), dir.to_string_lossy());
        let log = if self.appendonly { "yes" } else { "no" };
        let mut line = Vec::new();
        if self.config.is_some() {
            line.push(&*config);
        }
        if self.sentinel {
            line.push("--sentinel");
        }
        line.extend(["--port", &port, "--bind", "127.0.0.1", "--dir", &dir]);
        if !self.sentinel {
            line.extend(["--save", "", "--unixsocket", &socket]);
            // The answer must not leave before the write is on disk, or a killed server could forget it.
            line.extend(["--appendonly", log, "--appendfsync", "always"]);
        }
        if let Some(password) = &self.password {
            line.extend(["--requirepass", password]);
        }
        line.into_iter().map(str::to_owned).chain(self.arguments.iter().cloned()).collect()
    }
}

impl Server {
    /// A server without any options. Panics like [`ServerBuilder::start`].
    #[track_caller]
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// A server with options, yet to be started.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Its port on 127.0.0.1. It stays the same over [`restart`](Self::restart).
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path of its Unix socket, which a sentinel does not have.
    pub fn socket(&self) -> PathBuf {
        self.dir.join(SOCKET)
    }

    /// Makes it a replica of `primary`, and waits until it has what that one has.
    pub fn follow(&self, primary: &Self) {
        self.ask::<()>(cmd("REPLICAOF").arg("127.0.0.1").arg(primary.port));
        wait_until("the replica is in step", START_LIMIT, || {
            self.info("master_link_status").as_deref() == Some("up")
        });
    }

    /// Stops the process where it is (`SIGSTOP`): connections are still accepted, by the system, but nothing
    /// is ever answered. It has stopped when this returns.
    ///
    /// # Panics
    /// When the server is not running.
    #[track_caller]
    pub fn freeze(&self) {
        assert!(
            self.supervisor().freeze(),
            "{}: a server that is not running cannot be frozen",
            self.address()
        );
    }

    /// Lets a frozen server go on (`SIGCONT`): it executes everything that it was sent meanwhile. Does
    /// nothing to others.
    pub fn thaw(&self) {
        self.supervisor().thaw();
    }

    /// Kills the process (`SIGKILL`), frozen or not. Its connections are reset and its port refuses new ones
    /// when this returns. Does nothing to a server that is not running.
    pub fn kill(&self) {
        self.supervisor().kill();
    }

    /// Starts the server again on the same port, in the same directory and with the same options, and waits
    /// until it answers. One that is running is killed first.
    ///
    /// # Panics
    /// When it does not start, with the end of its log.
    #[track_caller]
    pub fn restart(&self) {
        let mut supervisor = self.supervisor();
        for _ in 0..PORT_ATTEMPTS {
            supervisor.kill();
            match self.start_process(&mut supervisor) {
                Ok(()) => return,
                Err(Failure::PortTaken) => thread::sleep(Duration::from_millis(100)),
                Err(Failure::Other(reason)) => panic!("redis-server did not start again: {reason}"),
            }
        }
        panic!("redis-server did not start again: its port {} was taken by another process", self.port);
    }

    /// Whether its process is there, be it frozen.
    pub fn is_running(&self) -> bool {
        self.supervisor().is_alive()
    }

    /// All of its keys, in order.
    pub fn keys(&self) -> Vec<String> {
        self.keys_matching("*")
    }

    /// Holds back every command of every client for `duration`, in whole milliseconds, and then executes
    /// them (`CLIENT PAUSE ALL`). What this harness asks the server waits as well, and nothing can end the
    /// pause early.
    pub fn pause_all(&self, duration: Duration) {
        self.ask::<()>(cmd("CLIENT").arg("PAUSE").arg(millis(duration)).arg("ALL"));
    }

    /// Sets its wall clock to the system's plus this many milliseconds, and waits until it shows that. What the
    /// harness and clients call time stays as it is, and so do the server's timers.
    ///
    /// # Panics
    /// When the server was built without a [clock of its own](ServerBuilder::clock), or does not answer.
    #[track_caller]
    pub fn shift_clock(&self, millis: i64) {
        self.clock.as_ref().expect("a server with a clock of its own").set(millis);
        wait_until("the server sees its new time", START_LIMIT, || clock::is_ahead_by(self, millis));
    }

    /// Changes a setting of the running server. [`restart`](Self::restart) forgets it.
    pub fn config_set(&self, name: &str, value: &str) {
        self.ask::<()>(cmd("CONFIG").arg("SET").arg(name).arg(value));
    }

    /// What a setting of the running server is; empty if it knows none of this name.
    pub fn config_get(&self, name: &str) -> String {
        let answer: Vec<String> = self.ask(cmd("CONFIG").arg("GET").arg(name));
        answer.into_iter().nth(1).unwrap_or_default()
    }

    fn supervisor(&self) -> MutexGuard<'_, Supervisor> {
        // A test that failed while it held the lock has said why; the server can still be stopped.
        self.supervisor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the process, and returns when it answers.
    fn start_process(&self, supervisor: &mut Supervisor) -> Result<(), Failure> {
        let log_before = self.log().len();
        let pid = supervisor.start();
        let watch = Stopwatch::start();
        loop {
            let seen = match self.is_ready(pid) {
                Ok(true) => return Ok(()),
                Ok(false) => "it is still loading, or another server has its port".to_owned(),
                Err(error) => error.to_string(),
            };
            let ended = !supervisor.is_alive();
            if !ended && watch.elapsed() < START_LIMIT {
                thread::sleep(Duration::from_millis(5));
                continue;
            }

            let log = self.log().split_off(log_before);
            if ended && log.contains("Address already in use") {
                return Err(Failure::PortTaken);
            }
            let how = if ended { "it ended" } else { "it did not answer in time" };
            return Err(Failure::Other(format!("{how} ({seen}); the end of its log:\n{}", tail(&log))));
        }
    }

    /// Whether the process `pid`, and not a stranger on the same port, answers and has its data.
    fn is_ready(&self, pid: u32) -> redis::RedisResult<bool> {
        let mut connection = self.try_connection(Duration::from_millis(250))?;
        let info: String = cmd("INFO").arg("all").query(&mut connection)?;
        let is = |field, value: &str| field_of(&info, field).as_deref() == Some(value);
        // A sentinel has nothing to load.
        let loaded = field_of(&info, "loading").is_none_or(|loading| loading == "0");
        Ok(is("process_id", &pid.to_string()) && loaded)
    }

    fn log(&self) -> String {
        fs::read(self.dir.join("log"))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }
}

impl Deref for Server {
    type Target = Primary;

    fn deref(&self) -> &Primary {
        &self.primary
    }
}

/// Why a server did not start.
enum Failure {
    PortTaken,
    Other(String),
}

/// The server program: what the environment names, or what is on the `PATH`.
///
/// # Panics
/// When it cannot be run, saying what to install.
#[track_caller]
fn program() -> &'static OsString {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    let named = || env::var_os("REDLOCK_REDIS_SERVER").unwrap_or_else(|| SYSTEM_PROGRAM.into());
    PROGRAM.get_or_init(|| Program::look_at(named())).usable()
}

/// What is on the `PATH`, whatever the environment names.
///
/// # Panics
/// As above.
#[track_caller]
fn system_program() -> &'static OsString {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    PROGRAM.get_or_init(|| Program::look_at(SYSTEM_PROGRAM.into())).usable()
}

/// A server program, and why it cannot be run.
struct Program {
    name: OsString,
    trouble: Option<String>,
}

impl Program {
    fn look_at(name: OsString) -> Self {
        let trouble = match Command::new(&name).arg("--version").output() {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(output.status.to_string()),
            Err(error) => Some(error.to_string()),
        };
        Self { name, trouble }
    }

    #[track_caller]
    fn usable(&self) -> &OsString {
        if let Some(reason) = &self.trouble {
            panic!("{}", missing(&self.name.to_string_lossy(), reason));
        }
        &self.name
    }
}

fn missing(program: &str, reason: &str) -> String {
    format!(
        "these tests need a Redis server, and `{program} --version` failed: {reason}\n\
         Install it (Debian, Ubuntu: `apt-get install redis-server`; macOS: `brew install redis`), or name \
         the program in REDLOCK_REDIS_SERVER."
    )
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

const SYSTEM_PROGRAM: &str = "redis-server";

/// Names in a server's directory.
const CONFIG_FILE: &str = "conf";
const SOCKET: &str = "socket";

/// How long a server may take to answer after its start. It takes some 20 ms; the rest is for machines that
/// do much else at the same time.
const START_LIMIT: Duration = Duration::from_secs(20);

/// How many ports are tried before giving up.
const PORT_ATTEMPTS: usize = 20;

#[cfg(test)]
mod tests;
