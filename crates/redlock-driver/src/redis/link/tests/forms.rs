//! Servers that take compare commands, servers that take scripts, and servers that change their mind.

use super::super::super::testing::token;
use super::*;

/// What a server takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Takes {
    set_ifeq: bool,
    delifeq: bool,
    delex: bool,
    scripts: bool,
}

pub(super) const OLD: Takes = Takes { set_ifeq: false, delifeq: false, delex: false, scripts: true };
const VALKEY_8_1: Takes = Takes { set_ifeq: true, ..OLD };
const VALKEY_9: Takes = Takes { delifeq: true, ..VALKEY_8_1 };
const REDIS_8_4: Takes = Takes { delex: true, ..VALKEY_8_1 };

impl Takes {
    /// With scripts forbidden.
    const fn without_scripts(self) -> Self {
        Self { scripts: false, ..self }
    }

    fn answer(self, words: &[String]) -> Value {
        let verb = words[0].as_str();
        let unknown = || said(&format!("ERR unknown command '{verb}', with args beginning with: 'k' "));
        match verb {
            "SET" if words[3] == "NX" => Value::Okay,
            "SET" if self.set_ifeq => Value::Okay,
            "SET" => said("ERR syntax error"),
            "DELIFEQ" if self.delifeq && words.len() == 1 => {
                said("ERR wrong number of arguments for 'delifeq' command")
            }
            "DELIFEQ" if self.delifeq => Value::Int(1),
            "DELEX" if self.delex => Value::Int(1),
            "EVALSHA" if self.scripts => Value::Int(1),
            "EVALSHA" => said("NOPERM User u has no permissions to run the 'evalsha' command"),
            _ => unknown(),
        }
    }
}

/// Sends a command to a server that takes this, over this connection: what comes of it, and which calls it
/// took.
async fn ask(
    (bench, link): &(Bench, Arc<Link<Bench>>),
    connection: usize,
    takes: Takes,
    command: &Command,
) -> (Result<Reply, Fault>, Vec<String>) {
    let before = bench.calls(connection).len();
    let sent = send(link, command).await;
    for call in before.. {
        bench.answer(connection, call, Ok(takes.answer(&bench.words(connection, call))));
        settle().await;
        if sent.is_finished() {
            break;
        }
        assert!(bench.calls(connection).len() > call + 1, "neither answered nor sent on");
    }
    (sent.await.unwrap(), bench.calls(connection)[before..].to_vec())
}

/// The same with a command that the server carries out.
pub(super) async fn done(
    rig: &(Bench, Arc<Link<Bench>>),
    connection: usize,
    takes: Takes,
    command: &Command,
) -> Vec<String> {
    let (reply, calls) = ask(rig, connection, takes, command).await;
    assert_eq!(reply, Ok(Reply::Int(1)), "{calls:?}");
    calls
}

/// The calls of one command.
type Calls = &'static [&'static str];

/// One to come that has them all.
const ALL: Takes = Takes { delex: true, ..VALKEY_9 };

#[tokio::test(start_paused = true)]
async fn every_server_is_spoken_to_in_its_own_way_and_looked_for_once() {
    let (delete, extend) = (delete(1, 1_000), extend(1, 1_000));
    let by_script: [Calls; 3] = [&["DELIFEQ 01", "DELEX 01", "EVALSHA 01"], &["EVALSHA 01"], &["EVALSHA 01"]];
    let by_valkey: [Calls; 3] = [&["DELIFEQ 01"], &["DELIFEQ 01"], &["SETIFEQ 01"]];
    let table: [(Takes, [Calls; 3]); 6] = [
        (OLD, by_script),
        (VALKEY_8_1, by_script),
        (VALKEY_9, by_valkey),
        (VALKEY_9.without_scripts(), by_valkey),
        (ALL, by_valkey),
        (REDIS_8_4, [&["DELIFEQ 01", "DELEX 01"], &["DELEX 01"], &["EVALSHA 01"]]),
    ];
    for (takes, [first_delete, next_delete, extends]) in table {
        let rig = rig([]);
        assert_eq!(done(&rig, 0, takes, &delete).await, first_delete, "{takes:?}");
        assert_eq!(done(&rig, 0, takes, &delete).await, next_delete, "{takes:?}");
        assert_eq!(done(&rig, 0, takes, &extend).await, extends, "{takes:?}");
        assert_eq!(done(&rig, 0, takes, &extend).await, extends, "{takes:?}");
        assert_eq!(rig.0.dialled(), 1);
    }
}

