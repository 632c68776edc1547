//! Servers that answer like replicas.

use super::*;

/// Sends an acquire over this connection, and has it answered.
async fn ask(bench: &Bench, link: &Arc<Link<Bench>>, connection: usize, answer: Value) -> Sent {
    let sent = send(link, &set(99, 1_000_000)).await;
    let calls = bench.calls(connection).len();
    assert!(bench.answer(connection, calls - 1, Ok(answer)));
    settle().await;
    sent
}

const READONLY: &str = "READONLY You can't write against a read only replica.";

#[tokio::test(start_paused = true)]
async fn a_demoted_server_is_left_for_what_is_there_now() {
    for sign in [READONLY, "MASTERDOWN Link with MASTER is down", "ERR in a script: -READONLY You can't."] {
        let (bench, link) = rig([Dial::Accept, Dial::AcceptAfter(Duration::from_millis(50))]);
        prove(&bench, &link, 0).await;
        let owed = send(&link, &set(1, 1_000_000)).await;
        let refused = ask(&bench, &link, 0, said(sign)).await.await.unwrap();
        assert!(matches!(refused, Ok(Reply::Error(_))), "{refused:?}");
        assert_eq!(bench.dialled(), 2);

        // Until the new connection is there, the old one serves.
        ask(&bench, &link, 0, said(sign)).await.await.unwrap().unwrap();
        assert_eq!(bench.dialled(), 2, "one dial at a time");
        after(60).await;
        prove(&bench, &link, 1).await;
        assert_eq!((bench.dialled(), bench.dropped()), (2, 0), "the old one owes an answer");
        // The delete of what it may yet carry out follows it there.
        let delete = send(&link, &delete(1, 1_000_000)).await;
        assert_eq!(bench.calls(0).last().unwrap(), "DELIFEQ 01");
        assert_eq!(bench.calls(1).last().unwrap(), "DELIFEQ 01");
        bench.hang_up(0);
        settle().await;
        assert_eq!(owed.await.unwrap(), unknown(CauseKind::Disconnected, "broken pipe"));
        assert_eq!(bench.dropped(), 1);
        drop(delete);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lasting_replica_is_dialled_with_growing_pauses() {
    let (bench, link) = rig([]);
    for _ in 0..6_000 {
        let sent = send(&link, &set(1, 1_000_000)).await;
        // A dial is over at once here, so the last one that was made is in use.
        let connection = bench.dialled() - 1;
        let calls = bench.calls(connection).len();
        bench.answer(connection, calls - 1, Ok(said(READONLY)));
        assert!(matches!(sent.await.unwrap(), Ok(Reply::Error(_))));
        after(10).await;
    }
    let dialled = bench.dialled();
    assert!((10..100).contains(&dialled), "{dialled} dials in a minute");
    assert_eq!(bench.dropped(), dialled - 1);

    // Promoted after all, and demoted much later: the first dial comes at once again.
    after(10_000).await;
    prove(&bench, &link, bench.dialled() - 1).await;
    let before = bench.dialled();
    ask(&bench, &link, before - 1, said(READONLY)).await.await.unwrap().unwrap();
    assert_eq!(bench.dialled(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn with_nothing_else_to_be_found_a_replica_stays_in_use() {
    let (bench, link) = rig([Dial::Accept, Dial::Refuse, Dial::Hang, Dial::Panic]);
    for round in 0..4 {
        ask(&bench, &link, 0, said(READONLY)).await.await.unwrap().unwrap();
        after(5_000).await;
        assert_eq!(bench.dialled(), round + 2);
    }
    assert_eq!(bench.dropped(), 1, "superseded by the connection that was made at last");
    prove(&bench, &link, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_goes_away_meanwhile_is_replaced_as_always() {
    let (bench, link) = rig([Dial::Accept, Dial::AcceptAfter(Duration::from_millis(500))]);
    ask(&bench, &link, 0, said(READONLY)).await.await.unwrap().unwrap();
    let under_way = send(&link, &set(1, 1_000_000)).await;
    bench.hang_up(0);
    settle().await;
    assert_eq!(under_way.await.unwrap(), unknown(CauseKind::Disconnected, "broken pipe"));
    assert_eq!(bench.dialled(), 3);
    prove(&bench, &link, 1).await;
    after(600).await;
    assert_eq!(bench.dropped(), 2, "the lost one, and the one that came too late");
    prove(&bench, &link, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_closed_link_looks_for_no_primary() {
    let (bench, link) = rig([Dial::Accept, Dial::AcceptAfter(Duration::from_millis(500))]);
    ask(&bench, &link, 0, said(READONLY)).await.await.unwrap().unwrap();
    link.close();
    after(600).await;
    assert_eq!((bench.dialled(), bench.dropped()), (2, 1));
}
