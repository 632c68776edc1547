//! The system's package manager, where it may be used without a password.

use std::process::{Command, Stdio};

use crate::cargo::{execute, output};

/// Brings the lists of what the package mirror has up to date.
pub(super) fn update_lists() -> Result<(), String> {
    run("apt knows no Debian mirror yet", "apt-get update -q").ok_or("run `apt-get update` as root first")?
}

/// Says why, and runs a script of the shell as root. `None` if there is no apt-get, or no way to become root.
pub(super) fn run(reason: &str, script: &str) -> Option<Result<(), String>> {
    if !succeeds(Command::new("apt-get").arg("--version")) {
        return None;
    }
    let is_root = output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    let mut command = if is_root {
        Command::new("sh")
    } else if succeeds(Command::new("sudo").args(["-n", "true"])) {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "sh"]);
        sudo
    } else {
        return None;
    };
    println!("{reason}; helping with apt-get");
    Some(execute(command.args(["-c", script])))
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
