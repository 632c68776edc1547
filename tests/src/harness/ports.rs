//! Loopback ports for servers and relays.
//!
//! They come from below the range from which systems choose the local ports of outgoing connections (32768
//! and up on Linux, 49152 and up elsewhere). That matters twice: no client can take the port of a server that
//! is down for a while, and no client that dials such a port can be given that very port and so be connected
//! to itself, which TCP allows.

use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// An address of this machine (`127.0.0.1:port`) where nobody listens: connecting is refused at once.
///
/// No server or relay of this process will ever be given its port.
pub fn unused_address() -> String {
    format!("127.0.0.1:{}", free_port())
}

/// A port that is free now. This process does not get it twice, but nothing keeps another process from
/// taking it first: whoever listens on it must be ready to ask for another.
pub(super) fn free_port() -> u16 {
    listener().1
}

/// A listener on a port of its own.
pub(super) fn listener() -> (TcpListener, u16) {
    for _ in 0..COUNT {
        let port = candidate();
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return (listener, port);
        }
    }
    panic!("no free port among 127.0.0.1:{FIRST}..{}", u32::from(FIRST) + COUNT);
}

/// The next port of this process' own walk through the range. Processes start at different places, so that
/// they seldom meet.
fn candidate() -> u16 {
    let step = NEXT.fetch_add(1, Ordering::Relaxed);
    // Neighbouring process ids start far apart: the odd factor spreads them over the whole range.
    let start = process::id().wrapping_mul(7919);
    let offset = start.wrapping_add(step) % COUNT;
    FIRST + u16::try_from(offset).expect("the range lies within the port numbers")
}

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The range begins above the well-known ports of databases and web servers ...
const FIRST: u16 = 20_000;

/// ... and ends below 32768.
const COUNT: u32 = 12_000;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::ErrorKind;
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn ports_are_not_given_twice_and_lie_below_the_outgoing_ones() {
        let ports: BTreeSet<u16> = (0..100).map(|_| free_port()).collect();
        assert_eq!(ports.len(), 100);
        assert!(ports.iter().all(|port| (20_000..32_000).contains(port)), "{ports:?}");
    }

    #[test]
    fn nobody_listens_at_an_unused_address() {
        let error = TcpStream::connect(unused_address()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
}
