//! The way to a Redis server: dialling, and calls on a connection.

mod bench;
mod call;
mod cut;
mod dial;
mod lease;
mod push;

use std::future::Future;
use std::sync::Arc;

use super::Check;
use super::outcome::Outcome;
use crate::Connect;
use bench::Bench;

pub(super) fn checks<R: Connect>(url: &str) -> Vec<Check<R>> {
    let list = List { url: url.into() };
    vec![
        list.check(
            "connect::dials_and_calls",
            "connect() must yield a connection that is ready for commands",
            dial::dials_and_calls,
        ),
        list.check(
            "connect::reports_a_refused_connection",
            "connect() must dial before it ends, and fail when nobody listens",
            dial::reports_a_refused_connection,
        ),
        list.check(
            "connect::may_be_dropped",
            "a connect() that is dropped must give the attempt up and close its socket",
            dial::may_be_dropped,
        ),
        list.check(
            "connect::makes_one_connection",
            "connect() must make one connection, which its clones share and no other call does",
            dial::makes_one_connection,
        ),
        list.check(
            "connect::closes_with_the_last_clone",
            "a connection must be closed when its last clone is dropped",
            dial::closes_with_the_last_clone,
        ),
        list.check(
            "connect::keeps_order",
            "commands must be carried out in the order in which their futures are first polled, wherever and \
             in whichever order they are polled from there on; is the buffer smaller than MAX_UNANSWERED?",
            call::keeps_order,
        ),
        list.check(
            "connect::serves_many_callers",
            "each of many calls at once must get its own answer",
            call::serves_many_callers,
        ),
        list.check(
            "connect::shows_server_errors",
            "a server's error must come as Err, or as a ServerError inside the Ok, with its code, and leave \
             the connection usable",
            call::shows_server_errors,
        ),
        list.check(
            "connect::forgets_dropped_calls",
            "the answer to a call that was dropped must not be taken for the answer to another",
            call::forgets_dropped_calls,
        ),
        list.check(
            "connect::has_no_timeout",
            "a call must wait for its answer without a limit of its own; is a response timeout left on?",
            call::has_no_timeout,
        ),
        list.check(
            "connect::ends_calls_when_cut",
            "when a connection breaks, every call on it must end with an error, and no command may be sent \
             again",
            cut::ends_calls_when_cut,
        ),
        list.check(
            "connect::hears_of_changes",
            "connect_listening() must hand over all that the server sends unasked, and the end of the \
             connection; or yield None",
            push::hears_of_changes,
        ),
        list.check(
            "connect::carries_a_lease",
            "what a lease needs of a connection are the checks before this one",
            lease::carries_a_lease,
        ),
    ]
}

struct List {
    url: Arc<str>,
}

impl List {
    fn check<R: Connect, F>(
        &self,
        name: &'static str,
        demand: &'static str,
        run: impl Fn(Bench<R>) -> F + Clone + Send + Sync + 'static,
    ) -> Check<R>
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let url = Arc::clone(&self.url);
        Check::new(name, demand, move |runtime| {
            let (bench, run) = (Bench::new(runtime, &url), run.clone());
            async move { run(bench?).await }
        })
    }
}
