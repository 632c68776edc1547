//! The queue and the switches; the intents are tested beside their code.

use super::*;
use crate::{CommandId, NodeId, Token, Ttl, Vote, interpret};
use alloc::vec::Vec;
use core::time::Duration;
use proptest::prelude::*;

const OURS: Token = Token::from_bytes([1; Token::LEN]);
const THEIRS: Token = Token::from_bytes([2; Token::LEN]);

fn at(millis: u64) -> Instant {
    Instant::from_epoch(Duration::from_millis(millis))
}

fn span(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn command(intent: Intent) -> Command {
    Command {
        id: CommandId::new(0),
        node: NodeId::new(0),
        deadline: Instant::EPOCH,
        key: "lock".into(),
        intent,
    }
}

fn set(token: Token) -> Command {
    command(Intent::SetNxPx { token, ttl: Ttl::from_millis(1_000).unwrap() })
}

fn delete(token: Token) -> Command {
    command(Intent::CompareAndDelete { token })
}

fn answers(node: &mut MemoryNode, now: Instant) -> Vec<(u64, Result<Reply, Fault>)> {
    core::iter::from_fn(|| node.poll(now)).collect()
}

fn disconnected() -> Fault {
    Fault::Unknown(Cause::with_detail(CauseKind::Disconnected, "the server restarted"))
}

#[test]
fn without_faults_the_answer_is_there_at_once() {
    let mut node = MemoryNode::new();
    assert_eq!(node.next_timeout(), None);
    node.submit(at(5), 1, &set(OURS)).unwrap();
    node.submit(at(5), 2, &set(THEIRS)).unwrap();
    assert_eq!(node.next_timeout(), Some(at(5)));
    assert_eq!(answers(&mut node, at(5)), [(1, Ok(Reply::Ok)), (2, Ok(Reply::Nil))]);
    assert_eq!(node.next_timeout(), None);
}

#[test]
fn a_delayed_request_is_carried_out_late_and_on_time_even_if_the_poll_is_later() {
    let mut node = MemoryNode::new();
    node.set_request_delay(span(100));
    node.submit(at(0), 1, &set(OURS)).unwrap();
    assert_eq!(node.next_timeout(), Some(at(100)));
    assert_eq!(node.poll(at(99)), None);
    assert_eq!(node.get(at(99), "lock"), None);
    assert_eq!(node.poll(at(700)), Some((1, Ok(Reply::Ok))));
    assert_eq!(node.pttl(at(700), "lock"), Pttl::Expires(span(400)));
}

#[test]
fn a_delayed_reply_follows_an_execution_in_time() {
    let mut node = MemoryNode::new();
    node.set_request_delay(span(10));
    node.set_reply_delay(span(20));
    node.submit(at(0), 1, &set(OURS)).unwrap();
    assert_eq!(node.poll(at(10)), None);
    assert!(node.get(at(10), "lock").is_some());
    assert_eq!(node.next_timeout(), Some(at(30)));
    assert_eq!(node.poll(at(30)), Some((1, Ok(Reply::Ok))));
}

#[test]
fn a_later_request_with_a_shorter_way_overtakes() {
    let mut node = MemoryNode::new();
    node.set_request_delay(span(100));
    node.submit(at(0), 1, &set(OURS)).unwrap();
    node.set_request_delay(Duration::ZERO);
    node.submit(at(1), 2, &delete(OURS)).unwrap();
    assert_eq!(
        answers(&mut node, at(200)),
        [(2, Ok(Reply::Int(0))), (1, Ok(Reply::Ok))],
        "the delete came before the key"
    );
    assert!(node.get(at(200), "lock").is_some());
}

#[test]
fn a_hang_keeps_requests_in_order_until_it_ends() {
    let mut node = MemoryNode::new();
    node.hang();
    node.submit(at(0), 1, &set(OURS)).unwrap();
    node.submit(at(10), 2, &set(THEIRS)).unwrap();
    assert_eq!(node.next_timeout(), None);
    assert_eq!(node.poll(at(50_000)), None);
    assert_eq!(node.get(at(50_000), "lock"), None);
    node.resume(at(60_000));
    assert_eq!(answers(&mut node, at(60_100)), [(1, Ok(Reply::Ok)), (2, Ok(Reply::Nil))]);
    assert_eq!(node.pttl(at(60_100), "lock"), Pttl::Expires(span(900)), "set when the hang ended");
    node.resume(at(60_200));
    assert_eq!(node.poll(at(60_200)), None);
}

#[test]
fn a_hang_with_an_end_ends_by_itself_and_lets_keys_expire_meanwhile() {
    let mut node = MemoryNode::new();
    node.submit(at(0), 1, &set(OURS)).unwrap();
    assert_eq!(node.poll(at(0)), Some((1, Ok(Reply::Ok))));
    node.hang_until(at(1_500));
    node.submit(at(100), 2, &set(THEIRS)).unwrap();
    node.submit(at(1_600), 3, &set(OURS)).unwrap();
    assert_eq!(node.next_timeout(), Some(at(1_500)));
    assert_eq!(answers(&mut node, at(1_600)), [(2, Ok(Reply::Ok)), (3, Ok(Reply::Nil))]);
    assert_eq!(node.pttl(at(1_600), "lock"), Pttl::Expires(span(900)));
}

#[test]
fn a_reply_that_has_left_arrives_during_a_hang() {
    let mut node = MemoryNode::new();
    node.set_reply_delay(span(20));
    node.submit(at(0), 1, &set(OURS)).unwrap();
    assert_eq!(node.poll(at(0)), None);
    node.hang();
    assert_eq!(node.next_timeout(), Some(at(20)));
    assert_eq!(node.poll(at(20)), Some((1, Ok(Reply::Ok))));
}

#[test]
fn a_lost_reply_has_had_its_effect_and_a_lost_request_has_not() {
    let mut node = MemoryNode::new();
    node.lose_replies(true);
    node.submit(at(0), 1, &set(OURS)).unwrap();
    assert_eq!(node.poll(at(0)), None);
    assert!(node.get(at(0), "lock").is_some());
    node.lose_replies(false);

    node.lose_requests(true);
    node.submit(at(1), 2, &delete(OURS)).unwrap();
    node.lose_requests(false);
    assert_eq!(node.next_timeout(), None);
    assert_eq!(node.poll(at(900)), None);
    assert!(node.get(at(900), "lock").is_some());
    node.submit(at(900), 3, &delete(OURS)).unwrap();
    assert_eq!(node.poll(at(900)), Some((3, Ok(Reply::Int(1)))));
}

#[test]
fn a_closed_port_is_a_refusal_at_once() {
    let mut node = MemoryNode::new();
    node.set_request_delay(span(100));
    node.submit(at(0), 1, &set(OURS)).unwrap();
    node.refuse(true);
    let fault = node.submit(at(0), 2, &set(THEIRS)).unwrap_err();
    assert!(matches!(&fault, Fault::NotExecuted(cause) if cause.kind() == CauseKind::Unreachable));
    assert_eq!(alloc::format!("{fault}"), "unreachable: connection refused");
    assert_eq!(answers(&mut node, at(100)), [(1, Ok(Reply::Ok))]);
    node.refuse(false);
    node.submit(at(100), 3, &set(THEIRS)).unwrap();
    assert_eq!(answers(&mut node, at(200)), [(3, Ok(Reply::Nil))]);
}

#[test]
fn a_read_only_node_stays_so_for_what_is_queued() {
    let mut node = MemoryNode::new();
    node.set_request_delay(span(10));
    node.submit(at(0), 1, &set(OURS)).unwrap();
    node.set_read_only(true);
    let Some((1, Ok(Reply::Error(error)))) = node.poll(at(10)) else { panic!("no error") };
    assert_eq!(error.code(), "READONLY");
    node.set_read_only(false);
    assert_eq!(node.execute(at(10), "lock", &set(OURS).intent), Reply::Ok);
}

#[test]
fn a_restart_breaks_what_is_under_way_and_keeps_the_data_or_not() {
    for keeps_data in [true, false] {
        let mut node = MemoryNode::new();
        node.set(at(0), "lock", "foreign", None);
        node.set_reply_delay(span(50));
        node.submit(at(0), 1, &set(OURS)).unwrap();
        assert_eq!(node.poll(at(0)), None, "executed, its reply under way");
        node.set_request_delay(span(30));
        node.submit(at(0), 2, &delete(OURS)).unwrap();
        node.hang();
        if keeps_data {
            node.restart_with_data();
        } else {
            node.restart_empty();
        }
        assert!(node.next_timeout().is_some_and(|due| due <= at(0)));
        assert_eq!(answers(&mut node, at(0)), [(1, Err(disconnected())), (2, Err(disconnected()))]);
        assert_eq!(node.get(at(0), "lock"), keeps_data.then_some("foreign"));
        assert_eq!(node.poll(at(1_000)), None, "the delayed request is not executed any more");

        node.set_request_delay(Duration::ZERO);
        node.set_reply_delay(Duration::ZERO);
        node.submit(at(1_000), 3, &set(OURS)).unwrap();
        let reply = if keeps_data { Reply::Nil } else { Reply::Ok };
        assert_eq!(node.poll(at(1_000)), Some((3, Ok(reply))), "the hang is over");
    }
}

#[test]
fn a_key_expires_by_the_clock_of_the_node() {
    let key_after = |millis, tamper: fn(&mut MemoryNode)| {
        let mut node = MemoryNode::new();
        node.execute(at(0), "lock", &set(OURS).intent);
        tamper(&mut node);
        node.get(at(millis), "lock").is_some()
    };
    assert_eq!([999, 1_000].map(|now| key_after(now, |_| ())), [true, false]);
    let forward = |node: &mut MemoryNode| node.jump_clock_forward(span(400));
    assert_eq!([599, 600].map(|now| key_after(now, forward)), [true, false]);
    let back = |node: &mut MemoryNode| node.jump_clock_back(span(400));
    assert_eq!([1_399, 1_400].map(|now| key_after(now, back)), [true, false]);
    let fast = |node: &mut MemoryNode| node.set_clock_drift(at(0), 1_000_000);
    assert_eq!([499, 500].map(|now| key_after(now, fast)), [true, false]);
    let slow = |node: &mut MemoryNode| node.set_clock_drift(at(0), -500_000);
    assert_eq!([1_999, 2_000].map(|now| key_after(now, slow)), [true, false]);
}

#[test]
fn what_can_be_under_way_is_bounded() {
    let mut node = MemoryNode::new();
    node.hang();
    let bound = MemoryNode::MAX_PENDING as u64;
    for ticket in 0..bound {
        node.submit(at(0), ticket, &set(OURS)).unwrap();
    }
    let fault = node.submit(at(0), bound, &set(OURS)).unwrap_err();
    assert!(matches!(&fault, Fault::NotExecuted(cause) if cause.kind() == CauseKind::Overloaded));
    node.resume(at(1));
    assert!(node.submit(at(1), bound, &set(OURS)).is_err(), "answers that nobody took count as well");
    assert!(node.poll(at(1)).is_some());
    node.submit(at(1), bound, &set(OURS)).unwrap();
    node.restart_empty();
    assert_eq!(answers(&mut node, at(1)).len() as u64, bound);
}

#[test]
fn a_direct_execution_comes_after_what_is_due() {
    let mut node = MemoryNode::new();
    node.submit(at(0), 1, &set(OURS)).unwrap();
    assert_eq!(node.execute(at(0), "lock", &set(THEIRS).intent), Reply::Nil);
    assert_eq!(node.poll(at(0)), Some((1, Ok(Reply::Ok))));
}

#[test]
fn nodes_that_cannot_be_told_apart_are_equal() {
    let mut used = MemoryNode::new();
    used.submit(at(0), 1, &set(OURS)).unwrap();
    assert!(used.poll(at(0)).is_some());
    used.hang_until(at(500));
    assert_eq!(used.poll(at(1_000)), None);
    assert_eq!(used, MemoryNode::new());
}

/// One thing done to a node.
#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Send(Intent),
    Execute(Intent),
    Set(&'static str, &'static str, Option<Duration>),
    Remove,
    Switch(u8, bool),
    Delay(u64, u64),
}

