//! What a relay's threads share: the switches and the connections, under one lock.

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

use super::super::clock::now;
use super::lane::{Cut, Direction, Lane, Rules, Step};

/// The state, and a way to wait for it to change.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// Some state has changed. One condition serves all waiting threads; a test has but a handful.
    changed: Condvar,
}

/// The switches and the connections.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The address to pass new connections on to.
    pub(super) target: String,
    pub(super) refuse: bool,
    pub(super) black_hole: bool,
    pub(super) stopping: bool,
    pub(super) accepted: usize,
    drop_replies: bool,
    request_rules: Rules,
    reply_rules: Rules,
    /// The open ones. A thread that does not find its own connection here any more has to end.
    open: BTreeMap<usize, Connection>,
}

#[derive(Debug)]
struct Connection {
    client: TcpStream,
    /// `None` until it is made, and for ever when the connection was swallowed.
    server: Option<TcpStream>,
    swallowed: bool,
    requests: Lane,
    replies: Lane,
}

/// The next thing to do for the thread that delivers one direction of a connection.
pub(super) enum Next {
    /// Pass these bytes on.
    Deliver(Vec<u8>),
    /// Pass the end of the stream on.
    End,
    /// Reset the connection.
    Reset,
    /// The connection has been closed.
    Closed,
}

impl Shared {
    pub(super) fn new(target: String) -> Self {
        let state = Mutex::new(State { target, ..State::default() });
        Self { state, changed: Condvar::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes whoever waits for a change.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// Takes note of a new client. Returns its id, or `None` when it is to be closed at once.
    pub(super) fn accepted(&self, client: &TcpStream) -> Option<usize> {
        let mut state = self.lock();
        state.accepted += 1;
        // A relay that stops has already closed what it had, and waits only for that.
        if state.refuse || state.stopping || state.open.len() >= MAX_OPEN {
            return None;
        }
        let id = state.accepted;
        let mut connection = Connection {
            client: client.try_clone().ok()?,
            server: None,
            swallowed: state.black_hole,
            requests: Lane::default(),
            replies: Lane::default(),
        };
        if connection.swallowed {
            connection.silence();
        }
        state.open.insert(id, connection);
        Some(id)
    }

    /// Whether a connection is to be read and never answered, without a server.
    pub(super) fn is_swallowed(&self, id: usize) -> bool {
        self.lock().open.get(&id).is_some_and(|connection| connection.swallowed)
    }

    /// Takes note of a connection's server side. `false` when it has been closed meanwhile.
    pub(super) fn connected(&self, id: usize, server: &TcpStream) -> io::Result<bool> {
        let server = server.try_clone()?;
        Ok(self.lock().open.get_mut(&id).map(|connection| connection.server = Some(server)).is_some())
    }

    /// Takes bytes that were read, when there is room for them. `false` when the connection has been closed.
    pub(super) fn arrived(&self, id: usize, direction: Direction, bytes: &[u8]) -> bool {
        let mut state = self.lock();
        loop {
            let drops = state.drop_replies && direction == Direction::Replies;
            let Some(lane) = state.lane(id, direction) else { return false };
            if drops {
                lane.discard();
            }
            if !lane.is_full() {
                lane.push(now(), bytes);
                self.changed.notify_all();
                return true;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes note that a source has ended.
    pub(super) fn ended(&self, id: usize, direction: Direction) {
        self.change_lane(id, direction, |lane| lane.end(now()));
    }

    /// From now on a direction leads nowhere.
    pub(super) fn sink_lost(&self, id: usize, direction: Direction) {
        self.change_lane(id, direction, Lane::discard);
    }

    /// Waits until there is something to deliver.
    pub(super) fn next(&self, id: usize, direction: Direction) -> Next {
        let mut state = self.lock();
        loop {
            let (now, rules) = (now(), *state.rules_mut(direction));
            let Some(lane) = state.lane(id, direction) else { return Next::Closed };
            state = match lane.next(now, rules) {
                Step::Deliver(bytes) => {
                    // There may be room again.
                    self.changed.notify_all();
                    return Next::Deliver(bytes);
                }
                Step::End => return Next::End,
                Step::Reset => return Next::Reset,
                Step::Wait => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Step::WaitUntil(due) => {
                    let waited = self.changed.wait_timeout(state, due.saturating_duration_since(now));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Closes a connection on both sides.
    pub(super) fn close(&self, id: usize) {
        self.change(|state| {
            if let Some(connection) = state.open.remove(&id) {
                connection.shut_down();
            }
        });
    }

    /// Resets a connection on both sides.
    pub(super) fn reset(&self, id: usize) {
        self.change(|state| {
            if let Some(connection) = state.open.remove(&id) {
                connection.reset();
            }
        });
    }

    fn change_lane(&self, id: usize, direction: Direction, change: impl FnOnce(&mut Lane)) {
        self.change(|state| state.lane(id, direction).map(change));
    }
}

impl State {
    /// What the switches say about one direction.
    pub(super) fn rules_mut(&mut self, direction: Direction) -> &mut Rules {
        match direction {
            Direction::Requests => &mut self.request_rules,
            Direction::Replies => &mut self.reply_rules,
        }
    }

    pub(super) fn drop_replies(&mut self, on: bool) {
        self.drop_replies = on;
        let lanes = self.open.values_mut().map(|connection| &mut connection.replies);
        lanes.filter(|lane| on && !lane.is_empty()).for_each(Lane::discard);
    }

    pub(super) fn limit_all(&mut self, direction: Direction, bytes: usize, cut: Cut) {
        for connection in self.open.values_mut() {
            connection.lane(direction).limit(bytes, cut);
        }
    }

    pub(super) fn silence_all(&mut self) {
        self.open.values_mut().for_each(Connection::silence);
    }

    pub(super) fn close_all(&mut self) {
        self.open.values().for_each(Connection::shut_down);
        self.open.clear();
    }

    #[cfg(test)]
    pub(super) fn open_count(&self) -> usize {
        self.open.len()
    }

    fn lane(&mut self, id: usize, direction: Direction) -> Option<&mut Lane> {
        Some(self.open.get_mut(&id)?.lane(direction))
    }
}

impl Connection {
    fn lane(&mut self, direction: Direction) -> &mut Lane {
        match direction {
            Direction::Requests => &mut self.requests,
            Direction::Replies => &mut self.replies,
        }
    }

    fn silence(&mut self) {
        self.requests.silence();
        self.replies.silence();
    }

    /// Ends both sides, and with that every read and write that waits on them.
    fn shut_down(&self) {
        for side in self.sides() {
            // Fails when the peer has already done it.
            let _ = side.shutdown(Shutdown::Both);
        }
    }

    /// Makes the system reset both sides when the last of our threads has let go of them, and ends the reads
    /// that keep them from it.
    fn reset(&self) {
        for side in self.sides() {
            // Fails when the peer has already ended it.
            let _ = set_socket_linger(side, Some(Duration::ZERO));
            let _ = side.shutdown(Shutdown::Read);
        }
    }

    fn sides(&self) -> impl Iterator<Item = &TcpStream> {
        [Some(&self.client), self.server.as_ref()].into_iter().flatten()
    }
}

/// How many connections may be open at once.
const MAX_OPEN: usize = 256;
