//! What the program says on standard error.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread;
use std::time::Duration;

/// Speaks on standard error, from a thread of its own: a reader that has stopped reading, such as a stalled
/// log collector, must not hold up a renewal, let alone the end of a command whose lease is lost.
///
/// Cheap to clone. What cannot be written is dropped.
#[derive(Clone)]
pub(crate) struct Voice {
    words: SyncSender<Word>,
    verbose: bool,
    terminal: bool,
}

enum Word {
    /// A line that stays.
    Line(String),
    /// A line that the next one replaces.
    Passing(String),
    /// All has been said; whoever listens is told.
    End(SyncSender<()>),
}

impl Voice {
    /// A voice that tells what happens if it is `verbose`, and what went wrong in any case.
    pub(crate) fn new(verbose: bool) -> Self {
        let (words, queue) = mpsc::sync_channel(QUEUE);
        // Without a thread nothing is said, which is no reason not to work.
        let _ = thread::Builder::new().name("voice".to_owned()).spawn(move || speak(&queue));
        Self { words, verbose, terminal: io::stderr().is_terminal() }
    }

    /// Says what everybody should know.
    pub(crate) fn say(&self, line: impl Into<String>) {
        self.send(Word::Line(line.into()));
    }

    /// Says what only a verbose program says.
    pub(crate) fn tell(&self, line: impl FnOnce() -> String) {
        if self.verbose {
            self.say(line());
        }
    }

    /// Says what interests whoever sits in front of a terminal, or asked for all of it.
    pub(crate) fn mention(&self, line: impl Into<String>) {
        if self.verbose || self.terminal {
            self.say(line);
        }
    }

    /// Shows a line that the next one replaces, on a terminal.
    pub(crate) fn show(&self, line: impl Into<String>) {
        if self.terminal {
            self.send(Word::Passing(line.into()));
        }
    }

    /// Takes away what [`show`](Self::show) has shown, before anybody else writes to the terminal.
    pub(crate) fn clear(&self) {
        if self.terminal {
            self.show(String::new());
            self.finish();
        }
    }

    pub(crate) const fn is_verbose(&self) -> bool {
        self.verbose
    }

    pub(crate) const fn is_on_terminal(&self) -> bool {
        self.terminal
    }

    /// Waits until all is written, but not for ever.
    pub(crate) fn finish(&self) {
        let (sender, written) = mpsc::sync_channel(1);
        if self.words.try_send(Word::End(sender)).is_ok() {
            // A time-out: nobody reads. Let them.
            let _ = written.recv_timeout(PATIENCE);
        }
    }

    fn send(&self, word: Word) {
        match self.words.try_send(word) {
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }
}

fn speak(words: &Receiver<Word>) {
    let mut passing = false;
    for word in words {
        let mut text = String::new();
        if passing {
            text.push_str(ERASE);
            passing = false;
        }
        match word {
            Word::Line(line) => text.push_str(&format!("redlock: {line}\n")),
            Word::Passing(line) if line.is_empty() => {}
            Word::Passing(line) => {
                passing = true;
                text.push_str(&format!("redlock: {line}"));
            }
            Word::End(listener) => {
                write(&text);
                let _ = listener.send(());
                continue;
            }
        }
        write(&text);
    }
}

/// Writes all of it at once, so that lines of several processes do not mix.
fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    // Where standard error is closed nothing can be said about that either.
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// To the beginning of the line, and erase it.
const ERASE: &str = "\r\x1b[K";

/// How many lines may wait to be written.
const QUEUE: usize = 256;

/// How long the end may wait for a reader.
const PATIENCE: Duration = Duration::from_millis(500);
