//! A way to dial Redis, on a thread for each connection, that can be wrong in one way at a time.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, Write as _};
use std::mem;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use futures_channel::oneshot::{Receiver, Sender, channel};
use redis::{Client, Cmd, Parser, RedisError, RedisResult, Value};

use super::super::time::yield_now;
use super::wrong::{Kind, Wrong};
use crate::{Connect, Connection, Instant, NotRunning, Pushes, Runtime};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    None,
    /// No flaw either: errors come as `Err`.
    FlatErrors,
    HidesRefusal,
    DialsToTheEnd,
    DialsOnce,
    NeverCloses,
    SendsLate,
    HasASmallBuffer,
    MixesUpMany,
    HidesErrors,
    ForgetsWithTheCall,
    TimesOut,
    HangsWhenCut,
    RepeatsWhenCut,
    BreaksOffLongCommands,
    ListensInVain,
}

#[derive(Clone)]
pub(super) struct Dialler {
    runtime: Wrong,
    flaw: Flaw,
    only: Arc<Mutex<Option<Socket>>>,
}

#[derive(Clone)]
pub(super) struct Socket(Arc<Inner>);

struct Inner {
    flaw: Flaw,
    address: String,
    /// `None` for one that was never there.
    stream: Option<TcpStream>,
    lane: Arc<Mutex<Lane>>,
}

#[derive(Default)]
struct Lane {
    broken: bool,
    waiting: VecDeque<(u64, Sender<RedisResult<Value>>)>,
    last: u64,
}

impl Dialler {
    pub(super) fn new(flaw: Flaw) -> Self {
        Self { runtime: Wrong::new(Kind::Right), flaw, only: Arc::default() }
    }
}

impl Runtime for Dialler {
    fn now(&self) -> Instant {
        self.runtime.now()
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + Send + 'static {
        self.runtime.sleep_until(deadline)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<(), NotRunning> {
        self.runtime.spawn(task)
    }
}

impl Connect for Dialler {
    type Connection = Socket;

    fn connect(&self, client: &Client) -> impl Future<Output = RedisResult<Socket>> + Send + 'static {
        let address = client.get_connection_info().addr().to_string();
        let (flaw, only) = (self.flaw, Arc::clone(&self.only));
        async move {
            if let Some(socket) = only.lock().unwrap().clone().filter(|only| only.0.address == address) {
                return Ok(socket);
            }
            let attempt = Attempt { flaw, stream: Arc::default() };
            let (sender, dialled) = channel();
            let (stream, there) = (Arc::clone(&attempt.stream), address.clone());
            thread::spawn(move || sender.send(Socket::dial(flaw, there, &stream)));
            let socket = match dialled.await.unwrap() {
                Err(_) if flaw == Flaw::HidesRefusal => Socket::new(flaw, address, None),
                dialled => dialled?,
            };
            // It is in use now, and not to be shut down.
            attempt.stream.lock().unwrap().take();
            *only.lock().unwrap() = Some(socket.clone()).filter(|_| flaw == Flaw::DialsOnce);
            if flaw == Flaw::NeverCloses {
                mem::forget(socket.clone());
            }
            Ok(socket)
        }
    }

    fn connect_listening(
        &self,
        client: &Client,
        _: Pushes,
    ) -> impl Future<Output = RedisResult<Option<Socket>>> + Send + 'static {
        let dialled = (self.flaw == Flaw::ListensInVain).then(|| self.connect(client));
        async move {
            match dialled {
                Some(dialled) => dialled.await.map(Some),
                None => Ok(None),
            }
        }
    }
}

