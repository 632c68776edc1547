//! The program that measures the machine alone.

use std::path::PathBuf;
use std::process::Command;

use crate::Failure;

/// Where it is: built beside this one.
pub(crate) fn program() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe()?.with_file_name("redlock-bench-core");
    if !program.is_file() {
        return Err(format!("{} was not built: run `cargo xtask bench`", program.display()).into());
    }
    Ok(program)
}

/// Runs it; it prints a line for each kind of round.
pub(crate) fn measure() -> Result<(), Failure> {
    let status = Command::new(program()?).status()?;
    if status.success() { Ok(()) } else { Err(format!("redlock-bench-core: {status}").into()) }
}

pub(crate) const HEAD: &str = "\
core, one round          | ns p50 | ns p99 | allocations";