fn intents() -> impl Strategy<Value = Intent> {
    let token = prop_oneof![Just(OURS), Just(THEIRS)];
    (0..4_u8, token, 1..200_u64).prop_map(|(which, token, millis)| {
        let ttl = Ttl::from_millis(millis).unwrap();
        match which {
            0 => Intent::SetNxPx { token, ttl },
            1 => Intent::FencedAcquire { fence: "fence".into(), token, ttl },
            2 => Intent::CompareAndDelete { token },
            _ => Intent::CompareAndPexpire { token, ttl },
        }
    })
}

fn steps() -> impl Strategy<Value = Step> {
    let counters = ["", "0", "7", "007", "-1", "x", "9007199254740992", "9223372036854775807"];
    let ttl = proptest::option::of((0..100_u64).prop_map(span));
    prop_oneof![
        4 => (0..60_u64).prop_map(Step::Wait),
        8 => intents().prop_map(Step::Send),
        2 => intents().prop_map(Step::Execute),
        1 => (prop_oneof![Just("lock"), Just("fence")], proptest::sample::select(counters.to_vec()), ttl)
            .prop_map(|(key, value, ttl)| Step::Set(key, value, ttl)),
        1 => Just(Step::Remove),
        3 => (0..8_u8, any::<bool>()).prop_map(|(which, on)| Step::Switch(which, on)),
        1 => (0..50_u64, 0..50_u64).prop_map(|(request, reply)| Step::Delay(request, reply)),
    ]
}

