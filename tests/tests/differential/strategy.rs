//! Sequences of steps that proptest can make and shorten.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::step::{ALL_KEYS, ALL_WHATS, Lifetime, Name, Step, Value};

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    vec(step(prop_oneof![9 => (1..=90_u16).prop_map(Lifetime::Minutes), 1 => Just(Lifetime::Longest)]), 1..60)
}

/// With few pauses: each takes its time.
pub(crate) fn steps_in_real_time() -> impl Strategy<Value = Vec<Step>> {
    let lifetime = || prop_oneof![3 => Just(Lifetime::Moment), 1 => Just(Lifetime::Minutes(1))];
    let between_pauses = vec(vec(step(lifetime()), 1..10), 2..=3);
    between_pauses.prop_map(|parts| parts.join(&Step::Pause))
}

fn step(lifetime: impl Strategy<Value = Lifetime> + Clone + 'static) -> impl Strategy<Value = Step> {
    let (key, what) = (|| select(&ALL_KEYS[..]), select(&ALL_WHATS[..]));
    let name = select(&[Name::Ours, Name::Theirs][..]);
    let carry_out = (key(), key(), what, name, lifetime.clone())
        .prop_map(|(lock, fence, what, name, lifetime)| Step::CarryOut { lock, fence, what, name, lifetime });
    let set = (key(), value(), prop::option::of(lifetime)).prop_map(|(key, value, lifetime)| Step::Set {
        key,
        value,
        lifetime,
    });
    prop_oneof![
        8 => carry_out,
        2 => set,
        2 => key().prop_map(Step::Get),
        2 => key().prop_map(Step::Pttl),
        1 => key().prop_map(Step::Del),
        1 => key().prop_map(Step::Expire),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let tokens = [Name::Ours, Name::Theirs].map(Value::from);
    prop_oneof![
        4 => select(tokens.to_vec()),
        4 => select(Value::all().collect::<Vec<_>>()),
        1 => any::<i64>().prop_map(|number| Value(number.to_string())),
        1 => any::<u64>().prop_map(|number| Value(number.to_string())),
        1 => "[-+0-9. ]{0,21}".prop_map(Value),
        1 => any::<String>().prop_map(Value),
    ]
}
