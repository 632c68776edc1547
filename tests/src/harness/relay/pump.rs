//! The threads of one connection: for each direction one that reads and one that writes.
//!
//! They are apart because a relay has to go on reading while it holds back: bytes that were left in the
//! system's buffers would be lost with a connection that its client resets.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::lane::Direction;
use super::state::{Next, Shared};

/// Carries a connection until it is closed.
pub(super) fn serve(shared: &Shared, id: usize, client: &TcpStream) {
    if shared.is_swallowed(id) {
        // When the client closes, nobody is left who could miss an answer.
        read_from(shared, id, Direction::Requests, client);
        shared.close(id);
        return;
    }
    match connect(shared, id, client) {
        Ok(Some(server)) => carry(shared, id, client, &server),
        Ok(None) => {}
        // The server is down: its clients see their connections end.
        Err(_) => shared.close(id),
    }
}

/// A thread of a relay.
pub(super) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).expect("a thread can be started")
}

/// Connects to the server. `None` when the connection was closed meanwhile.
fn connect(shared: &Shared, id: usize, client: &TcpStream) -> io::Result<Option<TcpStream>> {
    let target = shared.lock().target.clone();
    let address = target.to_socket_addrs()?.next().ok_or(ErrorKind::AddrNotAvailable)?;
    let server = TcpStream::connect_timeout(&address, CONNECT_LIMIT)?;
    // A relay must not add delays of its own.
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    Ok(shared.connected(id, &server)?.then_some(server))
}

fn carry(shared: &Shared, id: usize, client: &TcpStream, server: &TcpStream) {
    thread::scope(|scope| {
        scope.spawn(|| read_from(shared, id, Direction::Requests, client));
        scope.spawn(|| read_from(shared, id, Direction::Replies, server));
        scope.spawn(|| {
            if write_to(shared, id, Direction::Requests, server) {
                // The client has closed. Half a close leaves the server the time to read what it was sent;
                // the connection ends when the server closes in turn.
                let _ = server.shutdown(Shutdown::Write);
            }
        });
        if write_to(shared, id, Direction::Replies, client) {
            shared.close(id);
        }
    });
}

/// Reads until the source ends or the connection is closed.
fn read_from(shared: &Shared, id: usize, direction: Direction, mut source: &TcpStream) {
    let mut buffer = [0; 16 * 1024];
    loop {
        match source.read(&mut buffer) {
            Ok(length) if length > 0 => {
                if !shared.arrived(id, direction, &buffer[..length]) {
                    return;
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // A broken connection has ended like one that was closed.
            Ok(_) | Err(_) => return shared.ended(id, direction),
        }
    }
}

/// Writes until the source has ended and all of it is delivered. `false` when the connection was closed.
fn write_to(shared: &Shared, id: usize, direction: Direction, mut sink: &TcpStream) -> bool {
    loop {
        match shared.next(id, direction) {
            Next::Deliver(bytes) => {
                if sink.write_all(&bytes).is_err() {
                    shared.sink_lost(id, direction);
                }
            }
            Next::End => return true,
            Next::Reset => {
                shared.reset(id);
                return false;
            }
            Next::Closed => return false,
        }
    }
}

const CONNECT_LIMIT: Duration = Duration::from_secs(2);