fn turn(node: &mut MemoryNode, now: Instant, which: u8, on: bool) {
    match (which, on) {
        (0, true) => node.hang(),
        (0, false) => node.resume(now),
        (1, _) => node.refuse(on),
        (2, _) => node.set_read_only(on),
        (3, _) => node.lose_requests(on),
        (4, _) => node.lose_replies(on),
        (5, true) => node.restart_with_data(),
        (5, false) => node.restart_empty(),
        (6, true) => node.jump_clock_forward(span(30)),
        (6, false) => node.jump_clock_back(span(30)),
        _ => node.hang_until(now.saturating_add(span(25))),
    }
}

proptest! {
    #[test]
    fn every_answer_is_one_that_the_intent_can_have(steps in proptest::collection::vec(steps(), 0..80)) {
        let mut node = MemoryNode::new();
        let mut now = Instant::EPOCH;
        let mut sent = Vec::<Option<Intent>>::new();
        for step in steps {
            match step {
                Step::Wait(millis) => now = now.saturating_add(span(millis)),
                Step::Send(intent) => {
                    let accepted = node.submit(now, sent.len() as u64, &command(intent.clone()));
                    sent.push(accepted.is_ok().then_some(intent));
                }
                Step::Execute(intent) => {
                    let reply = node.execute(now, "lock", &intent);
                    prop_assert!(is_expected(&intent, Ok(reply)));
                }
                Step::Set(key, value, ttl) => node.set(now, key, value, ttl),
                Step::Remove => {
                    let existed = node.get(now, "fence").is_some();
                    prop_assert_eq!(node.remove(now, "fence"), existed || node.get(now, "fence").is_some());
                }
                Step::Switch(which, on) => turn(&mut node, now, which, on),
                Step::Delay(request, reply) => {
                    node.set_request_delay(span(request));
                    node.set_reply_delay(span(reply));
                }
            }
            while let Some((ticket, result)) = node.poll(now) {
                // Each accepted request is answered at most once.
                let intent = sent[ticket as usize].take();
                prop_assert!(intent.is_some_and(|intent| is_expected(&intent, result)));
            }
            prop_assert!(node.next_timeout().is_none_or(|due| due > now));
        }
    }
}

fn is_expected(intent: &Intent, result: Result<Reply, Fault>) -> bool {
    match interpret(intent, result) {
        Vote::Yes(fence) => fence.is_some() == matches!(intent, Intent::FencedAcquire { .. }),
        Vote::No => true,
        Vote::Fault(fault) => fault.cause().kind() != CauseKind::UnexpectedReply,
    }
}

#[test]
fn a_node_knows_how_often_it_was_restarted_and_for_how_long_it_has_been_running() {
    let mut node = MemoryNode::new();
    assert_eq!((node.restarts(), node.uptime(at(1_000))), (0, Duration::MAX));
    for (restart, number) in
        [(MemoryNode::restart_empty as fn(&mut MemoryNode), 1), (MemoryNode::restart_with_data, 2)]
    {
        restart(&mut node);
        let started = 2_000 * number;
        let _ = node.poll(at(started));
        assert_eq!((node.restarts(), node.uptime(at(started + 500))), (number, span(500)));
    }
}