/// An attempt to connect, which is given up when dropped.
struct Attempt {
    flaw: Flaw,
    stream: Arc<Mutex<Option<TcpStream>>>,
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let (Some(stream), true) = (self.stream.lock().unwrap().take(), self.flaw != Flaw::DialsToTheEnd) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Socket {
    fn new(flaw: Flaw, address: String, stream: Option<TcpStream>) -> Self {
        Self(Arc::new(Inner { flaw, address, stream, lane: Arc::default() }))
    }

    fn dial(flaw: Flaw, address: String, attempt: &Mutex<Option<TcpStream>>) -> RedisResult<Self> {
        let mut stream = TcpStream::connect(&address)?;
        *attempt.lock().unwrap() = Some(stream.try_clone()?);
        stream.write_all(b"*1\r\n$4\r\nPING\r\n")?;
        let mut parser = Parser::new();
        parser.parse_value(&stream)?;
        let socket = Self::new(flaw, address, Some(stream.try_clone()?));
        let lane = Arc::clone(&socket.0.lane);
        thread::spawn(move || read(flaw, parser, &stream, &lane));
        Ok(socket)
    }

    /// Sends the command, and yields its number and where its answer comes.
    fn send(&self, command: &Cmd) -> io::Result<(u64, Receiver<RedisResult<Value>>)> {
        let (sender, answer) = channel();
        let mut lane = self.0.lane.lock().unwrap();
        let stream = self.0.stream.as_ref().filter(|_| !lane.broken);
        let mut stream = stream.ok_or(io::ErrorKind::NotConnected)?;
        stream.write_all(&command.get_packed_command())?;
        lane.last += 1;
        let number = lane.last;
        lane.waiting.push_back((number, sender));
        Ok((number, answer))
    }

    async fn has_room(&self) {
        poll_fn(|context| {
            if self.0.lane.lock().unwrap().waiting.len() < 50 {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

/// Hands the answers to those who wait for them.
fn read(flaw: Flaw, mut parser: Parser, stream: &TcpStream, lane: &Mutex<Lane>) {
    while let Ok(value) = parser.parse_value(stream) {
        let mut lane = lane.lock().unwrap();
        let mixed_up = flaw == Flaw::MixesUpMany && lane.waiting.len() > 80;
        let next = if mixed_up { lane.waiting.pop_back() } else { lane.waiting.pop_front() };
        if let Some((_, sender)) = next {
            let _ = sender.send(Ok(value));
        }
    }
    let mut lane = lane.lock().unwrap();
    lane.broken = true;
    let unanswered = mem::take(&mut lane.waiting);
    if flaw == Flaw::HangsWhenCut {
        mem::forget(unanswered);
    }
}

impl Connection for Socket {
    fn call(&self, command: Cmd) -> impl Future<Output = RedisResult<Value>> + Send + 'static {
        let this = self.clone();
        async move {
            let flaw = this.0.flaw;
            match flaw {
                Flaw::SendsLate => yield_now().await,
                Flaw::HasASmallBuffer => this.has_room().await,
                Flaw::BreaksOffLongCommands if command.get_packed_command().len() > 300 => {
                    return Err(io::Error::from(io::ErrorKind::InvalidInput).into());
                }
                _ => {}
            }
            let (number, answer) = this.send(&command)?;
            let called = Called { number, socket: &this };
            let answer = match flaw {
                Flaw::TimesOut => tokio::time::timeout(Duration::from_millis(500), answer).await,
                _ => Ok(answer.await),
            };
            drop(called);
            let Ok(answer) = answer else { return Err(io::Error::from(io::ErrorKind::TimedOut).into()) };
            match (flaw, answer) {
                (Flaw::HidesErrors, Ok(Ok(Value::ServerError(_)))) => Ok(Value::Nil),
                (Flaw::FlatErrors, Ok(Ok(Value::ServerError(error)))) => Err(RedisError::from(error)),
                (Flaw::RepeatsWhenCut, Err(_)) => {
                    let again = Self::dial(flaw, this.0.address.clone(), &Mutex::default())?;
                    again.send(&command)?.1.await.unwrap()
                }
                (_, answer) => {
                    answer.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::BrokenPipe).into()))
                }
            }
        }
    }
}

/// A call that waits for its answer.
struct Called<'a> {
    number: u64,
    socket: &'a Socket,
}

impl Drop for Called<'_> {
    fn drop(&mut self) {
        if self.socket.0.flaw == Flaw::ForgetsWithTheCall {
            self.socket.0.lane.lock().unwrap().waiting.retain(|(number, _)| *number != self.number);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
