//! `cargo xtask sim`: the simulator, built for speed.

use crate::cargo::{cargo, execute};

/// Runs the simulator. It reads its own options.
pub(crate) fn run(options: &[String]) -> Result<(), String> {
    let mut command = cargo(&["run", "--profile", "simulation", "--locked", "--quiet"]);
    execute(command.args(["--package", "redlock-sim", "--"]).args(options))
}
