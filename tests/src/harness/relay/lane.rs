//! One direction of one connection: what has arrived, and when it may go on.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The two directions of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the client to the server.
    Requests,
    /// From the server to the client.
    Replies,
}

/// What the switches say about one direction of all connections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rules {
    pub(super) hold: bool,
    pub(super) delay: Duration,
}

/// How a direction of a connection ends that was cut after so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The whole connection is reset, as by a host that crashed and came back: both sides get `RST`.
    Reset,
    /// Nothing comes any more in this direction, not even the end. The other direction goes on.
    Silence,
}

/// What to do next for a lane.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Pass these bytes on.
    Deliver(Vec<u8>),
    /// Pass the end of the stream on. There is no step after it.
    End,
    /// Reset the connection. There is no step after it.
    Reset,
    /// Nothing before this time, unless something changes.
    WaitUntil(Instant),
    /// Nothing until something changes.
    Wait,
}

/// The bytes on their way in one direction of one connection.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// With the time of arrival.
    queue: VecDeque<(Instant, Vec<u8>)>,
    queued_bytes: usize,
    /// When the source ended.
    ended: Option<Instant>,
    fate: Fate,
    /// How many bytes more may pass, and what comes then.
    limit: Option<(usize, Cut)>,
}

/// What becomes of a lane's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fate {
    #[default]
    Delivered,
    /// The bytes are discarded; the end is still passed on.
    Discarded,
    /// Not even the end is passed on.
    Silenced,
}

impl Lane {
    /// Takes bytes that have arrived.
    pub(super) fn push(&mut self, now: Instant, bytes: &[u8]) {
        if self.fate == Fate::Delivered {
            self.queued_bytes += bytes.len();
            self.queue.push_back((now, bytes.to_vec()));
        }
    }

    /// Takes note that nothing more will arrive.
    pub(super) fn end(&mut self, now: Instant) {
        self.ended.get_or_insert(now);
    }

    /// Discards what is there and whatever comes. The end is passed on.
    pub(super) fn discard(&mut self) {
        if self.fate == Fate::Delivered {
            self.fate = Fate::Discarded;
        }
        self.clear();
    }

    /// Discards what is there and whatever comes, the end too.
    pub(super) fn silence(&mut self) {
        self.fate = Fate::Silenced;
        self.clear();
    }

    /// Lets this many bytes more pass and not one more.
    pub(super) fn limit(&mut self, bytes: usize, cut: Cut) {
        self.limit = Some((bytes, cut));
    }

    /// The next step under `rules`. Bytes that it returns are no longer in the lane.
    pub(super) fn next(&mut self, now: Instant, rules: Rules) -> Step {
        if rules.hold || self.fate == Fate::Silenced {
            return Step::Wait;
        }
        // The end arrives behind the bytes and waits its own delay.
        let Some(arrived) = self.queue.front().map(|(arrived, _)| *arrived).or(self.ended) else {
            return Step::Wait;
        };
        let due = arrived + rules.delay;
        if due > now {
            return Step::WaitUntil(due);
        }
        let Some((arrived, mut bytes)) = self.queue.pop_front() else { return Step::End };
        self.queued_bytes -= bytes.len();
        match &mut self.limit {
            Some((0, Cut::Reset)) => return Step::Reset,
            Some((0, Cut::Silence)) => {
                self.silence();
                return Step::Wait;
            }
            Some((left, _)) => {
                if bytes.len() > *left {
                    let beyond = bytes.split_off(*left);
                    self.queued_bytes += beyond.len();
                    self.queue.push_front((arrived, beyond));
                }
                *left -= bytes.len();
            }
            None => {}
        }
        Step::Deliver(bytes)
    }

    /// Whether it has no room: then nothing is read from the source.
    pub(super) fn is_full(&self) -> bool {
        self.queued_bytes >= MAX_QUEUED_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn clear(&mut self) {
        self.queue.clear();
        self.queued_bytes = 0;
    }
}

/// How much a lane keeps. One more read may exceed it.
const MAX_QUEUED_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::super::super::clock::now;
    use super::*;

    const OPEN: Rules = Rules { hold: false, delay: Duration::ZERO };
    const HELD: Rules = Rules { hold: true, delay: Duration::ZERO };
    const SLOW: Rules = Rules { hold: false, delay: Duration::from_secs(9) };

