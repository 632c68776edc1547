//! The bench as a child of itself: another process with a manager of its own, that does as it is told.
//!
//! | it is told | it answers |
//! | --- | --- |
//! | `ask` | `acquired NANOS` |
//! | `release` | `released NANOS`, when it began to |
//! | `contend WHO SEAT FROM UNTIL`, the times in nanoseconds | a line for each turn, then `done` |

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use redlock_tokio::Lease;
use tokio::io::AsyncBufReadExt as _;

use crate::contender::Contender;
use crate::contestant::Kind;
use crate::monotonic::{self, now};
use crate::turn::Turn;
use crate::{Failure, contestant};

/// Another process, as its parent sees it. It ends with its parent.
#[derive(Debug)]
pub(crate) struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    pub(crate) fn start(urls: &[String], resource: &str) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([ROLE, &urls.join(","), resource])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a child without pipes".into());
        };
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    pub(crate) fn tell(&mut self, words: &str) -> Result<(), Failure> {
        writeln!(self.input, "{words}")?;
        Ok(())
    }

    /// What it says next.
    pub(crate) fn hear(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Err(format!("a child is gone: {:?}", self.child.wait()).into()),
            _ => Ok(line),
        }
    }

    /// The time that it says next, under this word.
    pub(crate) fn hear_time(&mut self, word: &str) -> Result<Duration, Failure> {
        let line = self.hear()?;
        let nanos = line.strip_prefix(word).ok_or_else(|| format!("no {word:?}: {line:?}"))?;
        monotonic::parse(nanos)
    }

    /// The turns of a contention that it was told to take part in.
    pub(crate) fn hear_turns(&mut self) -> Result<Vec<Turn>, Failure> {
        let mut turns = Vec::new();
        loop {
            let line = self.hear()?;
            if line.trim() == DONE {
                return Ok(turns);
            }
            turns.push(line.parse()?);
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The life of the child, until its parent closes the pipe. One thread, so that nothing is woken across two.
pub(crate) fn live(arguments: &[String]) -> Result<(), Failure> {
    let [urls, resource] = arguments else { return Err("a child needs nodes and a resource".into()) };
    let urls: Vec<String> = urls.split(',').map(str::to_owned).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(obey(&urls, resource))
}

async fn obey(urls: &[String], resource: &str) -> Result<(), Failure> {
    let manager = contestant::manager(urls)?;
    // Connections, scripts and caches.
    for _ in 0..20 {
        manager.lock(format!("{resource}:warm-up:{}", std::process::id())).acquire().await?.release().await?;
    }
    let lock = manager.lock(resource);
    let mut lease: Option<Lease> = None;
    let mut orders = tokio::io::BufReader::new(tokio::io::stdin()).lines();
    println!("ready 0");
    while let Some(order) = orders.next_line().await? {
        match (order.split(' ').collect::<Vec<_>>().as_slice(), lease.take()) {
            (["ask"], None) => {
                let acquired = lock.acquire_within(PATIENCE).await?;
                println!("acquired {}", now()?.as_nanos());
                lease = Some(acquired);
            }
            (["release"], Some(held)) => {
                let began = now()?;
                held.release().await?;
                println!("released {}", began.as_nanos());
            }
            (["contend", who, seat, from, until], None) => {
                let contender = if *who == Kind::Rslock.name() {
                    Contender::rslock(urls, resource).await?
                } else {
                    Contender::redlock(lock.clone())
                };
                let turns = contender
                    .contend(seat.parse()?, monotonic::parse(from)?, monotonic::parse(until)?)
                    .await?;
                let lines: String = turns.iter().map(|turn| format!("{turn}\n")).collect();
                println!("{lines}{DONE}");
            }
            _ => return Err(format!("what is {order:?}?").into()),
        }
    }
    Ok(())
}

/// The first argument of a child.
pub(crate) const ROLE: &str = "peer";
const DONE: &str = "done";
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
