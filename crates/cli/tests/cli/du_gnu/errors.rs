//! Entries that cannot be read or that vanish: an error is printed and all other entries are
//! counted.

use std::fs;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::io::Errno;

use crate::support::fuse::{ScriptedFs, TOP};
use crate::support::outcome::Outcome;
use crate::support::outcome::ProgramEnd;
use crate::support::process::wait_until_idle;
use crate::support::program::{Program, forms};
use crate::support::{Tree, compare, compare_all, du, needs_fuse};

fn locked() -> Tree {
    Tree::parse(
        "d/shut/x 9000, d/blind/y 100, d/open/z 5000, d/last 10, d/noread/f 1, d/noread/g/h 2, d/shut2/a/b 3",
    )
    .mode("d/shut", 0)
    .mode("d/blind", 0o444)
    .mode("d/noread", 0o333)
    .mode("d/shut2", 0o200)
}

#[test]
fn a_directory_that_cannot_be_read_counts_itself() {
    let tree = locked();
    let words = du(&tree, "d").unprivileged().compare();
    words.says("du: cannot read directory 'd/shut': Permission denied\n").prints("\td/shut\n").status(1);
    for words in [
        "-a d",
        "-s d",
        "-a",
        "-b d",
        "--inodes d",
        "-S d",
        "-sc d d/open",
        "-l d",
        "-x d",
        "--time d",
        "-t 1 d",
        "-0 d",
    ] {
        du(&tree, words).unprivileged().compare().status(1);
    }
}

#[test]
fn entries_of_a_directory_that_cannot_be_searched() {
    let mut tree = locked();
    for number in 0..12 {
        tree = tree.with(&format!("d/many/f{number} 10"));
    }
    let tree = tree.mode("d/many", 0o444);
    let out = du(&tree, "-a d/blind").unprivileged().compare();
    out.says("du: cannot access 'd/blind/y': Permission denied\n").status(1);
    let out = du(&tree, "-a d/many").unprivileged().compare();
    assert_eq!(out.err().lines().count(), 12);
    for words in [
        "-L d",
        "-aL d",
        "-D d/blind",
        "d/blind/y",
        "d/noread/f d/noread/g",
        "-s d/shut/x d/open",
        "-aL d/noread d",
    ] {
        du(&tree, words).unprivileged().compare();
    }
}

#[test]
fn operands_that_cannot_be_read() {
    let tree = locked();
    for words in [
        "d/shut",
        "d/shut d/open",
        "-a d/noread d/last",
        "d/shut/",
        "d/shut/.",
        "-c d/shut d/shut",
        "d/open d/shut/x d/last",
    ] {
        du(&tree, words).unprivileged().compare();
    }
    du(&tree, ".").after("chmod 700 d/noread; cd d/noread; chmod 0 .").unprivileged().compare().status(1);
}

#[test]
fn a_current_directory_that_forbids_everything_is_no_obstacle() {
    let tree = Tree::parse("in/, d/x 100, d/e/y 9000");
    let target = tree.at("d").display().to_string();
    for words in ["-a", "-s", "-L", "-D", "-ac"] {
        let case = du(&tree, words).arg(&target).unprivileged().after("chmod 700 in; cd in; chmod 0 .");
        case.clone().compare().says("").status(0);
        case.arg(".").arg("x").arg(&target).compare().status(1);
    }
}

#[test]
fn an_entry_that_vanishes_between_listing_and_looking() {
    if !needs_fuse() {
        return;
    }
    let tree = Tree::parse("mnt/, plain/x 100");
    let mut script = ScriptedFs::new();
    let dir = script.dir(TOP, "d");
    script.file(dir, "a", 8);
    script.failing(dir, "gone", Errno::NOENT);
    script.file(dir, "z", 16);
    for words in [
        "mnt",
        "-a mnt",
        "-s mnt plain",
        "-l mnt",
        "-x mnt",
        "--inodes -a mnt",
        "-c mnt/d plain",
        "-S mnt",
        "--exclude=gone -a mnt",
    ] {
        du(&tree, words).mounting(&script).compare().prints("mnt");
    }
    for words in ["mnt/d/gone", "-a mnt/d/gone mnt", "-L mnt", "-aL mnt/d", "-D mnt/d/gone plain"] {
        du(&tree, words).mounting(&script).compare().says("gone").status(1);
    }
}

#[test]
fn an_entry_that_cannot_be_looked_at() {
    if !needs_fuse() {
        return;
    }
    let tree = Tree::parse("mnt/");
    for error in [Errno::IO, Errno::STALE, Errno::ACCESS, Errno::NOTDIR, Errno::OVERFLOW, Errno::LOOP] {
        let mut script = ScriptedFs::new();
        let dir = script.dir(TOP, "d");
        script.file(dir, "a", 8);
        script.failing(dir, "bad", error);
        script.file(dir, "z", 16);
        for words in ["-a mnt", "-aL mnt", "mnt/d/bad", "-s mnt/d/bad mnt"] {
            du(&tree, words).mounting(&script).compare().says("'mnt/d/bad'").status(1);
        }
    }
}

