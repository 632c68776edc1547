use std::collections::VecDeque;
use std::future::poll_fn;
use std::time::Duration;

use super::*;
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

fn lookout() -> Lookout<Bench> {
    Lookout::new(Bench::new([]), Box::new(Script(VecDeque::new())), Mark::of(US).owner())
}

/// What one more sight leads to.
fn show(lookout: &mut Lookout<Bench>, sight: Sight, expected: u32) -> Option<News> {
    lookout.watch = Box::new(Script([sight].into()));
    poll_fn(|context| lookout.poll(expected, context)).now_or_never()
}

/// After which of the sights there were hints.
fn hints(sights: &[Sight]) -> Vec<usize> {
    let mut lookout = lookout();
    let mut hints = Vec::new();
    for (number, sight) in sights.iter().enumerate() {
        match show(&mut lookout, *sight, 0) {
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
    let mut lookout = lookout();
    assert_eq!(show(&mut lookout, Sight::Free, 0), Some(News::Hint));
    let begun = tokio::time::Instant::now();
    for _ in 0..10 {
        assert_eq!(poll_fn(|context| lookout.poll(0, context)).await, News::Hint);
    }
    let millis = begun.elapsed().as_millis();
    assert!((200..300).contains(&millis), "10 times in {millis} ms");
    assert_eq!(show(&mut lookout, CHANGED, 0), None);
    assert_eq!(show(&mut lookout, held(1), 0), None);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(poll_fn(|context| lookout.poll(0, context)).now_or_never(), None);
}

#[tokio::test(start_paused = true)]
async fn others_go_first_if_they_come() {
    let mut lookout = lookout();
    for other in 1..=3 {
        for sight in [Sight::Free, CHANGED, held(other)] {
            assert_eq!(show(&mut lookout, sight, 3), None, "{other}: {sight:?}");
        }
    }
    assert_eq!(show(&mut lookout, CHANGED, 3), Some(News::Hint));
    assert_eq!(lookout.others(), 3);
}

#[tokio::test(start_paused = true)]
async fn others_are_counted_once_and_not_we() {
    let mut lookout = lookout();
    let another = US.iter().map(|byte| byte ^ u8::from(*byte == b'6')).collect::<Vec<_>>();
    let [mut later, mut last] = [US.to_vec(), another.clone()];
    (later[20], last[20]) = (b'x', b'x');
    for value in [US, &later, &another, &last, &another] {
        assert_eq!(show(&mut lookout, Sight::Held(Mark::of(value)), 3), None);
        assert_eq!(show(&mut lookout, CHANGED, 3), None);
    }
    assert_eq!(lookout.others(), 1);
    for other in 0..=255 {
        assert_eq!(show(&mut lookout, held(other), 300), None);
    }
    assert_eq!(lookout.others(), MOST_OTHERS);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_nobody_takes_is_not_left_to_others_for_long() {
    let mut lookout = lookout();
    let mut before = None;
    for seen in 0..4 {
        assert_eq!(show(&mut lookout, Sight::Free, 4), None);
        let begun = tokio::time::Instant::now();
        assert_eq!(poll_fn(|context| lookout.poll(4, context)).await, News::Hint);
        let left = begun.elapsed();
        assert!(left <= Duration::from_millis(3), "{left:?}");
        assert!(before.is_none_or(|before| left <= before), "{before:?}, then {left:?}");
        before = Some(left);
        assert_eq!(show(&mut lookout, CHANGED, 4), None);
        assert_eq!(show(&mut lookout, held(seen), 4), None);
    }
}
