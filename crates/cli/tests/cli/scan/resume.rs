//! Resuming interrupted scans.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use parquet::record::Field;
use serde_json::Value;

use crate::scan::faults::{StoppedScan, assert_complete, bushy_tree, faulty, killed_at, part_of, stderr_of};
use crate::scan::tables::{bytes, comparable_rows, entries, manifest, number, rows};
use crate::scan::{beside, run, scan, scan_completely};
use crate::support::commands::{out_of_time, too_late};
use crate::support::program::Program;
use crate::support::random::Random;
use crate::support::{Tree, is_ignored, needs_faults};

/// The fault points that every scan passes before its inventory has its final name, in order.
const POINTS_BEFORE_PUBLICATION: [&str; 12] = [
    "part-made",
    "part-locked",
    "journal-new",
    "journal-renamed",
    "journal-synced",
    "rows-taken",
    "directory-left",
    "segment-closed",
    "tables-finished",
    "manifest-written",
    "part-synced",
    "segment-closed",
];
/// The fault points that every scan passes after that, in order.
const POINTS_AFTER_PUBLICATION: [&str; 4] = ["published", "name-synced", "journal-removed", "lock-removed"];
/// The fault points that a scan passes repeatedly.
const REPEATED_POINTS: [&str; 6] =
    ["rows-taken", "directory-left", "segment-closed", "journal-new", "journal-renamed", "journal-synced"];

/// Kills a scan at random fault points and resumes it until it completes. Returns the number of
/// runs.
///
/// Every other run reaches a checkpoint, so the scan completes.
pub(crate) fn interrupted_and_resumed(tree: &Tree, random: &mut Random, out: &Path, words: &[&str]) -> usize {
    for runs in 1..200 {
        let point = if runs % 2 == 1 {
            "journal-synced"
        } else {
            REPEATED_POINTS[random.below(REPEATED_POINTS.len())]
        };
        let fault = format!("{point}:{}", 2 + random.below(3));
        let output = run(&mut faulty(tree, out, &fault, &[&["--resume"], words].concat()));
        if output.status.success() {
            return runs;
        }
        assert!(output.status.signal().is_some(), "{fault}: {output:?}");
    }
    panic!("it gets nowhere");
}

#[test]
fn a_resumed_scan_has_the_rows_of_an_uninterrupted_one() {
    if !needs_faults() {
        return;
    }
    let tree = bushy_tree();
    let expected = comparable_rows(&scan_completely(&tree, "whole", "."));
    let mut random = Random::new(7);
    for round in 0..3 {
        let out = beside(&tree, &format!("inv{round}"));
        let runs = interrupted_and_resumed(&tree, &mut random, &out, &["."]);
        println!("{runs} runs");
        assert!(runs > 1, "it was never interrupted");
        assert_complete(&out, &expected);
    }
}

#[test]
fn a_scan_resumes_after_a_kill_at_any_fault_point() {
    if !needs_faults() {
        return;
    }
    let tree = bushy_tree();
    let expected = comparable_rows(&scan_completely(&tree, "whole", "."));
    for (round, point) in POINTS_BEFORE_PUBLICATION.into_iter().enumerate() {
        let out = beside(&tree, &format!("inv{round}"));
        let count = if round + 1 == POINTS_BEFORE_PUBLICATION.len() { 3 } else { 1 };
        killed_at(&tree, &out, &format!("{point}:{count}"), &["."]);
        assert!(!out.exists() && part_of(&out).exists(), "{point}");
        let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out).arg("."));
        assert!(output.status.success() && output.stderr.is_empty(), "{point}: {output:?}");
        assert_complete(&out, &expected);
    }
    for (round, point) in POINTS_AFTER_PUBLICATION.into_iter().enumerate() {
        let out = beside(&tree, &format!("named{round}"));
        killed_at(&tree, &out, point, &["."]);
        let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out));
        assert_eq!(output.status.code(), Some(2), "{point}: {output:?}");
        assert!(stderr_of(&output).contains("the scan is finished"), "{point}: {output:?}");
        if point != "journal-removed" {
            assert_complete(&out, &expected);
        }
    }
}

