//! `connect`.

use std::io::{self, Read as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use futures_channel::oneshot;
use redis::{Client, cmd, from_redis_value};

use super::super::outcome::{During as _, Failure, Outcome, must, should};
use super::super::time::{by, ms, pause};
use super::bench::{Bench, GENEROUS, ask, echo, id, is_text};
use crate::{Connect, Connection};

pub(super) async fn dials_and_calls<R: Connect>(bench: Bench<R>) -> Outcome {
    let connection = bench.connect().await?;
    let echoed = ask(&connection, &echo("first")).await;
    should(is_text(&echoed, "first"), format_args!("ECHO first was answered {echoed:?}"))
}

pub(super) async fn reports_a_refused_connection<R: Connect>(bench: Bench<R>) -> Outcome {
    // A port that was free a moment ago.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).during("looking for a free port")?;
    let address = listener.local_addr().during("looking for a free port")?;
    drop(listener);
    let client = Client::open(format!("redis://{address}")).during("the url of a free port")?;
    match by(&bench.runtime, GENEROUS, bench.runtime.connect(&client)).await {
        Some(Err(_)) => Ok(()),
        Some(Ok(_)) => Err(Failure::certain("connecting where nobody listens succeeded")),
        None => Err(Failure::likely("connecting where nobody listens did not end")),
    }
}

/// The server accepts and says nothing, so that the handshake does not end.
pub(super) async fn may_be_dropped<R: Connect>(bench: Bench<R>) -> Outcome {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).during("listening on a free port")?;
    let address = listener.local_addr().during("listening on a free port")?;
    let client = Client::open(format!("redis://{address}")).during("the url of a free port")?;
    let (sender, closed) = oneshot::channel();
    let listen = move || {
        // Whoever waited may be gone.
        let _ = sender.send(read_to_end(&listener));
    };
    // It ends with the connection, or after two seconds.
    drop(thread::Builder::new().spawn(listen).during("starting a thread")?);
    if by(&bench.runtime, ms(50), bench.runtime.connect(&client)).await.is_some() {
        // It has no handshake, so there is nothing to give up.
        return Ok(());
    }
    // In case that nothing was dialled by then, and the thread still waits.
    drop(TcpStream::connect(address));
    let closed = closed.await.during("a server that says nothing")?;
    must(closed.is_ok(), format_args!("two seconds after a connect() was dropped its socket was still open"))
}

/// Accepts one connection and reads until it ends.
fn read_to_end(listener: &TcpListener) -> io::Result<()> {
    let (mut socket, _) = listener.accept()?;
    socket.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut bytes = [0; 512];
    loop {
        match socket.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

pub(super) async fn makes_one_connection<R: Connect>(bench: Bench<R>) -> Outcome {
    let (first, second) = (bench.connect().await?, bench.connect().await?);
    let clone = first.clone();
    let ids = [id(&first).await?, id(&clone).await?, id(&second).await?, id(&first).await?];
    must(
        ids[0] == ids[1] && ids[0] == ids[3],
        format_args!("clones of one connection were several: {ids:?}"),
    )?;
    must(ids[0] != ids[2], format_args!("two calls of connect() made one connection: {ids:?}"))
}

pub(super) async fn closes_with_the_last_clone<R: Connect>(bench: Bench<R>) -> Outcome {
    let (watcher, watched) = (bench.connect().await?, bench.connect().await?);
    let number = id(&watched).await?;
    let clone = watched.clone();
    drop(watched);
    pause(&bench.runtime, ms(20)).await;
    let there = is_there(&watcher, number).await?;
    must(there, format_args!("a connection was closed while a clone of it was left"))?;
    drop(clone);
    for _ in 0..100 {
        if !is_there(&watcher, number).await? {
            return Ok(());
        }
        pause(&bench.runtime, ms(10)).await;
    }
    Err(Failure::certain("a second after its last clone was dropped a connection was still open"))
}

async fn is_there<C: Connection>(watcher: &C, number: i64) -> Outcome<bool> {
    let list = ask(watcher, cmd("CLIENT").arg("LIST")).await.during("CLIENT LIST")?;
    let list: String = from_redis_value(list).during("CLIENT LIST")?;
    let start = format!("id={number} ");
    Ok(list.lines().any(|line| line.starts_with(&start)))
}
