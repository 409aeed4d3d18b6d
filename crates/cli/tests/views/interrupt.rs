//! Ctrl-C: every view shows what is known by then and says that it is not all.

use std::process::Child;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::FATHOM;
use crate::support::fuse::{Script, TOP};
use crate::support::outcome::{End, Outcome};
use crate::support::{Tree, du, needs_fuse};

/// A run over a tree in which one directory never opens, interrupted while it waits for that.
fn interrupted(view: &str) -> Outcome {
    let tree = Tree::parse("mnt/");
    let mut script = Script::new();
    script.file(TOP, "f", 8);
    let slow = script.dir(TOP, "slow");
    let gate = script.gate(slow);
    let case = du(&tree, &format!("{view} mnt")).mounting(&script);
    let ((), outcome) = case.watch(FATHOM, |child| {
        // The last thing before it waits is to look up the directory.
        while script.lookups() < 2 {
            thread::sleep(Duration::from_millis(1));
        }
        interrupt(child);
    });
    gate.open();
    outcome
}

fn interrupt(child: &Child) {
    let pid = Pid::from_child(child);
    kill_process(pid, Signal::INT).expect("nobody has waited for it yet");
}

#[test]
fn the_status_and_the_output_say_so() {
    if !needs_fuse() {
        return;
    }
    for (view, said) in [
        ("--tree", "\ninterrupted: this is what was seen until then\n"),
        ("--top=3", "\td\tmnt\n"),
        ("--by=type", "\tdirectory\n"),
        ("--json", "\"complete\":false,"),
        ("--json --tree", "\"complete\":false,"),
    ] {
        let outcome = interrupted(view);
        assert_eq!(outcome.end, End::Status(130), "{view}: {outcome:?}");
        assert!(outcome.out().contains(said), "{view}: {outcome:?}");
        assert!(outcome.err().ends_with("du: interrupted: the results are partial\n"), "{view}: {outcome:?}");
    }
}