#[test]
fn a_resumed_scan_resumes_after_a_kill_at_any_fault_point() {
    if !needs_faults() {
        return;
    }
    let tree = bushy_tree();
    let expected = comparable_rows(&scan_completely(&tree, "whole", "."));
    for (round, point) in
        ["part-cleaned", "rows-taken", "tables-finished", "manifest-written"].iter().enumerate()
    {
        let out = beside(&tree, &format!("inv{round}"));
        killed_at(&tree, &out, "journal-synced:3", &["."]);
        killed_at(&tree, &out, point, &["--resume"]);
        let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out));
        assert!(output.status.success() && output.stderr.is_empty(), "{point}: {output:?}");
        assert_complete(&out, &expected);
    }
    // A resumed inventory loses its final name until it is complete again.
    let out = beside(&tree, "stopped");
    let output = run(&mut faulty(&tree, &out, "rows-taken:9:TERM", &["--rate", "1000", "."]));
    assert_eq!(output.status.code(), Some(143), "{output:?}");
    killed_at(&tree, &out, "part-reopened", &["--resume"]);
    assert!(!out.exists());
    assert!(run(scan(&tree).args(["--resume", "-o"]).arg(&out)).status.success());
    assert_complete(&out, &expected);
}

#[test]
fn resume_without_a_journal_begins_a_scan() {
    if !needs_faults() {
        return;
    }
    let tree = bushy_tree();
    let expected = comparable_rows(&scan_completely(&tree, "whole", "."));
    let out = beside(&tree, "inv");
    for point in ["part-made", "part-locked", "journal-new"] {
        killed_at(&tree, &out, point, &["."]);
        let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out));
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let nothing = format!(
            "fathom scan: cannot go on with '{}': nothing to continue: give a PATH to start a scan\n",
            part_of(&out).display()
        );
        assert_eq!(stderr_of(&output), nothing);
    }
    // A scan begins in this case without `--resume` as well.
    assert!(run(scan(&tree).arg("-o").arg(&out).arg(".")).status.success());
    assert_complete(&out, &expected);
    let fresh = beside(&tree, "fresh");
    assert!(run(scan(&tree).args(["--resume", "-o"]).arg(&fresh).arg(".")).status.success());
    assert_complete(&fresh, &expected);
}

#[test]
fn a_scan_with_a_journal_is_not_restarted() {
    if !needs_faults() {
        return;
    }
    let tree = bushy_tree();
    let out = beside(&tree, "inv");
    killed_at(&tree, &out, "journal-synced", &["."]);
    let output = run(scan(&tree).arg("-o").arg(&out).arg("."));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let expected = format!(
        "fathom scan: cannot create '{}': it contains an unfinished scan: continue it (--resume), or remove it\n",
        part_of(&out).display()
    );
    assert_eq!(stderr_of(&output), expected);
    let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out).args(["t0", "t1"]));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr_of(&output).contains(".part': it was started with other operands\n"), "{output:?}");
}

#[test]
fn an_output_created_meanwhile_is_not_replaced() {
    if !needs_faults() {
        return;
    }
    let tree = bushy_tree();
    let expected = comparable_rows(&scan_completely(&tree, "whole", "."));
    let out = beside(&tree, "inv");
    let halted = StoppedScan::at(&tree, &out, "manifest-written", &["."]);
    fs::create_dir(&out).unwrap();
    let output = halted.go_on();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr_of(&output).contains(&format!("'{}'", part_of(&out).display())), "{output:?}");
    let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    fs::remove_dir(&out).unwrap();
    let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out));
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_complete(&out, &expected);
}

