//! A network in front of a server, that can be broken on purpose.

mod lane;
mod pump;
mod state;

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use lane::Cut;
use lane::Direction;
use state::Shared;

use super::clock::Stopwatch;
use super::ports;

/// A TCP relay in front of an address, with switches for faults.
///
/// Every switch takes effect when its call returns, for the connections that are open as well as for later
/// ones: what reaches the relay afterwards is treated by the new rule. The relay reads eagerly and keeps what
/// it must not pass on yet, up to a megabyte for each direction of a connection. So a client that has given up
/// and closed its connection does not take back what it had sent, as on a real network.
///
/// A "request" is what goes from the client to the server, a "reply" what comes back. The end of a stream
/// is held and delayed like its bytes. When the client closes, the relay passes on what it still has to and
/// then ends the server's side; when the server closes, the client gets what was on its way and then the end.
///
/// It serves up to 256 connections at once, and closes further ones as if it refused them.
///
/// Dropping the relay closes all of its connections and returns when its threads have ended. Bytes that it
/// still holds are lost then.
#[derive(Debug)]
pub struct Relay {
    port: u16,
    address: String,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl Relay {
    /// A relay that passes everything on to `target`, which is `host:port`.
    #[track_caller]
    pub fn start(target: impl Into<String>) -> Self {
        let (listener, port) = ports::listener();
        let shared = Arc::new(Shared::new(target.into()));
        let accepting = pump::spawn("relay-accept", {
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Self { port, address: format!("127.0.0.1:{port}"), shared, accepting: Some(accepting) }
    }

    /// The address that clients connect to: `127.0.0.1:port`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The port of that address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The same as a URL. A password of the server behind is not included.
    pub fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    /// How many connections were accepted so far, those that were refused or swallowed included.
    pub fn connections(&self) -> usize {
        self.shared.lock().accepted
    }

    /// Passes connections that are made from now on to another address, like a name that leads to another
    /// server now. The open ones stay where they are.
    pub fn lead_to(&self, target: impl Into<String>) {
        self.shared.change(|state| state.target = target.into());
    }

    /// Keeps what the clients send. Switched off, all of it is delivered in order, and then the end of those
    /// connections whose client has closed meanwhile.
    pub fn hold_requests(&self, on: bool) {
        self.shared.change(|state| state.rules_mut(Direction::Requests).hold = on);
    }

    /// Keeps what the server answers. Switched off, all of it is delivered in order.
    pub fn hold_replies(&self, on: bool) {
        self.shared.change(|state| state.rules_mut(Direction::Replies).hold = on);
    }

    /// Discards what the server answers, and what the relay still has of it.
    ///
    /// TCP never delivers a stream with a hole in it: a connection that has lost a byte carries no more
    /// replies, also when this is switched off. Its requests go on, and so does the end of the connection.
    /// Connections that lost nothing are not affected, nor are new ones.
    pub fn drop_replies(&self, on: bool) {
        self.shared.change(|state| state.drop_replies(on));
    }

    /// Delivers what the clients send this much later. Zero switches it off; what was waiting goes at once.
    pub fn delay_requests(&self, delay: Duration) {
        self.shared.change(|state| state.rules_mut(Direction::Requests).delay = delay);
    }

    /// Delivers what the server answers this much later. Zero switches it off; what was waiting goes at once.
    pub fn delay_replies(&self, delay: Duration) {
        self.shared.change(|state| state.rules_mut(Direction::Replies).delay = delay);
    }

    /// Closes new connections as soon as they are made.
    pub fn refuse(&self, on: bool) {
        self.shared.change(|state| state.refuse = on);
    }

    /// Accepts new connections and never answers on them, also when this is switched off later.
    pub fn black_hole_new(&self, on: bool) {
        self.shared.change(|state| state.black_hole = on);
    }

    /// Makes the connections that are open now carry nothing any more in either direction, not even their
    /// end, while both sides believe them to be alive. New ones work: the "half-dead" state of a client
    /// behind a firewall that forgot it.
    ///
    /// A connection that never carried anything may be too young for the relay to know it.
    pub fn black_hole_existing(&self) {
        self.shared.change(|state| state.silence_all());
    }

    /// Lets exactly so many bytes more of the clients' requests through, on each of the connections that are
    /// open now, and then cuts it when there is one byte more to deliver.
    pub fn cut_requests_after(&self, bytes: usize, cut: Cut) {
        self.shared.change(|state| state.limit_all(Direction::Requests, bytes, cut));
    }

    /// The same for the server's replies.
    pub fn cut_replies_after(&self, bytes: usize, cut: Cut) {
        self.shared.change(|state| state.limit_all(Direction::Replies, bytes, cut));
    }

    /// Closes all connections on both sides at once. What was held or delayed on them is lost.
    pub fn reset_all(&self) {
        self.shared.change(|state| state.close_all());
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.change(|state| {
            state.stopping = true;
            state.close_all();
        });
        // `accept` has no other alarm clock than a connection. Should this one fail, then because the
        // listener is already gone.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(thread) = self.accepting.take() {
            // A panic in it has been printed; a second one here would abort.
            let _ = thread.join();
        }
    }
}

/// Accepts connections until the relay stops, and then waits for the threads that serve them.
fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut serving: Vec<JoinHandle<()>> = Vec::new();
    while let Some(client) = next_client(listener, shared) {
        serving.retain(|thread| !thread.is_finished());
        if let Some(id) = shared.accepted(&client) {
            let shared = Arc::clone(shared);
            serving.push(pump::spawn("relay-serve", move || pump::serve(&shared, id, &client)));
        }
    }
    for thread in serving {
        let _ = thread.join();
    }
}

/// The next client, or `None` when the relay stops.
fn next_client(listener: &TcpListener, shared: &Shared) -> Option<TcpStream> {
    let patience = Stopwatch::start();
    loop {
        let accepted = listener.accept();
        if shared.lock().stopping {
            return None;
        }
        match accepted {
            Ok((client, _)) => return Some(client),
            // A client that was gone before it was accepted, or no file descriptor left just now.
            Err(error) if patience.elapsed() > Duration::from_secs(60) => panic!("relay: {error}"),
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

#[cfg(test)]
mod tests;