/// Returns three directories, the second of which lists `count` files and then fails.
fn breaking_off(count: usize, error: Errno) -> ScriptedFs {
    let mut script = ScriptedFs::new();
    let first = script.dir(TOP, "first");
    script.file(first, "f", 8);
    let dir = script.dir(TOP, "d");
    for number in 0..count {
        script.file(dir, &format!("f{number}"), 2);
    }
    script.break_off(dir, error);
    let last = script.dir(TOP, "last");
    script.file(last, "f", 8);
    script
}

#[test]
fn a_listing_that_fails_at_once() {
    if !needs_fuse() {
        return;
    }
    let tree = Tree::parse("mnt/, plain/x 100");
    for words in ["-a mnt", "mnt", "-s mnt plain", "mnt/d plain", "-aL mnt", "-S mnt", "--inodes mnt"] {
        for error in [Errno::IO, Errno::STALE] {
            let outcome = du(&tree, words).mounting(&breaking_off(0, error)).compare();
            outcome.says("cannot read directory 'mnt/d'").status(1);
        }
        // ENOENT from getdents64(2) means that the directory was removed: it counts as the end.
        du(&tree, words).mounting(&breaking_off(0, Errno::NOENT)).compare().says("").status(0);
    }
}

#[test]
fn a_listing_that_breaks_off() {
    if !needs_fuse() {
        return;
    }
    let tree = Tree::parse("mnt/, plain/x 100");
    for words in ["-a mnt", "mnt", "-S mnt", "--inodes mnt", "-s mnt", "-c mnt", "-l mnt plain"] {
        for (count, error) in [(1, Errno::IO), (2, Errno::STALE), (300, Errno::IO)] {
            du(&tree, words).mounting(&breaking_off(count, error)).compare().says("du: mnt/d: ").status(1);
        }
        du(&tree, words).mounting(&breaking_off(5, Errno::NOENT)).compare().says("").status(0);
    }
}

/// GNU du drops the error when it remembers every inode, because it takes the failed directory for
/// one that it has counted before.
#[test]
fn a_listing_that_breaks_off_is_never_forgotten() {
    if !needs_fuse() {
        return;
    }
    let tree = Tree::parse("mnt/, plain/x 100");
    for words in ["-s mnt plain", "mnt/d plain", "-aL mnt"] {
        for program in forms() {
            let outcome = du(&tree, words).mounting(&breaking_off(3, Errno::IO)).run(program);
            assert_eq!(
                (outcome.err().as_str(), outcome.end),
                ("du: mnt/d: Input/output error\n", ProgramEnd::Status(1))
            );
        }
    }
}

#[test]
fn the_directory_of_a_dead_process() {
    let tree = Tree::parse("d/x 10");
    for words in ["-a .", "", "-s", "task", "-L .", "-s . /dev/null"] {
        let text = "sleep 100 & cd /proc/$!; kill $!; wait $! 2>/dev/null || true";
        du(&tree, words).after(text).compare().says("No such process").status(1);
    }
}

#[test]
fn a_current_directory_that_is_gone() {
    let tree = Tree::parse("d/x 10");
    let base = tree.at("d").display().to_string();
    for words in ["", "-a .", "x", "..", "-L .", &base, &format!("{base} . x")] {
        du(&tree, words).after("mkdir -p gone; cd gone; rmdir ../gone").compare();
    }
}

#[test]
fn operands_that_are_no_files() {
    let tree = Tree::parse("f 10, d/x 10, p |, s %");
    compare_all(
        &tree,
        &[
            "f/",
            "f/x",
            "d/x/y",
            "p/",
            "missing/",
            "missing/x",
            "-a p s",
            "-b p s f",
            "/dev/null",
            "-a /dev/null /dev/zero",
        ],
    );
    let long = "n".repeat(256);
    du(&tree, "").arg(&long).compare().says("File name too long").status(1);
    du(&tree, "f").arg(format!("d/{long}")).compare().status(1);
    du(&tree, "f").arg("x/".repeat(3000)).compare().status(1);
    compare(&tree, "f/x").says("Not a directory").status(1);
}

#[test]
fn errors_do_not_keep_the_total_away() {
    let tree = locked();
    du(&tree, "-c d missing").unprivileged().compare().prints("\ttotal\n").status(1);
    du(&tree, "-c missing").unprivileged().compare().prints("0\ttotal\n").status(1);
    du(&tree, "-csh d/shut d/open").unprivileged().compare().prints("\ttotal\n").status(1);
}

