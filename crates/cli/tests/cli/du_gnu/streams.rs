//! Standard output: when lines appear, and failures of write(2).

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::FileType;

use crate::support::fuse::{Gate, ScriptedFs, TOP};
use crate::support::outcome::{Outcome, ProgramEnd};
use crate::support::process::wait_until_idle;
use crate::support::program::{Program, forms};
use crate::support::{Tree, compare, du, needs_fuse};

/// Time limit for a line to appear. A later line was held back.
const LINE_MAX: Duration = Duration::from_secs(20);

fn programs() -> impl Iterator<Item = Program> {
    [Program::Gnu].into_iter().chain(forms())
}

fn first_line(child: &mut Child) -> String {
    let pipe = child.stdout.as_mut().expect("standard output is a pipe");
    let mut line = Vec::new();
    let mut byte = [0];
    while pipe.read(&mut byte).expect("pipes can be read") == 1 {
        line.push(byte[0]);
        if byte[0] == b'\n' {
            break;
        }
    }
    String::from_utf8_lossy(&line).into_owned()
}

/// Returns the first line, and whether it appeared before `gate` was opened.
fn line_before(child: &mut Child, gate: &Gate) -> (String, bool) {
    let seen = AtomicBool::new(false);
    thread::scope(|scope| {
        let opener = scope.spawn(|| {
            let start = Instant::now();
            while !seen.load(Ordering::Relaxed) && start.elapsed() < LINE_MAX {
                thread::sleep(Duration::from_millis(2));
            }
            gate.open();
            seen.load(Ordering::Relaxed)
        });
        let line = first_line(child);
        seen.store(true, Ordering::Relaxed);
        (line, opener.join().expect("it does not panic"))
    })
}

#[test]
fn lines_appear_while_the_rest_is_still_unread() {
    if !needs_fuse() {
        return;
    }
    let tree = Tree::parse("mnt/");
    let mut outcomes = Vec::new();
    for program in programs() {
        let mut script = ScriptedFs::new();
        let first = script.dir(TOP, "first");
        script.file(first, "f", 8);
        let second = script.dir(TOP, "second");
        script.file(second, "g", 16);
        let gate = script.gate(second);
        let case = du(&tree, "mnt").mounting(&script);
        let ((line, in_time), outcome) = case.watch(program, |child| line_before(child, &gate));
        assert_eq!(line, "4\tmnt/first\n", "{program:?}: {outcome:?}");
        assert!(in_time, "{program:?} printed nothing until all was read");
        outcomes.push(outcome);
    }
    assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]));
}

#[test]
fn a_line_appears_before_the_next_record_is_there() {
    let tree = Tree::parse("a/x 10, b/x 10");
    let fifo = tree.at("list");
    tree.node("list", FileType::Fifo);
    for program in programs() {
        let (line, outcome) = du(&tree, "-a --files0-from=list").watch(program, |child| {
            // Open the fifo for reading too: an open for writing alone would block until the
            // program opens it.
            let mut writer = OpenOptions::new().read(true).write(true).open(&fifo).expect("it is a fifo");
            writer.write_all(b"a\0").expect("the fifo has room");
            let line = first_line(child);
            writer.write_all(b"b\0").expect("the fifo has room");
            line
        });
        assert_eq!(line, "4\ta/x\n", "{program:?}");
        assert_eq!(outcome.end, ProgramEnd::Status(0), "{program:?}");
        assert!(outcome.out().ends_with("\tb\n"), "{program:?}: {outcome:?}");
    }
}

#[test]
fn a_reader_that_stops_reading_blocks_the_scan() {
    if !needs_fuse() {
        return;
    }
    // Outputs of at most 32 MiB wait for a consumer if calls are found to be slow (`backlog.rs` of
    // the crate walk). All entries have several times that, by their long names.
    const DIRS: usize = 800;
    const FILES: usize = 250;
    let tail = "x".repeat(240);
    let tree = Tree::parse("mnt/");
    for program in [Program::Gnu, Program::AsDu, Program::Engine(&["--threads=8"])] {
        let mut script = ScriptedFs::new();
        for number in 0..DIRS {
            let dir = script.dir(TOP, &format!("{number}"));
            for file in 0..FILES {
                script.file(dir, &format!("{file}-{tail}"), 2);
            }
        }
        let seen = du(&tree, "-a mnt").mounting(&script).watch(program, |child| {
            assert!(first_line(child).contains("\tmnt/"), "{program:?} prints nothing");
            let mut lookups = script.lookups();
            // The thread of the FUSE server may not have been scheduled meanwhile.
            loop {
                wait_until_idle(child.id());
                if script.lookups() == lookups {
                    break;
                }
                lookups = script.lookups();
            }
            child.kill().expect("it is still running");
            lookups
        });
        assert!(seen.0 < DIRS * FILES / 2, "{program:?} looked at {} entries with no reader", seen.0);
    }
}

