//! SIGINT: every view prints the results so far and reports that they are incomplete.

use std::io::{BufRead, BufReader};
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::fuse::{ScriptedFs, TOP};
use crate::support::outcome::{Outcome, ProgramEnd};
use crate::support::process::wait_until_idle;
use crate::support::{Tree, du, needs_fuse};
use crate::views::FATHOM;

/// Interrupts a run while it is blocked in the open of a directory. Returns the first line of its
/// standard error, and its outcome.
fn interrupted(view: &str) -> (String, Outcome) {
    let tree = Tree::parse("mnt/");
    let mut script = ScriptedFs::new();
    script.file(TOP, "f", 8);
    let slow = script.dir(TOP, "slow");
    let gate = script.gate(slow);
    let case = du(&tree, &format!("{view} mnt")).mounting(&script);
    case.watch(FATHOM, |child| {
        // The results of the parent directory must have arrived.
        gate.wait_until_reached();
        wait_until_idle(child.id());
        kill_process(Pid::from_child(child), Signal::INT).expect("nobody has waited for it yet");
        let message = first_line(child);
        // The kernel does not let a process exit while the FUSE server owes it a reply.
        gate.open();
        message
    })
}

fn first_line(child: &mut Child) -> String {
    let pipe = child.stderr.as_mut().expect("standard error is a pipe");
    let mut line = String::new();
    BufReader::new(pipe).read_line(&mut line).expect("pipes can be read");
    line
}

#[test]
fn an_interrupted_view_has_its_status_and_is_marked_incomplete() {
    if !needs_fuse() {
        return;
    }
    for (view, expected) in [
        ("--tree", "\ninterrupted: the tree is partial\n"),
        ("--top=3", "\td\tmnt\n"),
        ("--by=type", "\tdirectory\n"),
        ("--json", "\"complete\":false,"),
        ("--json --tree", "\"complete\":false,"),
    ] {
        let (message, outcome) = interrupted(view);
        assert_eq!(outcome.end, ProgramEnd::Status(130), "{view}: {outcome:?}");
        assert!(outcome.out().contains(expected), "{view}: {outcome:?}");
        assert_eq!(message, "fathom du: interrupted: the results are partial\n", "{view}");
    }
}
