//! Deletes that may not have run.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_delete_that_its_connection_took_down_is_sent_once_more_on_the_next() {
    let (bench, link) = rig([]);
    prove(&bench, &link, 0).await;
    let sent = send(&link, &delete(1, 1_000)).await;
    bench.hang_up(0);
    settle().await;
    // What the first one did is not known, and what the second one finds says nothing about it.
    assert_eq!(sent.await.unwrap(), unknown(CauseKind::Disconnected, "broken pipe"));
    assert_eq!((bench.calls(1), bench.dialled()), (vec!["EVALSHA 01".to_owned()], 2));
    assert!(bench.answer(1, 0, Ok(Value::Int(0))), "it is awaited");
    prove(&bench, &link, 1).await;
    assert_eq!(bench.calls(1).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn only_deletes_are_sent_once_more_and_only_once() {
    let (bench, link) = rig([]);
    prove(&bench, &link, 0).await;
    let sent = [
        send(&link, &set(1, 1_000)).await,
        send(&link, &delete(2, 1_000)).await,
        send(&link, &extend(3, 1_000)).await,
        send(&link, &fenced(4, 1_000)).await,
        send(&link, &delete(5, 1_000)).await,
    ];
    bench.hang_up(0);
    settle().await;
    assert_eq!(bench.calls(1), ["EVALSHA 02", "EVALSHA 05"]);
    bench.hang_up(1);
    settle().await;
    after(100).await;
    prove(&bench, &link, 2).await;
    assert_eq!((bench.calls(2).len(), bench.dialled()), (1, 3), "the proof alone");
    let mut answers = Vec::new();
    for sent in sent {
        answers.push(sent.await.unwrap());
    }
    let lost = unknown(CauseKind::Disconnected, "broken pipe");
    // Of the extension only the question had gone out in which form it may be said.
    let unsaid = not_executed(CauseKind::Disconnected, "broken pipe");
    assert_eq!(answers, [lost.clone(), lost.clone(), unsaid, lost.clone(), lost]);
}

#[tokio::test(start_paused = true)]
async fn a_delete_waits_for_a_node_that_is_down_and_goes_before_what_waits() {
    let refuse = Dial::RefuseAfter(Duration::from_millis(5));
    let (bench, link) = rig([Dial::Accept, refuse, Dial::AcceptAfter(Duration::from_millis(5))]);
    prove(&bench, &link, 0).await;
    let _sent = send(&link, &delete(1, 1_000)).await;
    bench.hang_up(0);
    settle().await;
    let waits = send(&link, &set(2, 1_000)).await;
    after(5).await;
    assert_eq!(waits.await.unwrap(), refused());
    after(100).await;
    assert_eq!(bench.calls(1), ["EVALSHA 01"]);
    bench.answer(1, 0, Ok(Value::Int(1)));

    let _sent = send(&link, &delete(3, 1_000)).await;
    bench.hang_up(1);
    settle().await;
    let _waits = send(&link, &set(3, 1_000)).await;
    after(5).await;
    assert_eq!(bench.calls(2), ["EVALSHA 03", "SET 03"]);
}

#[tokio::test(start_paused = true)]
async fn a_delete_without_an_answer_is_sent_on_the_next_connection_too() {
    let (bench, link) = rig([]);
    prove(&bench, &link, 0).await;
    let first = send(&link, &delete(1, 100)).await;
    let second = send(&link, &delete(2, 100)).await;
    after(100).await;
    assert_eq!(bench.calls(1), ["DELIFEQ 01", "DELIFEQ 02"]);
    bench.answer(1, 0, Ok(Value::Int(1)));
    bench.answer(1, 1, Ok(Value::Int(0)));
    // The second sending may have been first at the server: that nothing was there is no news then.
    bench.answer(0, 1, Ok(Value::Int(0)));
    assert_eq!(first.await.unwrap(), Err(Fault::Unknown(Cause::new(CauseKind::Timeout))));
    bench.answer(0, 2, Ok(Value::Int(1)));
    assert_eq!(second.await.unwrap(), Ok(Reply::Int(1)));
    assert_eq!(bench.dialled(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_delete_is_not_kept_for_ever_for_a_node_that_is_gone() {
    let (bench, link) = rig([vec![Dial::Accept], vec![Dial::Refuse; 100]].concat());
    prove(&bench, &link, 0).await;
    let _sent = send(&link, &delete(1, 1_000)).await;
    bench.hang_up(0);
    after(61_000).await;
    while bench.dialled() <= 101 {
        after(1_000).await;
    }
    prove(&bench, &link, 1).await;
    assert_eq!(bench.calls(1).len(), 1);
}
