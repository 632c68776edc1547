//! Keeps a server from outliving the test process.
//!
//! Between the test process and the server stands a small shell script. It is the server's parent, so it can
//! signal the server and collect it without ever hitting a stranger that was given the same process id. And
//! it reads a pipe whose other end only the test process holds: when that end closes, on purpose or because
//! the process died in whatever way, the script kills the server and removes its directory.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use super::super::clock::wait_until;

/// The script. Arguments: the server's directory, which it creates, and the server's command line. It takes
/// one word a line and answers each with one line.
const SCRIPT: &str = r#"
dir=$1
shift
pid=

# `jobs` makes the shell notice a server that ended by itself, whose process id is then no longer valid.
alive() {
  jobs >/dev/null 2>&1
  [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null
}

# Afterwards the process is gone for good, and its port is closed.
end() {
  if alive; then kill -KILL "$pid"; fi
  if [ -n "$pid" ]; then wait "$pid"; fi
  pid=
}

# Signals end the loop, and with it the server. A broken pipe must not end the script before it has cleaned up.
trap : HUP INT TERM PIPE

mkdir -m 700 "$dir" || exit 1
while read -r word; do
  case $word in
    start)
      "$@" </dev/null >>"$dir/log" 2>&1 &
      pid=$!
      echo "$pid"
      ;;
    alive) if alive; then echo yes; else echo no; fi ;;
    freeze) if alive && kill -STOP "$pid"; then echo yes; else echo no; fi ;;
    thaw) if alive && kill -CONT "$pid"; then echo yes; else echo no; fi ;;
    kill) end; echo yes ;;
  esac
done
end
rm -rf "$dir"
"#;

/// A server's parent process, with at most one server.
#[derive(Debug)]
pub(super) struct Supervisor {
    process: Child,
    /// `None` only while dropping.
    words: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    server: Option<u32>,
}

impl Supervisor {
    /// Starts the script, and no server yet.
    pub(super) fn new(dir: &Path, program: &OsStr, arguments: &[impl AsRef<OsStr>]) -> Self {
        let mut process = Command::new("sh")
            .args(["-c", SCRIPT, "redis-supervisor"])
            .arg(dir)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Whoever waits for the end of the tests' output must not wait for the script as well.
            .stderr(Stdio::null())
            // Ctrl-C at a terminal goes to the test process alone; the script learns of its end by the pipe.
            .process_group(0)
            .spawn()
            .expect("`sh` can be run");
        let words = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().expect("the output is piped"));
        Self { process, words, answers, server: None }
    }

    /// Starts the server and returns its process id. A server that is still running must be killed first.
    pub(super) fn start(&mut self) -> u32 {
        let answer = self.ask("start");
        let pid = answer.parse().unwrap_or_else(|_| panic!("not a process id: {answer:?}"));
        self.server = Some(pid);
        pid
    }

    /// Whether the server is there, frozen or not.
    pub(super) fn is_alive(&mut self) -> bool {
        self.ask("alive") == "yes"
    }

    /// Stops the server where it is. It has stopped when this returns. `false` when there is none.
    pub(super) fn freeze(&mut self) -> bool {
        let sent = self.ask("freeze") == "yes";
        if let Some(pid) = self.server.filter(|_| sent) {
            await_stop(pid);
        }
        sent
    }

    /// Lets a frozen server go on. `false` when there is none.
    pub(super) fn thaw(&mut self) -> bool {
        self.ask("thaw") == "yes"
    }

    /// Kills the server, frozen or not. It is gone when this returns.
    pub(super) fn kill(&mut self) {
        self.ask("kill");
        self.server = None;
    }

    fn ask(&mut self, word: &str) -> String {
        let mut answer = String::new();
        let asked = match &mut self.words {
            Some(words) => writeln!(words, "{word}").and_then(|()| self.answers.read_line(&mut answer)),
            None => Ok(0),
        };
        match asked {
            Ok(length) if length > 0 => answer.trim_end().to_owned(),
            other => panic!("the supervisor of a redis-server is gone: {other:?} to `{word}`"),
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.words = None;
        // The script ends by itself, and there is nobody left to tell if it did not.
        let _ = self.process.wait();
    }
}

/// A signal is delivered a moment after it was sent; this waits out the moment.
fn await_stop(pid: u32) {
    let stat = format!("/proc/{pid}/stat");
    if !Path::new(&stat).exists() {
        // Not Linux: no portable way to look, and the moment is microseconds.
        thread::sleep(Duration::from_millis(20));
        return;
    }
    wait_until("the server is frozen", Duration::from_secs(5), || {
        // The state is the letter behind the program's name, which is in parentheses.
        let state = fs::read_to_string(&stat).ok();
        state.and_then(|text| text.rsplit(") ").next().map(|rest| rest.starts_with('T'))).unwrap_or(true)
    });
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::{env, process};

    use super::*;

    /// Any program will do in place of a server.
    fn supervisor(name: &str, program: &str, arguments: &[&str]) -> (Supervisor, PathBuf) {
        let dir = env::temp_dir().join(format!("redlock-supervisor-{name}-{}", process::id()));
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        (Supervisor::new(&dir, OsStr::new(program), &arguments), dir)
    }

    #[test]
    fn child_is_started_frozen_killed_and_started_again() {
        let (mut supervisor, _) = supervisor("life", "sleep", &["100"]);
        assert!(!supervisor.is_alive());
        assert!(!supervisor.freeze());

        let first = supervisor.start();
        assert!(supervisor.is_alive());
        assert!(supervisor.freeze());
        assert!(supervisor.is_alive());
        assert!(supervisor.thaw());
        assert!(supervisor.freeze());
        supervisor.kill();
        assert!(!supervisor.is_alive());
        assert!(!supervisor.thaw());

        assert_ne!(supervisor.start(), first);
        assert!(supervisor.is_alive());
    }

    #[test]
    fn end_of_the_child_is_noticed() {
        let (mut supervisor, _) = supervisor("end", "true", &[]);
        supervisor.start();
        wait_until("the child has ended", Duration::from_secs(5), || !supervisor.is_alive());
        assert!(!supervisor.freeze());
        supervisor.kill();
    }

    #[test]
    fn child_and_directory_go_with_the_supervisor() {
        let (mut supervisor, dir) = supervisor("drop", "sleep", &["100"]);
        let pid = supervisor.start();
        supervisor.freeze();
        assert!(dir.is_dir());
        assert!(runs(pid));

        drop(supervisor);
        assert!(!dir.exists());
        assert!(!runs(pid));
    }

    #[test]
    fn closing_pipe_alone_ends_the_child() {
        let (mut supervisor, dir) = supervisor("pipe", "sleep", &["100"]);
        let pid = supervisor.start();
        // What the end of the test process does.
        supervisor.words = None;
        wait_until("the child is gone", Duration::from_secs(5), || !dir.exists() && !runs(pid));
    }

    fn runs(pid: u32) -> bool {
        let status = Command::new("sh").args(["-c", "kill -0 $0 2>/dev/null", &pid.to_string()]).status();
        status.unwrap().success()
    }
}
