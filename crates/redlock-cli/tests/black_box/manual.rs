//! What packages ship beside the program.

use crate::support::{Finished, redlock};

#[test]
fn every_shell_gets_its_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let finished = Finished::of(redlock().args(["completions", shell]));
        assert_eq!((finished.code, finished.stderr.as_str()), (0, ""));
        assert!(finished.stdout.contains("on-lost"), "{shell}");
    }
    assert_eq!(Finished::of(redlock().args(["completions", "tcsh"])).code, 64);
}

#[test]
fn every_subcommand_has_a_page() {
    let page = Finished::of(redlock().arg("man"));
    assert!(
        page.stdout.contains(".TH redlock 1") && page.stdout.contains("REDLOCK_NODES"),
        "{}",
        page.stdout
    );
    for subcommand in ["run", "check", "status", "bench"] {
        let page = Finished::of(redlock().args(["man", subcommand]));
        assert_eq!(page.code, 0);
        assert!(page.stdout.contains(&format!(".TH redlock-{subcommand} 1")), "{}", page.stdout);
    }
    for none in ["walk", "man", "completions"] {
        assert_eq!(Finished::of(redlock().args(["man", none])).code, 64);
    }
}
