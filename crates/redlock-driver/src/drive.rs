//! The one drive loop: from a lease's machine to its nodes and back.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use redlock_core::{
    Command, CommandId, Event, Fault, Instant, LeaseMachine, LeaseState, NodeId, Output, Reply,
};

use crate::cell::Cell;
use crate::hints::Hints;
use crate::trace;
use crate::turns::Turn;
use crate::{Runtime, Transport};

/// No sleep is longer than this. A timer may stand still while the machine is suspended and the clock
/// does not; then the loss of a lease is noticed at most this long after waking up. Who asks the lease
/// itself gets the right answer at once.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// An answer and what it belongs to.
pub(crate) struct Answer {
    pub(crate) id: CommandId,
    pub(crate) node: NodeId,
    /// What the command was to do.
    pub(crate) intent: &'static str,
    pub(crate) sent: Instant,
    pub(crate) reply: Result<Reply, Fault>,
}

/// Drives a lease until nothing is left to do for it, and passes the `turn` on when the lease is over. Dropping the future before that, as its runtime
/// does when it shuts down, ends the lease, also when the future was never polled.
pub(crate) fn drive<R: Runtime, T: Transport>(
    cell: Arc<Cell<R>>,
    transport: T,
    hints: Hints<R>,
    turn: Option<Turn>,
) -> impl Future<Output = ()> + Send + 'static {
    let orphan = OrphanOnDrop(cell);
    async move { turn_until_settled(&orphan.0, transport, hints, turn).await }
}

async fn turn_until_settled<R: Runtime, T: Transport>(
    cell: &Cell<R>,
    transport: T,
    mut hints: Hints<R>,
    mut turn: Option<Turn>,
) {
    let mut under_way = FuturesUnordered::new();
    let mut answers: Vec<Answer> = Vec::new();
    let mut commands: Vec<Command> = Vec::new();
    let mut events: Vec<Event> = Vec::new();
    let mut watched: Vec<NodeId> = Vec::new();
    let mut hinted: Vec<NodeId> = Vec::new();
    let mut timer = pin!(None);
    let mut armed: Option<Instant> = None;

    loop {
        trace::answers(cell, &answers);
        // What has been answered goes in before the timers: validity is judged by `now` in any case, and
        // a task that was scheduled late must not count answers that it already has as silence.
        let (now, wait, state, settled) = cell.feed(|machine, now| {
            for answer in answers.drain(..) {
                machine.handle_reply(now, answer.id, answer.reply);
            }
            for node in hinted.drain(..) {
                machine.handle_hint(now, node);
            }
            if machine.next_timeout().is_some_and(|(at, _)| at <= now) {
                machine.handle_timeout(now);
            }
            let wait = drain(machine, &mut commands, &mut events);
            watched.clear();
            watched.extend(machine.watched());
            (now, wait, machine.state(), machine.is_settled())
        });
        let over = !matches!(state, LeaseState::Acquiring | LeaseState::Held);
        for event in &events {
            trace::event(cell, event);
        }
        cell.dispatch(events.drain(..));
        for command in commands.drain(..) {
            let answer = transport.send(&command);
            let Command { id, node, intent, .. } = command;
            let intent = intent.name();
            under_way.push(async move { Answer { id, node, intent, sent: now, reply: answer.await } });
        }
        if settled || cell.is_stopped() {
            return trace::settled(cell);
        }

        hints.follow(state, now);
        if watched.is_empty() {
            hints.pause_over();
        }

        // An armed timer that fires before it is needed costs one more turn; arming anew costs more.
        match wait.map(|at| at.min(now.saturating_add(LONGEST_SLEEP))) {
            Some(at) if armed.is_none_or(|armed| at < armed) => {
                timer.set(Some(cell.runtime().sleep_until(at)));
                armed = Some(at);
            }
            Some(_) | None => {}
        }
        let woken_by_timer = poll_fn(|cx| {
            let requested = cell.take_request(cx.waker());
            while let Poll::Ready(Some(answer)) = under_way.poll_next_unpin(cx) {
                answers.push(answer);
            }
            if over {
                // The deletes are on their way, so whoever is next comes behind them.
                turn = None;
            }
            hinted.extend(watched.iter().filter(|node| hints.poll(**node, cx).is_ready()));
            if requested || !answers.is_empty() || !hinted.is_empty() {
                return Poll::Ready(false);
            }
            poll_timer(timer.as_mut(), cx).map(|()| true)
        })
        .await;
        if woken_by_timer {
            timer.set(None);
            armed = None;
        }
    }
}

/// Empties the machine's queue.
fn drain(
    machine: &mut LeaseMachine,
    commands: &mut Vec<Command>,
    events: &mut Vec<Event>,
) -> Option<Instant> {
    loop {
        match machine.poll_output() {
            Output::Send(command) => commands.push(command),
            Output::Event(event) => events.push(event),
            Output::Wait(at) => return at,
        }
    }
}

fn poll_timer<S: Future<Output = ()>>(timer: Pin<&mut Option<S>>, cx: &mut Context<'_>) -> Poll<()> {
    match timer.as_pin_mut() {
        Some(timer) => timer.poll(cx),
        None => Poll::Pending,
    }
}

/// Tells whoever still waits when the loop is dropped midway. After a regular end nobody does.
struct OrphanOnDrop<R: Runtime>(Arc<Cell<R>>);

impl<R: Runtime> Drop for OrphanOnDrop<R> {
    fn drop(&mut self) {
        self.0.orphan();
    }
}
