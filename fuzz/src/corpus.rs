//! The replay: every file of the corpus through its target.

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    let failing: Vec<_> = paths
        .iter()
        .filter(|path| {
            let data = fs::read(path).unwrap();
            catch_unwind(|| run(&data)).is_err()
        })
        .collect();
    assert!(failing.is_empty(), "{target} fails on {failing:?}");
    assert!(paths.len() >= FEWEST, "{}: only {} files", folder.display(), paths.len());
    println!("{target}: {} inputs", paths.len());
}

/// So that a corpus that got lost is not taken for one that passes.
const FEWEST: usize = 20;

#[test]
fn reply_bytes() {
    replay("reply_bytes", crate::reply_bytes);
}

#[test]
fn lease_events() {
    replay("lease_events", crate::lease_events);
}

#[test]
fn sim_scenario() {
    replay("sim_scenario", crate::sim_scenario);
}
