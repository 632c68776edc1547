use super::*;

const RETRY: Duration = Duration::from_millis(200);

fn at(micros: u64) -> Instant {
    Instant::from_epoch(Duration::from_micros(micros))
}

/// One lease of ours, from `from` to `to`.
fn lease(courtesy: &Courtesy, resource: &Arc<str>, from: u64, to: u64, wait: Wait) {
    courtesy.won(resource, at(from), wait);
    assert_eq!(courtesy.before(resource, false, at(to), RETRY), None, "we have it");
    courtesy.over(resource, at(to));
}

#[test]
fn as_many_go_first_as_went_before() {
    let (courtesy, resource) = (Courtesy::default(), "r".into());
    assert_eq!(courtesy.before(&resource, false, at(0), RETRY), None);
    lease(&courtesy, &resource, 0, 1_000, Wait::Seen(7));
    assert_eq!(courtesy.before(&resource, false, at(1_000), RETRY), Some(Rest::Others(7, at(101_000))));
    assert_eq!(courtesy.before(&"other".into(), false, at(1_000), RETRY), None);
    // Who comes back late has let them go.
    assert_eq!(courtesy.before(&resource, false, at(200_000), RETRY), None);
    // It is not for longer than they took.
    lease(&courtesy, &resource, 2_000, 3_000, Wait::Seen(1_000));
    assert_eq!(
        courtesy.before(&resource, false, at(3_000), RETRY),
        Some(Rest::Others(MOST_OTHERS, at(4_000)))
    );
    // Nobody else came.
    lease(&courtesy, &resource, 4_000, 5_000, Wait::Seen(0));
    assert_eq!(courtesy.before(&resource, false, at(5_000), RETRY), None);
}

#[test]
fn who_is_alone_looks_for_others_more_and_more_seldom() {
    let (courtesy, resource) = (Courtesy::default(), "r".into());
    let mut looks = Vec::new();
    // Ten seconds of leases of a millisecond.
    for milli in 0..10_000 {
        let now = milli * 1_000;
        match courtesy.before(&resource, false, at(now), RETRY) {
            Some(Rest::Until(end)) => {
                assert_eq!(end, at(now).saturating_add(HEAD_START));
                looks.push(milli);
            }
            rest => assert_eq!(rest, None),
        }
        lease(&courtesy, &resource, now, now + 1_000, Wait::None);
    }
    assert!(
        looks.len() < 20 && looks.windows(2).last().is_some_and(|last| last[1] - last[0] > 900),
        "{looks:?}"
    );
    assert!(looks[0] < 20, "{looks:?}");
}

#[test]
fn a_line_looks_for_others_as_seldom_as_may_be() {
    let (courtesy, resource) = (Courtesy::default(), "r".into());
    let mut looks = 0;
    for milli in 0..10_000 {
        let now = milli * 1_000;
        looks += u64::from(courtesy.before(&resource, true, at(now), RETRY).is_some());
        lease(&courtesy, &resource, now, now + 1_000, Wait::None);
    }
    assert!((9..=10).contains(&looks), "{looks} in ten seconds");
}

#[test]
fn those_who_cannot_be_seen_get_a_pause_of_their_own_length() {
    let (courtesy, resource) = (Courtesy::default(), "r".into());
    lease(&courtesy, &resource, 0, 1_000, Wait::Unseen);
    let mut now = 1_000;
    let end = loop {
        match courtesy.before(&resource, false, at(now), RETRY) {
            Some(Rest::Until(end)) if end > at(now).saturating_add(HEAD_START) => break end,
            _ => lease(&courtesy, &resource, now, now + 1_000, Wait::None),
        }
        now += 1_000;
    };
    assert!((200_000..210_000).contains(&now), "after a run of {now} µs");
    assert_eq!(end, at(now).saturating_add(RETRY * 3 / 2));
    // Nobody came in that time: they are gone.
    lease(&courtesy, &resource, now + 300_000, now + 301_000, Wait::None);
    assert!(!courtesy.at(&resource).unwrap().as_ref().is_some_and(|place| place.memory.unseen));
}

#[test]
fn the_one_whose_turn_was_the_longest_ago_comes_first() {
    assert_eq!((leave(7, 7), leave(7, 9), leave(0, 0)), (None, None, None));
    let left: Vec<_> = (0..7).map(|seen| leave(7, seen).unwrap()).collect();
    assert!(left.is_sorted_by(|a, b| a > b), "{left:?}");
    assert!(left[6] < Duration::from_millis(1) && left[0] > HEAD_START);
}

#[test]
fn what_is_remembered_is_bounded() {
    let courtesy = Courtesy::default();
    for number in 0..10_000 {
        lease(&courtesy, &number.to_string().into(), 0, 1, Wait::None);
    }
    assert_eq!(courtesy.places.get().map(|places| places.len()), Some(PLACES));
}