/// Before the first release an extension asks in a way that does nothing.
#[tokio::test(start_paused = true)]
async fn an_extension_that_comes_first_asks_once() {
    let (delete, extend) = (delete(1, 1_000), extend(1, 1_000));
    let by_script: [Calls; 3] = [&["DELIFEQ -", "EVALSHA 01"], &["EVALSHA 01"], &["DELEX 01", "EVALSHA 01"]];
    let by_valkey: [Calls; 3] = [&["DELIFEQ -", "SETIFEQ 01"], &["SETIFEQ 01"], &["DELIFEQ 01"]];
    let table: [(Takes, [Calls; 3]); 6] = [
        (OLD, by_script),
        (VALKEY_8_1, by_script),
        (VALKEY_9, by_valkey),
        (VALKEY_9.without_scripts(), by_valkey),
        (ALL, by_valkey),
        (REDIS_8_4, [&["DELIFEQ -", "EVALSHA 01"], &["EVALSHA 01"], &["DELEX 01"]]),
    ];
    for (takes, [first_extend, next_extend, deletes]) in table {
        let rig = rig([]);
        assert_eq!(done(&rig, 0, takes, &extend).await, first_extend, "{takes:?}");
        assert_eq!(done(&rig, 0, takes, &extend).await, next_extend, "{takes:?}");
        assert_eq!(done(&rig, 0, takes, &delete).await, deletes, "{takes:?}");
    }
}

/// There it would corrupt the server's memory.
#[tokio::test(start_paused = true)]
async fn a_server_without_delifeq_is_never_sent_a_set_if_equal() {
    let (delete, extend) = (delete(1, 1_000), extend(1, 1_000));
    for takes in [OLD, VALKEY_8_1, REDIS_8_4] {
        for takes in [takes, takes.without_scripts()] {
            for order in [[&delete, &extend, &extend], [&extend, &delete, &extend]] {
                let rig = rig([]);
                for command in order {
                    let (reply, _) = ask(&rig, 0, takes, command).await;
                    let refused = !takes.scripts && (command == &extend || !takes.delex);
                    match reply {
                        Ok(Reply::Error(error)) => assert!(refused && error.code() == "NOPERM", "{error:?}"),
                        reply => assert!(!refused && reply == Ok(Reply::Int(1)), "{reply:?}"),
                    }
                }
                let calls = rig.0.calls(0);
                assert!(!calls.contains(&"SETIFEQ 01".to_owned()), "{takes:?}: {calls:?}");
            }
        }
    }
    // What was there on the last connection need not be there on this one.
    let rig = rig([]);
    done(&rig, 0, VALKEY_9, &delete).await;
    done(&rig, 0, VALKEY_9, &extend).await;
    let lost = send(&rig.1, &set(2, 1_000)).await;
    rig.0.hang_up(0);
    settle().await;
    lost.await.unwrap().unwrap_err();
    assert_eq!(done(&rig, 1, REDIS_8_4, &extend).await, ["DELIFEQ -", "EVALSHA 01"]);
}

