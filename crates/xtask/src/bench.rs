//! `cargo xtask bench`: what a lease costs, beside what it cannot cost less than.

use crate::cargo::{cargo, execute};
use crate::servers;

/// Runs the bench against servers that it starts itself. It reads its own options.
pub(crate) fn run(options: &[String]) -> Result<(), String> {
    let servers = servers::provide()?;
    println!("{}", servers.description);
    let mut command = cargo(&["run", "--release", "--locked", "--quiet", "--package", "redlock-bench", "--"]);
    if let Some(program) = &servers.program {
        command.env("REDLOCK_REDIS_SERVER", program);
    }
    execute(command.args(options))
}
