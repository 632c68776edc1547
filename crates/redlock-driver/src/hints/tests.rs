use std::collections::VecDeque;
use std::task::Waker;

use super::*;

/// Shows one sight after the other.
struct Script(VecDeque<Sight>);

impl Watch for Script {
    fn poll_sight(&mut self, _: &mut Context<'_>) -> Poll<Sight> {
        self.0.pop_front().map_or(Poll::Pending, Poll::Ready)
    }
}

const CHANGED: Sight = Sight::Changed;

fn held(holder: u8) -> Sight {
    Sight::Held(Mark::of(&[holder]))
}

/// After how many of the sights there were hints.
fn hints(sights: &[Sight]) -> Vec<usize> {
    let mut lookout = Lookout::new(Box::new(Script(VecDeque::new())));
    let mut hints = Vec::new();
    for (seen, sight) in sights.iter().enumerate() {
        lookout.watch = Box::new(Script([*sight].into()));
        match lookout.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(true) => hints.push(seen),
            Poll::Ready(false) => assert_eq!(*sight, Sight::Over),
            Poll::Pending => {}
        }
    }
    hints
}

#[test]
fn a_free_key_is_a_hint_and_so_is_the_first_change_of_a_held_one() {
    assert_eq!(hints(&[Sight::Free]), [0]);
    assert_eq!(hints(&[held(1), CHANGED]), [1]);
    assert_eq!(hints(&[held(1), Sight::Over]), []);
}

#[test]
fn who_renews_is_looked_at_first() {
    let renewals = [held(1), CHANGED, held(1), CHANGED, held(1), CHANGED, held(1), CHANGED, Sight::Free];
    assert_eq!(hints(&renewals), [1, 8]);
    // The next holder is not taken for one who renews.
    assert_eq!(hints(&[held(1), CHANGED, held(1), CHANGED, held(2), CHANGED]), [1, 5]);
}

#[test]
fn that_a_free_key_is_taken_is_no_hint() {
    assert_eq!(hints(&[Sight::Free, CHANGED, held(1), CHANGED]), [0, 3]);
}
