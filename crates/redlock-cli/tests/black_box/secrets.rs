//! Passwords and tokens are seen by nobody who should not.

use std::fs;

use redlock_tests::harness::{Server, may_own_servers, unique, unused_address};

use crate::support::{Files, Finished, Running, redlock};

const SECRET: &str = "open-sesame-3141";

#[test]
fn a_password_on_the_command_line_is_refused_and_not_repeated() {
    let url = format!("redis://user:{SECRET}@127.0.0.1:1");
    for subcommand in ["run", "status"] {
        let mut command = redlock();
        command.args([subcommand, "--node", &url, "--resource", "r"]);
        if subcommand == "run" {
            command.args(["--", "true"]);
        }
        let finished = Finished::of(&mut command);
        assert_eq!(finished.code, 64);
        assert!(finished.stderr.contains("REDLOCK_PASSWORD"), "{finished:?}");
        assert!(!finished.stderr.contains(SECRET), "{finished:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn neither_password_nor_token_is_in_the_process_list_or_the_output() {
    if !may_own_servers() {
        return;
    }
    let node = Server::builder().password(SECRET).start();
    let (resource, files) = (unique("cli:secret"), Files::new());
    let script = format!(
        "echo $$ >{}; echo $REDLOCK_TOKEN >{}; while [ ! -e {} ]; do sleep 0.02; done",
        files.text("pid"),
        files.text("token"),
        files.text("go")
    );
    let mut command = redlock();
    command.args([
        "run",
        "--resource",
        &resource,
        "--verbose",
        "--ttl",
        "2s",
        "--renew",
        "50ms",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    command.env("REDLOCK_NODES", format!("redis://{}", node.address())).env("REDLOCK_PASSWORD", SECRET);
    let mut running = Running::start(&mut command);
    let pid = files.await_pid("pid");
    let token = files.await_line("token");
    for pid in [pid, running.pid()] {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        let line = String::from_utf8_lossy(&line);
        assert!(line.contains("sh") && !line.contains(SECRET) && !line.contains(&token), "{line}");
    }
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
    assert!(!String::from_utf8_lossy(&environment).contains(SECRET));
    std::thread::sleep(crate::support::ms(250));
    fs::write(files.path("go"), "").unwrap();
    let finished = running.finish();
    assert_eq!(finished.code, 0);
    assert!(finished.stderr.contains("renewed"), "{finished:?}");
    assert!(!finished.stderr.contains(SECRET) && !finished.stderr.contains(&token), "{finished:?}");
}

#[test]
fn a_wrong_password_is_not_repeated_in_the_error() {
    if !may_own_servers() {
        return;
    }
    let node = Server::builder().password("another").start();
    let nodes = [node.address().to_owned(), unused_address()];
    for (address, word) in nodes.iter().zip(["authentication failed", "refused"]) {
        let list = format!("redis://user:{SECRET}@{address}");
        for words in [
            &["run", "--verbose", "--resource", "r", "--", "true"][..],
            &["status", "--resource", "r"],
            &["check"],
            &["bench"],
        ] {
            let finished = Finished::of(redlock().args(words).env("REDLOCK_NODES", &list));
            assert_ne!(finished.code, 0, "{words:?}");
            let all = format!("{}{}", finished.stdout, finished.stderr);
            assert!(!all.contains(SECRET), "{words:?}: {finished:?}");
            assert!(words[0] == "bench" || all.contains(word), "{words:?}: {finished:?}");
        }
    }
}
