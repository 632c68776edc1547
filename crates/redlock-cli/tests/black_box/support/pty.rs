//! A terminal, with a program in front of it and the test behind it.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use redlock_tests::harness::wait_until;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A session on a terminal of its own; its first program is killed when it is dropped.
pub(crate) struct Pty {
    keyboard: File,
    screen: Arc<Mutex<String>>,
    child: Child,
}

impl Pty {
    /// Starts a program as the first of a session, with the terminal for all of its streams.
    pub(crate) fn start(command: &Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let terminal = OpenOptions::new().read(true).write(true).open(name).unwrap();

        let mut session = Command::new("env");
        session
            .args([super::DEFAULT_SIGNALS, "setsid", "--ctty"])
            .arg(command.get_program())
            .args(command.get_args())
            .env("TERM", "dumb");
        for (variable, value) in command.get_envs() {
            match value {
                Some(value) => session.env(variable, value),
                None => session.env_remove(variable),
            };
        }
        let copy = || terminal.try_clone().unwrap();
        let child = session.stdin(copy()).stdout(copy()).stderr(copy()).spawn().unwrap();

        let keyboard = File::from(master);
        let screen = Arc::new(Mutex::new(String::new()));
        let mut output = keyboard.try_clone().unwrap();
        let shown = Arc::clone(&screen);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The end of the session is an error here.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shown.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { keyboard, screen, child }
    }

    /// Types; `\x03` is Ctrl-C, `\x1a` Ctrl-Z.
    pub(crate) fn type_in(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until `text` has appeared after all that was expected before, and returns what came before it.
    #[track_caller]
    pub(crate) fn expect(&self, text: &str) -> String {
        let place = || self.screen.lock().unwrap().find(text);
        let limit = Duration::from_secs(10);
        let seen = || self.screen.lock().unwrap().clone();
        let mut found = None;
        for _ in 0..limit.as_millis() / 10 {
            found = place();
            if found.is_some() {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let Some(found) = found else { panic!("{text:?} did not appear; what did: {:?}", seen()) };
        let mut screen = self.screen.lock().unwrap();
        let rest = screen.split_off(found + text.len());
        let mut before = std::mem::replace(&mut *screen, rest);
        before.truncate(found);
        before
    }

    /// Waits for the end of the first program, and returns its exit code.
    #[track_caller]
    pub(crate) fn finish(&mut self) -> i32 {
        let mut status = None;
        wait_until("the session has ended", Duration::from_secs(10), || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.and_then(|status| status.code()).unwrap_or(-1)
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
