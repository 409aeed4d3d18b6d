//! Ctrl-C: every view shows what is known by then and says that it is not all.

use std::io::{BufRead, BufReader};
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

use crate::FATHOM;
use crate::support::fuse::{Script, TOP};
use crate::support::outcome::{End, Outcome};
use crate::support::process::at_rest;
use crate::support::{Tree, du, needs_fuse};

/// A run over a tree in which one directory does not open, interrupted while it waits for that; and the first line of
/// its standard error.
fn interrupted(view: &str) -> (String, Outcome) {
    let tree = Tree::parse("mnt/");
    let mut script = Script::new();
    script.file(TOP, "f", 8);
    let slow = script.dir(TOP, "slow");
    let gate = script.gate(slow);
    let case = du(&tree, &format!("{view} mnt")).mounting(&script);
    case.watch(FATHOM, |child| {
        // The results of the directory above it have to arrive.
        gate.wait_until_reached();
        at_rest(child.id());
        kill_process(Pid::from_child(child), Signal::INT).expect("nobody has waited for it yet");
        let said = first_line(child);
        // The kernel lets no process go while the file system owes it an answer.
        gate.open();
        said
    })
}

fn first_line(child: &mut Child) -> String {
    let pipe = child.stderr.as_mut().expect("standard error is a pipe");
    let mut line = String::new();
    BufReader::new(pipe).read_line(&mut line).expect("pipes can be read");
    line
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
        let (message, outcome) = interrupted(view);
        assert_eq!(outcome.end, End::Status(130), "{view}: {outcome:?}");
        assert!(outcome.out().contains(said), "{view}: {outcome:?}");
        assert_eq!(message, "fathom du: interrupted: the results are partial\n", "{view}");
    }
}