#[test]
fn two_scans_never_write_to_one_inventory() {
    if !needs_faults() {
        return;
    }
    let tree = bushy_tree();
    let expected = comparable_rows(&scan_completely(&tree, "whole", "."));
    for (round, point) in ["part-locked", "rows-taken", "manifest-written"].iter().enumerate() {
        let out = beside(&tree, &format!("inv{round}"));
        let halted = StoppedScan::at(&tree, &out, point, &["."]);
        for words in [&["."][..], &["--resume"], &["--resume", "."]] {
            let output = run(scan(&tree).arg("-o").arg(&out).args(words));
            assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
            let busy = format!(
                "fathom scan: cannot lock '{}': another scan or merge is writing to it\n",
                part_of(&out).display()
            );
            assert_eq!(stderr_of(&output), busy, "{point}: {words:?}");
        }
        let output = halted.go_on();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        assert_complete(&out, &expected);
    }
}

/// Returns damaged versions of a file with the contents `text`; `None` stands for a missing file.
fn damages(text: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut flipped = text.to_vec();
    flipped[text.len() / 2] ^= 1;
    vec![
        Some(flipped),
        Some(text[..text.len() / 2].to_vec()),
        Some([text, b"x"].concat()),
        Some(Vec::new()),
        None,
    ]
}

#[test]
fn damaged_files_are_not_published() {
    if !needs_faults() {
        return;
    }
    let tree = bushy_tree();
    let expected = comparable_rows(&scan_completely(&tree, "whole", "."));
    let out = beside(&tree, "inv");
    killed_at(&tree, &out, "journal-synced:3", &["."]);
    let part = part_of(&out);
    let names = fs::read_dir(&part).unwrap().map(|entry| entry.unwrap().file_name());
    let journal = fs::read_to_string(part.join("journal.json")).unwrap();
    let is_listed = |name: &OsString| journal.contains(&format!("\"{}\"", name.display()));
    let kept: Vec<_> = names.filter(|name| name == "journal.json" || is_listed(name)).collect();
    assert!(kept.len() > 4, "{kept:?}");
    for name in &kept {
        let path = part.join(name);
        let sound = fs::read(&path).unwrap();
        for damaged in damages(&sound) {
            match &damaged {
                Some(damaged) => fs::write(&path, damaged).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out));
            assert_eq!(output.status.code(), Some(2), "{name:?}: {output:?}");
            assert!(stderr_of(&output).contains(".part"), "{name:?}: {output:?}");
            assert!(!out.exists(), "{name:?}");
            fs::write(&path, &sound).unwrap();
        }
    }
    let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out));
    assert!(output.status.success(), "{output:?}");
    assert_complete(&out, &expected);
}

#[test]
fn signals_end_a_scan_and_its_rows_are_kept() {
    if !needs_faults() {
        return;
    }
    let tree = bushy_tree();
    let expected = comparable_rows(&scan_completely(&tree, "whole", "."));
    for (signal, status) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        if is_ignored(status - 128) {
            continue;
        }
        let out = beside(&tree, signal);
        // At this rate, threads sleep in the rate limiter: the signal has to wake them.
        let words = ["--rate", "40", "--threads", "2", "."];
        let output = run(&mut faulty(&tree, &out, &format!("rows-taken:1:{signal}"), &words));
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        let stderr = stderr_of(&output);
        assert!(stderr.contains("the inventory is incomplete (interrupted): "), "{output:?}");
        let go_on = format!("fathom scan: to continue: fathom scan --resume -o {}\n", out.display());
        assert!(stderr.ends_with(&go_on), "{output:?}");
        assert_eq!(manifest(&out)["completeness"]["stopped"], "interrupted");
        let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out));
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        assert_complete(&out, &expected);
    }
}

