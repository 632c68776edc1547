//! Which dependencies the crates may have.

use crate::cargo::{cargo, output};

/// The core runs anywhere, because it needs next to nothing: errors from `thiserror` (with the crates of its
/// macro, which run at build time only) and the traits of `rand`, to be given a generator.
const CORE_MAY_USE: [&str; 9] = [
    "redlock-core",
    "rand",
    "rand_core",
    "thiserror",
    "thiserror-impl",
    "proc-macro2",
    "quote",
    "syn",
    "unicode-ident",
];

/// Checks the rules, and says which lines of `cargo tree` break them.
pub(crate) fn check() -> Result<(), String> {
    let tree = tree("redlock-core", "normal")?;
    fail_on("redlock-core must not depend on", strangers(&tree, &CORE_MAY_USE))?;

    // The `redis` crate refuses to compile `aio` without a feature that chooses a runtime, and the driver
    // must not choose one. Features that only tests turn on do not reach those who depend on it.
    let tree = self::tree("redlock-driver", "no-dev")?;
    let aio = with_feature(&tree, "redis", "aio");
    fail_on("redlock-driver must leave the choice of a runtime to the adapters", aio)?;

    // The `redis` crate uses some of tokio's channels on every runtime. What must not be there is tokio's own
    // runtime.
    for adapter in ["redlock-async-std", "redlock-smol"] {
        let tree = self::tree(adapter, "no-dev")?;
        fail_on(&format!("{adapter} must not bring a tokio runtime"), with_feature(&tree, "tokio", "rt"))?;
    }
    Ok(())
}

/// One line for each dependency: `name version (source) [features]`.
fn tree(package: &str, edges: &str) -> Result<String, String> {
    let format = ["--prefix", "none", "--format", "{p} [{f}]"];
    output(cargo(&["tree", "--locked", "-p", package, "-e", edges]).args(format))
}

fn fail_on(rule: &str, lines: Vec<&str>) -> Result<(), String> {
    if lines.is_empty() { Ok(()) } else { Err(format!("{rule}:\n  {}", lines.join("\n  "))) }
}

/// The lines of the packages that are not `allowed`.
fn strangers<'a>(tree: &'a str, allowed: &[&str]) -> Vec<&'a str> {
    let name = |line: &'a str| line.split(' ').next().unwrap_or_default();
    tree.lines().filter(|line| !line.is_empty() && !allowed.contains(&name(line))).collect()
}

/// The lines of a package that has this feature.
fn with_feature<'a>(tree: &'a str, package: &str, feature: &str) -> Vec<&'a str> {
    let has_feature = |line: &&str| {
        let features = line.rsplit_once('[').and_then(|(_, rest)| rest.split_once(']'));
        features.is_some_and(|(features, _)| features.split(',').any(|name| name == feature))
    };
    tree.lines().filter(|line| line.starts_with(&format!("{package} v"))).filter(has_feature).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_found() {
        let tree = "redlock-core v0.1.0 (/a) []\nrand v0.10.4 []\nrand_core v0.10.1 []\nlibc v0.2.1 [std]\n";
        assert_eq!(strangers(tree, &CORE_MAY_USE), ["libc v0.2.1 [std]"]);
        assert_eq!(strangers("redlock-core v0.1.0 (/a) []\n\n", &CORE_MAY_USE), [""; 0]);
    }

    #[test]
    fn feature_is_found_by_its_whole_name() {
        let line = "redis v1.8.1 [aio,bytes,script]";
        let with_aio = |tree| with_feature(tree, "redis", "aio").len();
        let tree = format!("redlock-driver v0.1.0 (/a) [aio]\n{line}\n");
        assert_eq!(with_feature(&tree, "redis", "aio"), [line]);
        assert_eq!(with_aio("redis v1.8.1 [cache-aio,script]\nredis v1.8.1 [] (*)"), 0);
        assert_eq!(with_aio("redis v1.8.1 [script,aio] (*)"), 1);
    }

    #[test]
    fn message_shows_the_lines() {
        assert_eq!(fail_on("rule", vec![]), Ok(()));
        assert_eq!(fail_on("rule", vec!["a", "b"]), Err("rule:\n  a\n  b".to_owned()));
    }
}
