//! A server that answers every command with the same error, or whose clock is off: for what a real one is hard
//! to bring to.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::ports::listener;

/// Speaks just enough of the protocol to be connected to: `CLIENT` and `HELLO` are answered like by a server
/// that knows no such command, everything else with the error that was set.
///
/// Its threads end when their clients hang up; the listening one ends with the test process.
#[derive(Debug)]
pub struct FakeServer {
    address: String,
    error: Arc<Mutex<String>>,
}

/// What a fake server answers to a command, as it goes on the wire.
type Script = Arc<dyn Fn(&str) -> String + Send + Sync>;

impl FakeServer {
    /// A server that answers `-error`, such as `LOADING Redis is loading the dataset in memory`.
    pub fn start(error: &str) -> Self {
        let error = Arc::new(Mutex::new(error.to_owned()));
        let shared = Arc::clone(&error);
        let script = move |_: &str| format!("-{}\r\n", shared.lock().unwrap());
        Self { address: serve(Arc::new(script)), error }
    }

    /// A server that was started long ago and keeps what it is told, with a clock that is ahead by so much. It
    /// can be asked about itself, and nothing else.
    #[expect(clippy::disallowed_methods, reason = "it plays a server, whose clock is a wall clock")]
    pub fn ahead(by: Duration) -> Self {
        let script = move |name: &str| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + by;
            let (seconds, micros) = (now.as_secs().to_string(), now.subsec_micros().to_string());
            let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
            match name {
                "INFO" => bulk(
                    "run_id:ahead\r\nuptime_in_seconds:1000000\r\nrole:master\r\naof_enabled:1\r\nmaxmemory_policy:noeviction\r\n",
                ),
                "TIME" => format!("*2\r\n{}{}", bulk(&seconds), bulk(&micros)),
                _ => "-ERR unknown command\r\n".to_owned(),
            }
        };
        Self { address: serve(Arc::new(script)), error: Arc::default() }
    }

    /// The URL under which clients reach it.
    pub fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    /// Answers this error from now on.
    pub fn set_error(&self, error: &str) {
        error.clone_into(&mut self.error.lock().unwrap());
    }
}

/// Answers whoever connects, on threads of its own. Returns the address.
fn serve(script: Script) -> String {
    let (listener, port) = listener();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let script = Arc::clone(&script);
            thread::spawn(move || answer(&client, &script));
        }
    });
    format!("127.0.0.1:{port}")
}

/// Answers commands until the client hangs up.
fn answer(client: &TcpStream, script: &Script) -> Option<()> {
    let mut requests = BufReader::new(client.try_clone().ok()?);
    let mut replies = client;
    loop {
        let name = request(&mut requests)?;
        let reply = match name.as_str() {
            "CLIENT" | "HELLO" => "-ERR unknown command\r\n".to_owned(),
            name => script(name),
        };
        replies.write_all(reply.as_bytes()).ok()?;
    }
}

/// Reads one request, an array of bulk strings, and returns the first of them.
fn request(requests: &mut impl BufRead) -> Option<String> {
    let count = header(requests, '*')?;
    let mut name = None;
    for _ in 0..count {
        let length = header(requests, '$')?;
        let mut text = vec![0; length + 2];
        requests.read_exact(&mut text).ok()?;
        text.truncate(length);
        name = name.or_else(|| String::from_utf8(text).ok());
    }
    name.map(|name| name.to_uppercase())
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
}
