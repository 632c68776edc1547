//! Libraries of a newer Debian beside those of the system, for programs that were built for a newer system.
//!
//! Apt gets a configuration of its own, so nothing of the system is changed, and the mirror is the one that the
//! system uses. The packages are only unpacked.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::packages;
use crate::cargo::output;

/// Libraries out of packages of a suite.
#[derive(Debug)]
pub(super) struct Libraries {
    suite: &'static str,
    packages: &'static [&'static str],
}

/// What C and C++ programs need that were built with glibc up to 2.41 and GCC up to 14.
pub(super) const NEWER: Libraries =
    Libraries { suite: "trixie", packages: &["libc6", "libstdc++6", "libgcc-s1"] };

impl Libraries {
    /// A name for the folder of what is in it.
    pub(super) fn folder(&self) -> String {
        format!("debian-{}-libraries", self.suite)
    }

    /// The dynamic loader among them.
    pub(super) fn loader(&self, folder: &Path) -> PathBuf {
        folder.join("usr/lib64/ld-linux-x86-64.so.2")
    }

    /// Where the libraries are.
    pub(super) fn directory(&self, folder: &Path) -> PathBuf {
        folder.join("usr/lib/x86_64-linux-gnu")
    }

    /// Fetches and unpacks them into `folder`.
    pub(super) fn fetch(&self, folder: &Path) -> Result<(), String> {
        println!(
            "  fetching {} of Debian's {} from the package mirror",
            self.packages.join(", "),
            self.suite
        );
        let fetched = self.fetch_packages(folder).map_err(|reason| {
            format!("libraries of Debian's {} cannot be had from the package mirror\n{reason}", self.suite)
        });
        let apt = fetched?;
        let (loader, directory) = (self.loader(folder), self.directory(folder));
        if let Some(missing) = [&loader, &directory.join("libstdc++.so.6")].into_iter().find(|f| !f.exists())
        {
            return Err(format!("no {} in the packages of Debian's {}", missing.display(), self.suite));
        }
        fs::remove_dir_all(&apt).map_err(|error| format!("{}: {error}", apt.display()))
    }

    /// Returns the directory of what was needed on the way.
    fn fetch_packages(&self, folder: &Path) -> Result<PathBuf, String> {
        for tool in ["apt-get", "dpkg-deb"] {
            output(Command::new(tool).arg("--version"))
                .map_err(|reason| format!("{reason}\nThis needs Debian or Ubuntu, or their {tool}."))?;
        }
        if !Path::new(KEYRING).exists() {
            return Err(format!(
                "{KEYRING} is not there\nInstall it: `apt-get install debian-archive-keyring`"
            ));
        }
        let mirror = mirror()?;
        let apt = folder.join("apt");
        let text = |error: std::io::Error| format!("{}: {error}", apt.display());
        for directory in ["lists/partial", "cache/archives/partial", "preferences", "packages"] {
            fs::create_dir_all(apt.join(directory)).map_err(text)?;
        }
        let source = format!("deb [signed-by={KEYRING}] {mirror} {} main\n", self.suite);
        fs::write(apt.join("status"), "").map_err(text)?;
        fs::write(apt.join("sources.list"), source).map_err(text)?;
        let config = apt.join("apt.conf");
        fs::write(&config, configuration(&apt)).map_err(text)?;

        let apt_get = || {
            let mut command = Command::new("apt-get");
            command.env("APT_CONFIG", &config).arg("-qq");
            command
        };
        output(apt_get().arg("update"))?;
        // Each package by itself, without those that it depends on.
        output(apt_get().arg("download").args(self.packages).current_dir(apt.join("packages")))?;
        let packages = fs::read_dir(apt.join("packages")).map_err(text)?;
        for package in packages.flatten().map(|entry| entry.path()) {
            if package.extension() == Some(OsStr::new("deb")) {
                output(Command::new("dpkg-deb").arg("-x").args([&package, folder]))?;
            }
        }
        Ok(apt)
    }
}

/// Everything in `directory`, and nothing of the system's but what it trusts and how it reaches a mirror.
fn configuration(directory: &Path) -> String {
    let directory = directory.display();
    format!(
        "Dir::State \"{directory}\";\n\
         Dir::State::status \"{directory}/status\";\n\
         Dir::Cache \"{directory}/cache\";\n\
         Dir::Etc::sourcelist \"{directory}/sources.list\";\n\
         Dir::Etc::sourceparts \"-\";\n\
         Dir::Etc::preferences \"-\";\n\
         Dir::Etc::preferencesparts \"{directory}/preferences\";\n\
         APT::Architecture \"amd64\";\n\
         APT::Architectures \"amd64\";\n\
         APT::Sandbox::User \"\";\n\
         Acquire::Languages \"none\";\n\
         APT::Update::Error-Mode \"any\";\n\
         Acquire::Retries \"2\";\n\
         Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n"
    )
}

/// The address of the Debian mirror that the system uses.
fn mirror() -> Result<String, String> {
    let ask = || {
        let format = "$(ORIGIN)/$(LABEL)/$(CREATED_BY) $(REPO_URI)";
        output(Command::new("apt-get").args(["indextargets", "--format", format]))
            .map(|list| mirror_in(&list))
    };
    if let Some(mirror) = ask()? {
        return Ok(mirror);
    }
    // A fresh machine has not been told yet what its mirror has.
    packages::update_lists()?;
    ask()?.ok_or_else(|| "apt knows no Debian mirror; is there one in its sources.list?".to_owned())
}

/// Security updates have a mirror of their own, with another label.
fn mirror_in(list: &str) -> Option<String> {
    list.lines().find_map(|line| line.strip_prefix("Debian/Debian/Packages ")).map(str::to_owned)
}

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_that_of_the_main_archive() {
        let list = "Debian/Debian-Security/Packages http://mirror.invalid/debian-security/\n\
                    Debian/Debian/DEP-11 http://mirror.invalid/other/\n\
                    Debian/Debian/Packages http://mirror.invalid/debian/\n";
        assert_eq!(mirror_in(list).as_deref(), Some("http://mirror.invalid/debian/"));
        assert_eq!(mirror_in("Ubuntu/Ubuntu/Packages http://mirror.invalid/ubuntu/\n"), None);
        assert_eq!(mirror_in(""), None);
    }

    #[test]
    fn apt_works_in_a_directory_of_its_own() {
        let config = configuration(Path::new("/a b"));
        assert!(config.contains("Dir::State::status \"/a b/status\";\n"), "{config}");
        assert!(config.contains("Dir::Etc::sourceparts \"-\";\n"), "{config}");
    }
}
