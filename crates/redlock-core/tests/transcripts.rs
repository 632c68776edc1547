//! Golden transcripts: `tests/transcripts/*.txt` hold settings and inputs, and below each input what the
//! machine answered. Every line of output is a promise; a change of behaviour shows as a diff to be
//! reviewed. `UPDATE_TRANSCRIPTS=1 cargo test --test transcripts` writes the files anew.
//!
//! A file starts with comments that say what it shows. `##` begins a case, with a machine of its own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

#[path = "support/parse.rs"]
mod parse;
#[path = "support/render.rs"]
mod render;

use std::fs;
use std::path::PathBuf;

use redlock_core::LeaseMachine;

use parse::{Settings, inputs, settings};
use render::Renderer;

#[test]
fn transcripts_are_as_reviewed() {
    let update = std::env::var_os("UPDATE_TRANSCRIPTS").is_some();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 20, "transcripts are missing");
    let mut differences = Vec::new();
    for file in files {
        let written = fs::read_to_string(&file).unwrap();
        assert!(written.starts_with("# "), "{}: say first what it shows", file.display());
        let played = play(&written).unwrap_or_else(|problem| panic!("{}: {problem}", file.display()));
        if update {
            fs::write(&file, played).unwrap();
        } else if let Some(line) = first_difference(&written, &played) {
            differences.push(format!("{}:{line}", file.display()));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The transcript with its outputs made anew.
fn play(text: &str) -> Result<String, String> {
    let mut played = String::new();
    let mut common = Settings::default();
    let mut case = None;
    let mut machine: Option<(LeaseMachine, Renderer)> = None;
    for line in text.lines().filter(|line| !line.starts_with(' ')) {
        played.push_str(line);
        played.push('\n');
        if line.is_empty() || line.starts_with("# ") {
        } else if line.starts_with("## ") {
            (case, machine) = (Some(common.clone()), None);
        } else if let Some(input) = line.strip_prefix('@') {
            let (machine, renderer) =
                machine.get_or_insert_with(|| case.as_ref().unwrap_or(&common).machine());
            for input in inputs(input)? {
                renderer.play(machine, &input, &mut played)?;
            }
            renderer.drain(machine, &mut played);
        } else {
            settings(line, case.as_mut().unwrap_or(&mut common))?;
        }
    }
    Ok(played)
}

fn first_difference(written: &str, played: &str) -> Option<String> {
    if written == played {
        return None;
    }
    let (old, new): (Vec<_>, Vec<_>) = (written.lines().collect(), played.lines().collect());
    let number = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let line = |lines: &[&str]| lines.get(number).unwrap_or(&"(end of file)").to_string();
    Some(format!("{}\n  reviewed: {}\n       now: {}", number + 1, line(&old), line(&new)))
}