    fn deliver(bytes: &[u8]) -> Step {
        Step::Deliver(bytes.to_vec())
    }

    #[test]
    fn bytes_go_in_order_and_then_the_end() {
        let (mut lane, t) = (Lane::default(), now());
        assert_eq!(lane.next(t, OPEN), Step::Wait);
        lane.push(t, b"a");
        lane.push(t, b"b");
        lane.end(t);
        assert_eq!(lane.next(t, OPEN), deliver(b"a"));
        assert_eq!(lane.next(t, OPEN), deliver(b"b"));
        assert!(lane.is_empty());
        assert_eq!(lane.next(t, OPEN), Step::End);
    }

    #[test]
    fn held_lane_keeps_bytes_and_end() {
        let (mut lane, t) = (Lane::default(), now());
        lane.push(t, b"a");
        lane.end(t);
        assert_eq!(lane.next(t, HELD), Step::Wait);
        assert_eq!(lane.next(t, OPEN), deliver(b"a"));
        assert_eq!(lane.next(t, HELD), Step::Wait);
        assert_eq!(lane.next(t, OPEN), Step::End);
    }

    #[test]
    fn delay_runs_from_the_arrival() {
        let (mut lane, t) = (Lane::default(), now());
        lane.push(t, b"a");
        lane.end(t + Duration::from_secs(1));
        let (due, end_due) = (t + Duration::from_secs(9), t + Duration::from_secs(10));
        assert_eq!(lane.next(t, SLOW), Step::WaitUntil(due));
        assert_eq!(lane.next(due, SLOW), deliver(b"a"));
        assert_eq!(lane.next(due, SLOW), Step::WaitUntil(end_due));
        assert_eq!(lane.next(end_due, SLOW), Step::End);
    }

    #[test]
    fn delay_that_is_switched_off_lets_go() {
        let (mut lane, t) = (Lane::default(), now());
        lane.push(t, b"a");
        assert!(matches!(lane.next(t, SLOW), Step::WaitUntil(_)));
        assert_eq!(lane.next(t, OPEN), deliver(b"a"));
    }

    #[test]
    fn discarding_lane_passes_only_the_end() {
        let (mut lane, t) = (Lane::default(), now());
        lane.push(t, b"a");
        lane.discard();
        lane.push(t, b"b");
        assert_eq!(lane.next(t, OPEN), Step::Wait);
        lane.end(t);
        assert_eq!(lane.next(t, OPEN), Step::End);
    }

    #[test]
    fn silenced_lane_passes_nothing() {
        let (mut lane, t) = (Lane::default(), now());
        lane.push(t, b"a");
        lane.silence();
        lane.discard();
        lane.end(t);
        assert_eq!(lane.next(t, OPEN), Step::Wait);
    }

    #[test]
    fn limited_lane_passes_exactly_so_many_bytes() {
        for (cut, last) in [(Cut::Reset, Step::Reset), (Cut::Silence, Step::Wait)] {
            let (mut lane, t) = (Lane::default(), now());
            lane.limit(3, cut);
            lane.push(t, b"ab");
            assert_eq!(lane.next(t, OPEN), deliver(b"ab"));
            assert_eq!(lane.next(t, OPEN), Step::Wait, "nothing is cut before there is something to cut");
            lane.push(t, b"cde");
            assert_eq!(lane.next(t, HELD), Step::Wait);
            assert_eq!(lane.next(t, OPEN), deliver(b"c"));
            assert_eq!(lane.next(t, OPEN), last);
            lane.push(t, b"f");
            lane.end(t);
            assert_ne!(lane.next(t, OPEN), deliver(b"f"));
        }
    }

    #[test]
    fn lane_is_bounded() {
        let (mut lane, t) = (Lane::default(), now());
        lane.push(t, &vec![0; MAX_QUEUED_BYTES - 1]);
        assert!(!lane.is_full());
        lane.push(t, b"a");
        assert!(lane.is_full());
        lane.next(t, OPEN);
        assert!(!lane.is_full());
        lane.push(t, &vec![0; MAX_QUEUED_BYTES]);
        lane.discard();
        assert!(!lane.is_full());
    }
}