#[test]
fn many_directories_that_cannot_be_read_are_reported_in_order() {
    let mut tree = Tree::new();
    for number in 0..200 {
        tree = tree.with(&format!("d/n{number}/x, d/n{number}/e/y 10"));
        tree = tree.mode(format!("d/n{number}/e"), [0, 0o755, 0o444][number % 3]);
    }
    let out = du(&tree, "-a d").unprivileged().compare();
    assert!(out.err().lines().count() > 100, "{out:?}");
    du(&tree, "-s d d/n7").unprivileged().compare().status(1);
}

#[test]
fn entries_without_a_type_are_looked_at() {
    if !needs_fuse() {
        return;
    }
    let tree = Tree::parse("mnt/");
    let mut script = ScriptedFs::new();
    for number in 0..20 {
        let dir = script.dir(TOP, &format!("d{number}"));
        let inner = script.dir(dir, "inner");
        script.file(inner, "f", number);
        script.file(dir, "g", 1);
    }
    let script = script.untyped();
    for words in ["-a mnt", "mnt", "--inodes mnt", "-d1 mnt", "-L mnt"] {
        du(&tree, words).mounting(&script).compare().prints("\tmnt/d19\n").status(0);
    }
}

/// Whether this message may occur while the tree changes.
fn is_known(line: &str) -> bool {
    let operation = line.starts_with("du: cannot ") || line.starts_with("du: fts_read failed: ");
    operation && line.ends_with(": No such file or directory")
}

/// Whether the last operand has its lines. A directory has blocks or none, by filesystem.
fn has_rest(outcome: &Outcome) -> bool {
    outcome.out().ends_with("\tstill\n") && outcome.out().contains("\n4\tstill/x\n")
}

/// Creates and removes directories with files until `stop` is set.
fn come_and_go(tree: &Tree, stop: &AtomicBool) {
    for number in (0..40).cycle() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let dir = tree.at(format!("d/{number}"));
        // Ignore a failure: the previous round may still hold files in this directory.
        let _ = fs::remove_dir_all(&dir);
        for file in 0..30 {
            tree.file(format!("d/{number}/e/{file}"), 1);
        }
    }
}

#[test]
fn a_tree_that_changes_is_no_more_than_reported() {
    let tree = Tree::parse("d/, still/x 100");
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| come_and_go(&tree, &stop));
        let _stop = StopOnDrop(&stop);
        for program in forms() {
            for _ in 0..6 {
                let outcome = du(&tree, "-a d still").run(program);
                let err = outcome.err();
                let strange: Vec<&str> = err.lines().filter(|line| !is_known(line)).collect();
                let ended = matches!(outcome.end, ProgramEnd::Status(0 | 1)) && has_rest(&outcome);
                assert!(ended && strange.is_empty(), "{program:?}: {strange:?}\n{outcome:?}");
            }
        }
    });
}

/// Ends the other thread of a scope, which waits for it, also if this one panics.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// GNU du names no cause of this error only if it follows the link.
#[test]
fn a_link_that_vanishes_is_reported_with_the_cause() {
    if !needs_fuse() {
        return;
    }
    let tree = Tree::parse("mnt/");
    let mut script = ScriptedFs::new();
    script.vanishing_link(TOP, "l");
    script.file(TOP, "f", 8);
    let outcome = du(&tree, "-a mnt").mounting(&script).compare();
    outcome.says("du: cannot access 'mnt/l': No such file or directory\n").status(1);
    du(&tree, "-aL mnt").mounting(&script).compare().says("du: cannot access 'mnt/l'").status(1);
}

#[test]
fn a_directory_moved_away_spoils_no_other_operand() {
    let tree = Tree::new().wide("a/b/c/d/e/f/g/h/i/j", 9000).with("a/z 1, still/x 100");
    for program in [Program::Gnu].into_iter().chain(forms()) {
        let ((), outcome) = du(&tree, "-a a still").watch(program, |child| {
            // Du has written its first line, and soon blocks on the full pipe.
            let pipe = child.stdout.as_mut().expect("standard output is a pipe");
            pipe.read_exact(&mut [0]).expect("there is a first line");
            wait_until_idle(child.id());
            fs::rename(tree.at("a/b/c"), tree.at("moved")).expect("both are in the tree");
        });
        fs::rename(tree.at("moved"), tree.at("a/b/c")).expect("both are in the tree");
        assert!(matches!(outcome.end, ProgramEnd::Status(0 | 1)), "{program:?}: {outcome:?}");
        assert!(has_rest(&outcome), "{program:?}: {outcome:?}");
        match program {
            Program::Gnu => drop(outcome.says("du: fts_read failed: a/b/c: No such file or directory")),
            _ => assert!(outcome.err().lines().all(is_known), "{program:?}: {outcome:?}"),
        }
    }
}
