//! Commands that are handed over, for somebody who does not wait here.

use std::sync::Mutex;

use redlock_core::{CommandId, Instant};

use super::*;
use crate::Runtime;
use crate::recipient::{Passage, Recipient};
use crate::redis::lock;

/// What became of a command, by its number; none where it was given back.
type Heard = (u64, Option<Result<Reply, Fault>>);

#[derive(Debug, Default)]
struct Ears(Mutex<Vec<Heard>>);

impl Recipient for Ears {
    fn answered(self: Arc<Self>, id: CommandId, reply: Result<Reply, Fault>) -> bool {
        lock(&self.0).push((id.get(), Some(reply)));
        true
    }

    fn given_back(self: Arc<Self>, command: Command) {
        lock(&self.0).push((command.id.get(), None));
    }
}

fn hand_over(link: &Arc<Link<Bench>>, command: &Command, ears: &Arc<Ears>) -> Option<Passage> {
    let ears: Arc<dyn Recipient> = Arc::<Ears>::clone(ears);
    let now: Instant = link.runtime().now();
    link.hand_over(now, command, &ears, &mut crate::redis::Words::default())
}

#[tokio::test(start_paused = true)]
async fn only_a_connection_that_is_up_takes_them() {
    let (bench, link) = rig([Dial::AcceptAfter(Duration::from_millis(5))]);
    let ears = Arc::default();
    assert_eq!(hand_over(&link, &set(1, 1_000), &ears), None);
    assert_eq!(bench.dialled(), 0, "nor does that dial");
    let waits = send(&link, &set(2, 1_000)).await;
    assert_eq!(hand_over(&link, &set(1, 1_000), &ears), None, "they would overtake those that wait");
    after(5).await;
    assert!(hand_over(&link, &set(1, 1_000), &ears).is_some());
    assert_eq!(hand_over(&link, &set(3, 5), &ears), None, "too late");
    settle().await;
    assert_eq!(bench.calls(0), ["SET 02", "SET 01"]);
    bench.answer(0, 1, Ok(Value::Okay));
    bench.answer(0, 0, Ok(Value::Nil));
    assert_eq!(waits.await.unwrap(), Ok(Reply::Nil));
    settle().await;
    assert_eq!(*lock(&ears.0), [(1, Some(Ok(Reply::Ok)))]);
    link.close();
    assert_eq!(hand_over(&link, &set(4, 1_000), &ears), None);
}

#[tokio::test(start_paused = true)]
async fn what_is_overdue_retires_its_connection_and_a_delete_goes_out_once_more() {
    let (bench, link) = rig([]);
    prove(&bench, &link, 0).await;
    let ears = Arc::default();
    let (first, second) = (set(1, 100), delete(1, 100));
    let passages = [&first, &second].map(|command| hand_over(&link, command, &ears).unwrap());
    settle().await;
    assert!(!link.overdue(passages[0], &first));
    assert!(link.overdue(passages[1], &second));
    settle().await;
    assert_eq!((bench.dialled(), bench.calls(1)), (2, vec!["DELIFEQ 01".to_owned()]));
    // A delete has to think of the connection before.
    assert_eq!(hand_over(&link, &delete(2, 1_000), &ears), None);
    for passage in passages {
        link.forget(passage);
    }
    settle().await;
    assert_eq!(bench.dropped(), 1, "nobody waits for an answer there");
    assert!(hand_over(&link, &delete(2, 1_000), &ears).is_some());
    assert!(lock(&ears.0).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_under_them_is_replaced() {
    let (bench, link) = rig([]);
    prove(&bench, &link, 0).await;
    let ears = Arc::default();
    hand_over(&link, &set(1, 1_000), &ears).unwrap();
    hand_over(&link, &delete(2, 1_000), &ears).unwrap();
    settle().await;
    bench.hang_up(0);
    settle().await;
    let lost = unknown(CauseKind::Disconnected, "broken pipe");
    assert_eq!(*lock(&ears.0), [(1, Some(lost.clone())), (1, Some(lost))]);
    assert_eq!((bench.dialled(), bench.calls(1)), (2, vec!["DELIFEQ 02".to_owned()]));
}