#[test]
fn an_ignored_signal_does_not_end_a_scan() {
    if !needs_faults() {
        return;
    }
    let tree = bushy_tree();
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" scan -o ../inv ."]).arg(Program::AsDu.bin().join("fathom"));
    let output = run(command.current_dir(tree.path()).env("FATHOM_FAULT", "rows-taken:1:HUP"));
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_deadline_is_kept_at_any_rate_and_the_scan_can_be_resumed() {
    if !needs_faults() {
        return;
    }
    let tree = bushy_tree();
    let expected = scan_completely(&tree, "whole", ".");
    let out = beside(&tree, "inv");
    let output = run(out_of_time(&mut scan(&tree)).arg("-o").arg(&out).arg("."));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr_of(&output).contains("the inventory is incomplete (deadline): "), "{output:?}");
    let (partial, all) = (entries(&out).len(), entries(&expected).len());
    assert!(partial < all, "{partial} of {all}");
    assert_eq!(manifest(&out)["completeness"]["stopped"], "deadline");
    let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out));
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert!(entries(&out).keys().eq(entries(&expected).keys()));
    let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr_of(&output).contains("the scan is finished"), "{output:?}");
}

#[test]
fn a_directory_moved_before_the_resume_is_an_error_and_the_scan_completes() {
    if !needs_faults() {
        return;
    }
    let tree = bushy_tree();
    let out = beside(&tree, "inv");
    killed_at(&tree, &out, "journal-synced:2", &["."]);
    // A scan that ends here records the directories that are open in the journal as partial.
    let output = run(too_late(&mut scan(&tree)).args(["--resume", "-o"]).arg(&out));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let open = rows(&out, "dirs").into_iter().filter(|dir| dir["state"] == Field::Str("partial".into()));
    let deepest = open.max_by_key(|dir| number(dir, "depth")).map(|dir| bytes(&dir, "path")).unwrap();
    let deepest = tree.path().join(std::ffi::OsStr::from_bytes(&deepest));
    assert_ne!(deepest, tree.path().join("."), "it was below the root");
    fs::rename(&deepest, beside(&tree, "away")).unwrap();
    let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr_of(&output).contains("No such file or directory"), "{output:?}");
    let dirs = rows(&out, "dirs");
    assert_eq!(dirs.iter().filter(|dir| dir["state"] == Field::Str("partial".into())).count(), 1);
    assert_eq!(manifest(&out)["completeness"]["stopped"], Value::Null);
}

#[test]
fn a_chain_too_deep_for_one_path_is_gone_on_with() {
    if !needs_faults() {
        return;
    }
    let tree = Tree::parse("top/, top/a 1").deep("top/chain", 40, 255);
    let expected = scan_completely(&tree, "expected", "top");
    for model in ["sync", "auto"] {
        let out = beside(&tree, model);
        // Stop in the innermost directory, where all directories of the chain are open.
        killed_at(&tree, &out, "journal-synced:2", &["--checkpoint", "1", "top"]);
        let output = run(scan(&tree).args(["--io", model, "--resume", "-o"]).arg(&out));
        assert!(output.status.success() && output.stderr.is_empty(), "{model}: {output:?}");
        assert!(comparable_rows(&out) == comparable_rows(&expected), "{model}");
        let mut diff = Command::new(Program::AsDu.bin().join("fathom"));
        let differences = run(diff.arg("diff").args([&expected, &out]));
        assert!(differences.status.success(), "{model}: {differences:?}");
    }
    // One of its directories is gone: it and those below it are partial, those above are complete.
    let out = beside(&tree, "moved");
    killed_at(&tree, &out, "journal-synced:2", &["--checkpoint", "1", "top"]);
    let name = "d".repeat(255);
    let above = [&["top/chain"][..], &[&name[..]; 10]].concat().join("/");
    let middle = tree.at(&above).join(&name);
    assert!(middle.exists(), "{}", middle.display());
    fs::rename(middle, beside(&tree, "away")).unwrap();
    let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr_of(&output).contains("No such file or directory"), "{output:?}");
    let states = rows(&out, "dirs").into_iter().map(|dir| dir["state"].clone());
    // The innermost one was complete before.
    assert_eq!(states.filter(|state| *state == Field::Str("partial".into())).count(), 29);
}
