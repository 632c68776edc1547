//! `cargo xtask bench`: what a lease costs, beside what it cannot cost less than.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use crate::cargo::{cargo, execute, workspace_root};
use crate::servers;

/// Runs the bench against servers that it starts itself. It reads its own options.
pub(crate) fn run(options: &[String]) -> Result<(), String> {
    let counted = options.iter().any(|option| option == "--instructions");
    // Before a build that takes minutes.
    if counted && Command::new("valgrind").arg("--version").output().is_err() {
        return Err("counting instructions takes valgrind: apt-get install valgrind, or the like".to_owned());
    }
    let servers = servers::provide()?;
    println!("{}", servers.description);
    // `cargo run` builds only what it runs, and that runs the other programs of the package.
    for task in ["build", "run"] {
        let mut command = cargo(&[task, "--release", "--locked", "--quiet", "--package", "redlock-bench"]);
        if counted {
            // What rustix does to find the kernel's clock does not work under valgrind. Flags change every
            // dependency, hence a directory of their own.
            command.env("RUSTFLAGS", "--cfg=rustix_use_libc");
            command.arg("--target-dir").arg(target().join("instructions"));
        }
        if let Some(program) = &servers.program {
            command.env("REDLOCK_REDIS_SERVER", program);
        }
        if task == "run" {
            command.arg("--").args(options);
        }
        execute(&mut command)?;
    }
    Ok(())
}

/// The directory that cargo builds in.
fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace_root().join("target"), PathBuf::from)
}