#[test]
fn a_full_device_ends_du_with_an_error() {
    let tree = Tree::parse("d/x 10, d/y/z 10");
    for words in ["d", "-a d", "-c d", "-s d d/y", "-0 d", "missing d", "--help", "--version"] {
        du(&tree, words).redirect(">/dev/full").compare().says("du: write error").status(1);
    }
    du(&tree, "missing").redirect(">/dev/full").compare().status(1);
    du(&tree, "-t 1G d").redirect(">/dev/full").compare().says("").status(0);
}

#[test]
fn a_closed_output_ends_du_with_an_error() {
    let tree = Tree::parse("d/x 10, d/y/z 10");
    for words in
        ["d", "-a d", "missing", "-t 1G d", "-c", "--exclude=* d", "--version", "--files0-from=/dev/null"]
    {
        du(&tree, words).redirect(">&-").compare();
    }
    du(&tree, "d").redirect(">&-").compare().says("write error: Bad file descriptor").status(1);
    du(&tree, "d missing").redirect("2>&-").compare().status(1);
    du(&tree, "d").redirect("<&- 2>&-").compare().status(0);
    du(&tree, "d").redirect("<&- >&- 2>&-").compare().status(1);
}

#[test]
fn a_broken_pipe_ends_du() {
    let tree = Tree::new().wide("d", 3000);
    for words in ["-a d", "-s d", "-c d", "missing d"] {
        let signalled = broken(&tree, words, "");
        assert_eq!(signalled.end, ProgramEnd::Signal(13), "{signalled:?}");
        broken(&tree, words, "trap '' PIPE").says("du: write error").status(1);
    }
}

/// Compares the programs when their standard output is a pipe without a reader: descriptor 4 is the
/// write end of a fifo whose read end is closed.
fn broken(tree: &Tree, words: &str, disposition: &str) -> Outcome {
    let fifo = "mkfifo fifo.$$; exec 5<>fifo.$$ 4>fifo.$$; rm fifo.$$; exec 5<&-";
    du(tree, words).after(&format!("{disposition}\n{fifo}")).redirect(">&4 4>&-").compare()
}

#[test]
fn a_reader_that_closes_the_pipe_ends_du_soon() {
    let tree = Tree::new().wide("d", 20_000);
    for program in programs() {
        let (line, outcome) = du(&tree, "-a").watch(program, |child| {
            let line = first_line(child);
            child.stdout = None;
            line
        });
        assert!(line.starts_with("0\t./d/"), "{program:?}: {line}");
        assert_eq!((outcome.end, outcome.err()), (ProgramEnd::Signal(13), String::new()), "{program:?}");
    }
}

#[test]
fn statuses_are_nought_and_one() {
    let tree = Tree::parse("d/x 10");
    for (words, status) in [
        ("d", 0),
        ("missing", 1),
        ("d missing", 1),
        ("-Z", 1),
        ("--version", 0),
        ("-d x", 1),
        ("--exclude=d d", 0),
    ] {
        let outcome = du(&tree, words).run(Program::AsDu);
        assert_eq!(outcome.end, ProgramEnd::Status(status), "{words}: {outcome:?}");
        assert_eq!(du(&tree, words).run(Program::Gnu).end, ProgramEnd::Status(status), "{words}");
    }
    compare(&tree, "-Z").says("invalid option -- 'Z'");
}

#[test]
fn help_goes_to_standard_output() {
    let tree = Tree::parse("d/x 10");
    let help = du(&tree, "--help").run(Program::AsDu);
    assert_eq!((help.end, help.err()), (ProgramEnd::Status(0), String::new()));
    for option in [
        "--apparent-size",
        "--files0-from=F",
        "--threshold=SIZE",
        "--time-style=STYLE",
        "--inodes",
        "-X, --exclude-from",
    ] {
        assert!(help.out().contains(option), "{option} is missing:\n{}", help.out());
    }
}

#[test]
fn a_message_that_cannot_be_written_is_a_failure() {
    let tree = Tree::parse("d/x 10");
    for redirect in ["2>/dev/full", "2>&-"] {
        for (words, status) in [("-s -d 0 d", 1), ("--inodes -b d", 1), ("missing", 1), ("d", 0)] {
            du(&tree, words).redirect(redirect).compare().status(status);
        }
    }
}

#[test]
fn patterns_from_a_standard_input_that_cannot_be_read() {
    let tree = Tree::parse("d/x 10, o");
    for redirect in ["<&-", "0>o"] {
        du(&tree, "-X - d").redirect(redirect).compare().says("du: -: Bad file descriptor\n").status(1);
    }
}