/// An answer that is no news leaves the script, and the question.
#[tokio::test(start_paused = true)]
async fn what_a_probe_does_not_tell_is_not_believed() {
    for answer in
        [said("LOADING"), said("NOPERM no"), said("ERR any"), Value::Int(0), Value::Okay, Value::Nil]
    {
        let rig = rig([]);
        let sent = send(&rig.1, &extend(1, 1_000)).await;
        rig.0.answer(0, 0, Ok(answer.clone()));
        settle().await;
        rig.0.answer(0, 1, Ok(Value::Int(1)));
        assert_eq!(sent.await.unwrap(), Ok(Reply::Int(1)));
        assert_eq!(rig.0.calls(0), ["DELIFEQ -", "EVALSHA 01"], "{answer:?}");
        assert_eq!(done(&rig, 0, VALKEY_9, &extend(1, 1_000)).await, ["DELIFEQ -", "SETIFEQ 01"]);
    }
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_allowed_the_answer_names_the_right_and_nothing_is_remembered() {
    let rig = rig([]);
    for takes in [OLD, VALKEY_8_1].map(Takes::without_scripts) {
        for _ in 0..2 {
            let (reply, mut calls) = ask(&rig, 0, takes, &delete(1, 1_000)).await;
            calls.sort();
            assert_eq!(calls, ["DELEX 01", "DELIFEQ 01", "EVALSHA 01"]);
            let denied = "User u has no permissions to run the 'evalsha' command";
            assert_eq!(reply, Ok(Reply::Error(ServerError::new("NOPERM", denied))));
        }
    }
    // The right is granted.
    let calls = done(&rig, 0, VALKEY_9.without_scripts(), &delete(1, 1_000)).await;
    assert_eq!(calls, ["DELEX 01", "EVALSHA 01", "DELIFEQ 01"]);
    assert_eq!(done(&rig, 0, VALKEY_9.without_scripts(), &delete(1, 1_000)).await, ["DELIFEQ 01"]);
}

#[tokio::test(start_paused = true)]
async fn rights_that_change_are_noticed() {
    let rig = rig([]);
    let (delete, extend) = (delete(1, 1_000), extend(1, 1_000));
    done(&rig, 0, OLD, &delete).await;
    done(&rig, 0, OLD, &extend).await;
    let now = VALKEY_9.without_scripts();
    assert_eq!(done(&rig, 0, now, &delete).await, ["EVALSHA 01", "DELEX 01", "DELIFEQ 01"]);
    assert_eq!(done(&rig, 0, now, &delete).await, ["DELIFEQ 01"]);
    assert_eq!(done(&rig, 0, now, &extend).await, ["SETIFEQ 01"]);
    let now = REDIS_8_4.without_scripts();
    assert_eq!(done(&rig, 0, now, &delete).await, ["DELIFEQ 01", "DELEX 01"]);
}

#[tokio::test(start_paused = true)]
async fn the_next_connection_begins_with_what_is_known_and_falls_back() {
    let (delete, extend) = (delete(1, 1_000_000), extend(1, 1_000_000));
    // What the server takes before and after, and the first calls on the second connection.
    let table: [(Takes, Takes, Calls, Calls); 6] = [
        (REDIS_8_4, REDIS_8_4, &["DELEX 01"], &["EVALSHA 01"]),
        (OLD, OLD, &["EVALSHA 01"], &["EVALSHA 01"]),
        (VALKEY_9, VALKEY_9, &["DELIFEQ 01"], &["SETIFEQ 01"]),
        (VALKEY_9, OLD, &["DELIFEQ 01", "DELEX 01", "EVALSHA 01"], &["EVALSHA 01"]),
        (VALKEY_9, VALKEY_8_1, &["DELIFEQ 01", "DELEX 01", "EVALSHA 01"], &["EVALSHA 01"]),
        (REDIS_8_4, VALKEY_9, &["DELEX 01", "DELIFEQ 01"], &["SETIFEQ 01"]),
    ];
    for (before, after, deletes, extends) in table {
        let rig = rig([]);
        done(&rig, 0, before, &delete).await;
        done(&rig, 0, before, &extend).await;
        let lost = send(&rig.1, &set(2, 1_000_000)).await;
        rig.0.hang_up(0);
        settle().await;
        lost.await.unwrap().unwrap_err();
        assert_eq!(done(&rig, 1, after, &delete).await, deletes, "{before:?}, {after:?}");
        assert_eq!(done(&rig, 1, after, &extend).await, extends, "{before:?}, {after:?}");
        assert_eq!(rig.0.dialled(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn scripts_that_are_known_to_be_forbidden_are_not_asked_for_on_the_next_connection() {
    let rig = rig([]);
    let server = VALKEY_9.without_scripts();
    done(&rig, 0, server, &delete(1, 1_000)).await;
    let lost = send(&rig.1, &set(2, 1_000)).await;
    rig.0.hang_up(0);
    settle().await;
    lost.await.unwrap().unwrap_err();
    assert_eq!(done(&rig, 1, server, &extend(1, 1_000)).await, ["DELIFEQ -", "SETIFEQ 01"]);
}

#[tokio::test(start_paused = true)]
async fn a_superseding_connection_knows_it_too() {
    let rig = rig([]);
    done(&rig, 0, REDIS_8_4, &delete(1, 1_000)).await;
    let readonly = send(&rig.1, &set(2, 1_000)).await;
    rig.0.answer(0, 2, Ok(said("READONLY You can't write against a read only replica.")));
    settle().await;
    readonly.await.unwrap().unwrap();
    assert_eq!(done(&rig, 1, REDIS_8_4, &delete(1, 1_000)).await, ["DELEX 01"]);
}

#[tokio::test(start_paused = true)]
async fn a_mixed_set_is_several_servers() {
    let (old, new) = (rig([]), rig([]));
    for _ in 0..2 {
        done(&old, 0, OLD, &delete(1, 1_000)).await;
        done(&new, 0, VALKEY_9, &delete(1, 1_000)).await;
    }
    assert_eq!(old.0.calls(0), ["DELIFEQ 01", "DELEX 01", "EVALSHA 01", "EVALSHA 01"]);
    assert_eq!(new.0.calls(0), ["DELIFEQ 01", "DELIFEQ 01"]);
}

#[tokio::test(start_paused = true)]
async fn the_first_commands_at_once_may_each_try() {
    let (bench, link) = rig([]);
    let first = send(&link, &delete(1, 1_000)).await;
    let second = send(&link, &delete(2, 1_000)).await;
    for call in 0..6 {
        let answer = OLD.answer(&bench.words(0, call));
        bench.answer(0, call, Ok(answer));
        settle().await;
    }
    for sent in [first, second] {
        assert_eq!(sent.await.unwrap(), Ok(Reply::Int(1)));
    }
    assert_eq!(
        bench.calls(0),
        ["DELIFEQ 01", "DELIFEQ 02", "DELEX 01", "DELEX 02", "EVALSHA 01", "EVALSHA 02"]
    );
    let rig = (bench, link);
    assert_eq!(done(&rig, 0, OLD, &delete(3, 1_000)).await, ["EVALSHA 03"]);
}

/// Some proxies hang up on what they do not know, or have words of their own for it.
#[tokio::test(start_paused = true)]
async fn a_trial_that_ends_in_doubt_is_not_repeated() {
    let (bench, link) = rig([]);
    prove(&bench, &link, 0).await;
    let sent = send(&link, &delete(1, 1_000_000)).await;
    bench.hang_up(0);
    settle().await;
    assert_eq!(sent.await.unwrap(), unknown(CauseKind::Disconnected, "broken pipe"));
    assert_eq!(bench.calls(1), ["EVALSHA 01"], "sent once more, in the form that everybody takes");

    let odd = [said("unsupported command 'delifeq'"), said("ERR not allowed here"), Value::Okay, Value::Nil];
    for answer in odd {
        let rig = rig([]);
        let sent = send(&rig.1, &delete(1, 1_000)).await;
        rig.0.answer(0, 0, Ok(answer.clone()));
        let vote = redlock_core::interpret(&delete(1, 0).intent, sent.await.unwrap());
        assert!(matches!(vote, redlock_core::Vote::Fault(Fault::Unknown(_))), "{answer:?}: {vote:?}");
        assert_eq!(done(&rig, 0, OLD, &delete(1, 1_000)).await, ["EVALSHA 01"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_of_the_server_says_nothing_about_its_commands() {
    let states = ["LOADING", "READONLY", "MASTERDOWN", "NOAUTH", "BUSY", "CLUSTERDOWN", "MOVED", "TRYAGAIN"];
    for code in states {
        let rig = rig([]);
        let sent = send(&rig.1, &delete(1, 1_000)).await;
        rig.0.answer(0, 0, Ok(said(&format!("{code} for now"))));
        assert_eq!(sent.await.unwrap(), Ok(Reply::Error(ServerError::new(code, "for now"))));
        let connection = rig.0.dialled() - 1;
        assert_eq!(done(&rig, connection, VALKEY_9, &delete(1, 1_000)).await, ["DELIFEQ 01"], "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_known_to_work_is_kept_through_faults() {
    let rig = rig([]);
    done(&rig, 0, VALKEY_9, &delete(1, 1_000)).await;
    for answer in [said("ERR whatever"), said("LOADING"), said("WRONGTYPE"), Value::Nil] {
        let sent = send(&rig.1, &delete(1, 1_000)).await;
        rig.0.answer(0, rig.0.calls(0).len() - 1, Ok(answer));
        sent.await.unwrap().unwrap();
    }
    assert_eq!(done(&rig, 0, VALKEY_9, &delete(1, 1_000)).await, ["DELIFEQ 01"]);
}

/// At its memory limit a server refuses every SET, but lets a script change the time to live.
#[tokio::test(start_paused = true)]
async fn at_the_memory_limit_a_script_extends() {
    let oom = || said("OOM command not allowed when used memory > 'maxmemory'.");
    let rig = rig([]);
    done(&rig, 0, VALKEY_9, &extend(1, 1_000)).await;
    for (script, code) in [(Value::Int(1), None), (said("NOPERM no scripts"), Some("OOM"))] {
        let before = rig.0.calls(0).len();
        let sent = send(&rig.1, &extend(1, 1_000)).await;
        rig.0.answer(0, before, Ok(oom()));
        settle().await;
        rig.0.answer(0, before + 1, Ok(script));
        assert_eq!(rig.0.calls(0)[before..], ["SETIFEQ 01", "EVALSHA 01"]);
        match (sent.await.unwrap(), code) {
            (Ok(Reply::Int(1)), None) => {}
            // Without the right to scripts it is the memory that is in the way.
            (Ok(Reply::Error(error)), Some(code)) => assert_eq!(error.code(), code),
            (reply, _) => panic!("{reply:?}"),
        }
        // That was no answer to what the server knows.
        assert_eq!(done(&rig, 0, VALKEY_9, &extend(1, 1_000)).await, ["SETIFEQ 01"]);
    }
}

/// A key of another type is a fault of unknown outcome in every form, and no reason to try another.
#[tokio::test(start_paused = true)]
async fn a_key_of_another_type_is_the_same_fault_in_every_form() {
    let lines = [
        (VALKEY_9, "WRONGTYPE Operation against a key holding the wrong kind of value"),
        (REDIS_8_4, "ERR Key should be of string type if conditions are specified"),
        (
            OLD,
            "WRONGTYPE Operation against a key holding the wrong kind of value script: 6f, on @user_script:1.",
        ),
        (OLD, "ERR Error running script (call to f_6f): @user_script:1: WRONGTYPE Operation against a key"),
    ];
    for (takes, line) in lines {
        let rig = rig([]);
        for command in [delete(1, 1_000), extend(1, 1_000)] {
            done(&rig, 0, takes, &command).await;
            let before = rig.0.calls(0).len();
            let sent = send(&rig.1, &command).await;
            rig.0.answer(0, before, Ok(said(line)));
            let vote = redlock_core::interpret(&command.intent, sent.await.unwrap());
            assert!(matches!(vote, redlock_core::Vote::Fault(Fault::Unknown(_))), "{line}: {vote:?}");
            assert_eq!(rig.0.calls(0).len(), before + 1, "{line}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_extension_is_a_yes_by_its_own_forms_answer_only() {
    let other = said("ERR any");
    for (takes, yes, no, odd) in [
        (VALKEY_9, Value::Okay, Value::Nil, [Value::Int(1), Value::Int(0), other.clone()]),
        (OLD, Value::Int(1), Value::Int(0), [Value::Okay, Value::Nil, other]),
    ] {
        let rig = rig([]);
        done(&rig, 0, takes, &extend(1, 1_000)).await;
        let answered = async |value: Value| {
            let sent = send(&rig.1, &extend(1, 1_000)).await;
            rig.0.answer(0, rig.0.calls(0).len() - 1, Ok(value));
            redlock_core::interpret(&extend(1, 0).intent, sent.await.unwrap())
        };
        assert_eq!(answered(yes).await, redlock_core::Vote::Yes(None));
        assert_eq!(answered(no).await, redlock_core::Vote::No);
        for value in odd {
            let vote = answered(value.clone()).await;
            assert!(matches!(vote, redlock_core::Vote::Fault(Fault::Unknown(_))), "{value:?}: {vote:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_never_tells_the_token() {
    let rig = rig([]);
    let hex = token(1).to_hex().as_str().to_owned();
    let lines = [
        format!("ERR unknown command `DELIFEQ`, with args beginning with: `k`, `{hex}`, "),
        format!("ERR unknown command 'DELEX', with args beginning with: 'k' 'IFEQ' '{hex}' "),
        format!("NOPERM who is {hex}?"),
    ];
    let sent = send(&rig.1, &delete(1, 1_000)).await;
    for (call, line) in lines.iter().enumerate() {
        rig.0.answer(0, call, Ok(said(line)));
        settle().await;
    }
    assert_eq!(sent.await.unwrap(), Ok(Reply::Error(ServerError::new("NOPERM", ""))));
}
