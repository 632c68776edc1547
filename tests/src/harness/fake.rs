//! A server that answers what a test wants it to: what a real one is hard to bring to, or never says.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::ports::listener;

/// Speaks just enough of the protocol to be connected to: `CLIENT` and `HELLO` are answered like by a server
/// that knows no such command, everything else as the test says.
///
/// Its threads end when their clients hang up; the listening one ends with the test process.
#[derive(Debug)]
pub struct FakeServer {
    address: String,
    error: Arc<Mutex<String>>,
    connections: Arc<AtomicUsize>,
}

/// What a [`FakeServer`] answers to one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Played {
    /// These bytes, whatever they are.
    Bytes(Vec<u8>),
    /// These bytes, and then the end of the connection.
    Last(Vec<u8>),
}

impl FakeServer {
    /// A server that answers `-error`, such as `LOADING Redis is loading the dataset in memory`.
    pub fn start(error: &str) -> Self {
        let error = Arc::new(Mutex::new(error.to_owned()));
        let said = Arc::clone(&error);
        let server = Self::play(move |_, _| {
            let error = said.lock().unwrap();
            Played::Bytes(format!("-{error}\r\n").into_bytes())
        });
        Self { error, ..server }
    }

    /// A server that was started long ago and keeps what it is told, with a clock that is ahead by so much. It
    /// can be asked about itself, and nothing else.
    #[expect(clippy::disallowed_methods, reason = "it plays a server, whose clock is a wall clock")]
    pub fn ahead(by: Duration) -> Self {
        Self::play(move |_, words| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + by;
            let (seconds, micros) = (now.as_secs().to_string(), now.subsec_micros().to_string());
            let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
            let name = words.first().map(|name| name.to_ascii_uppercase());
            let reply = match name.as_deref() {
                Some(b"INFO") => bulk(
                    "run_id:ahead\r\nuptime_in_seconds:1000000\r\nrole:master\r\naof_enabled:1\r\nmaxmemory_policy:noeviction\r\n",
                ),
                Some(b"TIME") => format!("*2\r\n{}{}", bulk(&seconds), bulk(&micros)),
                _ => "-ERR unknown command\r\n".to_owned(),
            };
            Played::Bytes(reply.into_bytes())
        })
    }

    /// A server that answers each command with what `script` says. It is told the number of the connection,
    /// from 1, and the command's words, and is asked by one connection at a time.
    pub fn play(script: impl FnMut(usize, &[Vec<u8>]) -> Played + Send + 'static) -> Self {
        let (listener, port) = listener();
        let script = Arc::new(Mutex::new(script));
        let connections = Arc::new(AtomicUsize::new(0));
        let accepted = Arc::clone(&connections);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let number = accepted.fetch_add(1, Ordering::Relaxed) + 1;
                let script = Arc::clone(&script);
                thread::spawn(move || answer(&client, |words| script.lock().unwrap()(number, words)));
            }
        });
        Self { address: format!("127.0.0.1:{port}"), error: Arc::default(), connections }
    }

    /// The URL under which clients reach it.
    pub fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    /// How many connections were accepted so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Answers this error from now on, if it is a server that answers errors.
    pub fn set_error(&self, error: &str) {
        error.clone_into(&mut self.error.lock().unwrap());
    }
}

/// Answers commands until the client hangs up, or has had its last answer.
fn answer(client: &TcpStream, script: impl Fn(&[Vec<u8>]) -> Played) -> Option<()> {
    client.set_nodelay(true).ok()?;
    let mut requests = BufReader::new(client.try_clone().ok()?);
    let mut replies = client;
    loop {
        let words = request(&mut requests)?;
        let name = words.first().map(|name| name.to_ascii_uppercase());
        let played = match name.as_deref() {
            Some(b"CLIENT" | b"HELLO") => Played::Bytes(b"-ERR unknown command\r\n".to_vec()),
            _ => script(&words),
        };
        match played {
            Played::Bytes(bytes) => replies.write_all(&bytes).ok()?,
            Played::Last(bytes) => {
                replies.write_all(&bytes).ok()?;
                return client.shutdown(Shutdown::Both).ok();
            }
        }
    }
}

/// Reads one request, an array of bulk strings.
fn request(requests: &mut impl BufRead) -> Option<Vec<Vec<u8>>> {
    let count = header(requests, '*')?;
    (0..count)
        .map(|_| {
            let length = header(requests, '$')?;
            let mut text = vec![0; length + 2];
            requests.read_exact(&mut text).ok()?;
            text.truncate(length);
            Some(text)
        })
        .collect()
}

fn header(requests: &mut impl BufRead, kind: char) -> Option<usize> {
    let mut line = String::new();
    requests.read_line(&mut line).ok()?;
    line.strip_prefix(kind)?.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_every_command_with_its_error() {
        let server = FakeServer::start("OOM first");
        let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
        for error in ["OOM first", "LOADING second"] {
            server.set_error(error);
            let answer = redis::cmd("SET").arg("key").arg("value").exec(&mut connection).unwrap_err();
            assert_eq!(answer.code(), error.split(' ').next());
        }
    }

    #[test]
    fn answers_what_the_script_says() {
        let server = FakeServer::play(|_, words| match &words[1][..] {
            b"last" => Played::Last(b"+bye\r\n".to_vec()),
            key => Played::Bytes([b"$3\r\n", &key[..3], b"\r\n"].concat()),
        });
        let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
        let mut get = |key: &str| redis::cmd("GET").arg(key).query::<String>(&mut connection);
        assert_eq!(get("key").unwrap(), "key");
        assert_eq!(get("last").unwrap(), "bye");
        assert!(get("key").unwrap_err().is_connection_dropped());
        assert_eq!(server.connections(), 1);
    }
}
