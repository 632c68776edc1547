use std::collections::VecDeque;
use std::future::poll_fn;
use std::time::Duration;

use super::*;
use crate::courtesy::MOST_OTHERS;
use crate::redis::testing::Bench;

/// Shows one sight after the other.
struct Script(VecDeque<Sight>);

impl Watch for Script {
    fn poll_sight(&mut self, _: &mut Context<'_>) -> Poll<Sight> {
        self.0.pop_front().map_or(Poll::Pending, Poll::Ready)
    }
}

const US: &[u8] = b"0123456789abcdef0123456789abcdef01234567";

const CHANGED: Sight = Sight::Changed;

fn held(holder: u8) -> Sight {
    Sight::Held(Mark::of(&[holder]))
}

/// A lookout, and those who are to go before.
struct Rig {
    lookout: Lookout<Bench>,
    others: Others,
}

impl Rig {
    /// So many are to go before.
    fn behind(expected: u32) -> Self {
        let mut others = Others::than(Mark::of(US).owner());
        others.expected = expected;
        Self { lookout: lookout(), others }
    }

    /// What one more sight leads to.
    fn show(&mut self, sight: Sight) -> Option<News> {
        self.lookout.watch = Box::new(Script([sight].into()));
        self.news().now_or_never()
    }

    fn news(&mut self) -> impl Future<Output = News> {
        poll_fn(|context| self.lookout.poll(&mut self.others, context))
    }
}

fn lookout() -> Lookout<Bench> {
    Lookout::new(Bench::new([]), Box::new(Script(VecDeque::new())))
}

/// After which of the sights there were hints.
fn hints(sights: &[Sight]) -> Vec<usize> {
    let mut rig = Rig::behind(0);
    let mut hints = Vec::new();
    for (number, sight) in sights.iter().enumerate() {
        match rig.show(*sight) {
            Some(News::Hint) => hints.push(number),
            Some(News::None) => assert_eq!(*sight, Sight::Over),
            None => {}
        }
    }
    hints
}

#[tokio::test(start_paused = true)]
async fn a_free_key_is_a_hint_and_so_is_the_first_change_of_a_held_one() {
    assert_eq!(hints(&[Sight::Free]), [0]);
    assert_eq!(hints(&[held(1), CHANGED]), [1]);
    assert_eq!(hints(&[held(1), Sight::Over]), []);
}

#[tokio::test(start_paused = true)]
async fn who_renews_is_looked_at_first() {
    let renewals = [held(1), CHANGED, held(1), CHANGED, held(1), CHANGED, held(1), CHANGED, Sight::Free];
    assert_eq!(hints(&renewals), [1, 8]);
    // The next holder is not taken for one who renews.
    assert_eq!(hints(&[held(1), CHANGED, held(1), CHANGED, held(2), CHANGED]), [1, 5]);
}

#[tokio::test(start_paused = true)]
async fn that_a_free_key_is_taken_is_no_hint() {
    assert_eq!(hints(&[Sight::Free, CHANGED, held(1), CHANGED]), [0, 3]);
}

#[tokio::test(start_paused = true)]
async fn that_we_take_our_own_back_is_looked_into() {
    let ours = Sight::Held(Mark::of(US));
    assert_eq!(hints(&[ours, CHANGED, Sight::Free]), [2]);
    assert_eq!(hints(&[ours, CHANGED, held(1), CHANGED]), [3]);
}

/// Whoever was hinted at may have been deaf.
#[tokio::test(start_paused = true)]
async fn that_a_key_is_free_is_said_again_until_it_is_not() {
    let mut rig = Rig::behind(0);
    assert_eq!(rig.show(Sight::Free), Some(News::Hint));
    let begun = tokio::time::Instant::now();
    for _ in 0..10 {
        assert_eq!(rig.news().await, News::Hint);
    }
    let millis = begun.elapsed().as_millis();
    assert!((200..300).contains(&millis), "10 times in {millis} ms");
    assert_eq!(rig.show(CHANGED), None);
    assert_eq!(rig.show(held(1)), None);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(rig.news().now_or_never(), None);
}

#[tokio::test(start_paused = true)]
async fn others_go_first_if_they_come() {
    let mut rig = Rig::behind(3);
    for other in 1..=3 {
        for sight in [Sight::Free, CHANGED, held(other)] {
            assert_eq!(rig.show(sight), None, "{other}: {sight:?}");
        }
    }
    assert_eq!(rig.show(CHANGED), Some(News::Hint));
    assert_eq!(rig.others.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn others_are_counted_once_and_not_we() {
    let mut rig = Rig::behind(300);
    let another = US.iter().map(|byte| byte ^ u8::from(*byte == b'6')).collect::<Vec<_>>();
    let [mut later, mut last] = [US.to_vec(), another.clone()];
    (later[20], last[20]) = (b'x', b'x');
    for value in [US, &later, &another, &last, &another] {
        assert_eq!(rig.show(Sight::Held(Mark::of(value))), None);
        assert_eq!(rig.show(CHANGED), None);
    }
    assert_eq!(rig.others.count(), 1);
    for other in 0..=255 {
        assert_eq!(rig.show(held(other)), None);
    }
    assert_eq!(rig.others.count(), MOST_OTHERS);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_nobody_takes_is_not_left_to_others_for_long() {
    let mut rig = Rig::behind(4);
    let mut before = None;
    for seen in 0..4 {
        assert_eq!(rig.show(Sight::Free), None);
        let begun = tokio::time::Instant::now();
        assert_eq!(rig.news().await, News::Hint);
        let left = begun.elapsed();
        assert!(left <= Duration::from_millis(3), "{left:?}");
        assert!(before.is_none_or(|before| left <= before), "{before:?}, then {left:?}");
        before = Some(left);
        assert_eq!(rig.show(CHANGED), None);
        assert_eq!(rig.show(held(seen)), None);
    }
}

/// On several nodes each shows but some of those who have the lease.
#[tokio::test(start_paused = true)]
async fn who_was_seen_at_another_node_has_gone_first_too() {
    let mut rig = Rig::behind(2);
    assert_eq!(rig.show(held(1)), None);
    rig.lookout = lookout();
    assert_eq!(rig.show(held(2)), None);
    assert_eq!(rig.show(CHANGED), Some(News::Hint));
}
