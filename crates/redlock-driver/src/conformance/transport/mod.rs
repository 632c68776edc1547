//! A way to send commands that is all the user's own.

mod bench;
mod call;
mod lease;

use std::future::Future;
use std::sync::Arc;

use super::Check;
use super::outcome::Outcome;
use crate::{Runtime, Transport};
use bench::Bench;

pub(super) fn checks<R: Runtime, T: Transport>(transport: T) -> Vec<Check<R>> {
    let list = List { transport: Arc::new(transport) };
    vec![
        list.check(
            "transport::carries_every_command",
            "send() must carry each of the four intents out, once and as one step, and yield the answer as the \
             node gave it",
            call::carries_every_command,
        ),
        list.check(
            "transport::lets_keys_expire",
            "a key must be there for as long as the ttl of its command says, and no longer",
            call::lets_keys_expire,
        ),
        list.check(
            "transport::serves_many_callers",
            "each of many commands at once must get its own answer",
            call::serves_many_callers,
        ),
        list.check(
            "transport::forgets_dropped_calls",
            "a future of send() that is dropped must give up its answer, and no other's",
            call::forgets_dropped_calls,
        ),
        list.check(
            "transport::carries_a_lease",
            "what a lease needs of a transport are the checks before this one",
            lease::carries_a_lease,
        ),
    ]
}

struct List<T> {
    transport: Arc<T>,
}

impl<T: Transport> List<T> {
    fn check<R: Runtime, F>(
        &self,
        name: &'static str,
        demand: &'static str,
        run: impl Fn(Bench<R, T>) -> F + Send + Sync + 'static,
    ) -> Check<R>
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let transport = Arc::clone(&self.transport);
        Check::new(name, demand, move |runtime| run(Bench { runtime, transport: Arc::clone(&transport) }))
    }
}
