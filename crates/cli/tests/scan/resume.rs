//! Scans that were ended go on.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use parquet::record::Field;
use serde_json::Value;

use crate::support::Tree;
use crate::support::random::Random;
use crate::tables::{bytes, entries, manifest, number, rows, told};
use crate::{beside, run, scan, whole};

/// Directories in which a scan at 1000 entries a second takes a while.
pub(crate) fn slow_tree() -> Tree {
    let tree = Tree::new();
    for top in 0..6 {
        for sub in 0..8 {
            let dir = tree.path().join(format!("t{top}/s{sub}/deep/er"));
            fs::create_dir_all(&dir).unwrap();
            for file in 0..8 {
                fs::write(dir.parent().unwrap().join(format!("f{file}")), "x").unwrap();
                fs::write(dir.join(format!("g{file}.c")), "xy").unwrap();
            }
        }
    }
    fs::hard_link(tree.path().join("t0/s0/deep/f0"), tree.path().join("t5/link")).unwrap();
    tree
}

/// Ends scans with `signal` at random times, and goes on with each until it is at its end; what came of it.
///
/// From the third on each is given the time to come to a checkpoint, however long the disk takes for it.
///
/// `words` are those that a scan is begun with; it looks at `rate` entries a second.
pub(crate) fn interrupted_and_resumed(
    tree: &Tree,
    random: &mut Random,
    signal: &str,
    out: &Path,
    (words, rate): (&str, &str),
) -> usize {
    let mut runs = 0;
    loop {
        let journal = || fs::read(out.with_extension("part").join("journal.json")).ok();
        let before = journal();
        let mut command = scan(tree);
        command.args(["--rate", rate, "--checkpoint", "40", "-o"]).arg(out).stderr(Stdio::null());
        if before.is_some() || out.exists() {
            command.arg("--resume")
        } else {
            command.args(words.split_whitespace()).arg(".")
        };
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(20 + random.below(150) as u64));
        let patience = Instant::now() + Duration::from_secs(60);
        while runs > 1 && child.try_wait().unwrap().is_none() && journal() == before {
            assert!(Instant::now() < patience, "it gets nowhere");
            std::thread::sleep(Duration::from_millis(5));
        }
        // One that has been waited for has no number of its own any more.
        if child.try_wait().unwrap().is_none() {
            let killed =
                Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status();
            assert!(killed.is_ok());
        }
        let status = child.wait().unwrap();
        runs += 1;
        if status.success() {
            return runs;
        }
        assert!(runs < 200, "it gets nowhere");
    }
}

#[test]
fn a_scan_that_was_killed_goes_on_and_comes_to_the_same() {
    let tree = slow_tree();
    let expected = told(&whole(&tree, "whole", "."));
    let mut random = Random::new(7);
    for (round, signal) in ["-KILL", "-KILL", "-INT"].into_iter().enumerate() {
        let out = beside(&tree, &format!("inv{round}"));
        let runs = interrupted_and_resumed(&tree, &mut random, signal, &out, ("", "2500"));
        println!("{signal}: {runs} runs");
        assert!(runs > 2, "it was never interrupted");
        let mut found = told(&out);
        let mut expected = expected.clone();
        // Files of a segment come in the order of their tables.
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        let manifest = manifest(&out);
        assert_eq!(manifest["completeness"]["partial"], 0);
        let listed = manifest["files"].as_array().unwrap().len();
        assert_eq!(fs::read_dir(&out).unwrap().count(), listed + 1, "nothing is left over");
    }
}

#[test]
fn a_deadline_is_kept_and_what_is_missing_can_be_had_later() {
    let tree = slow_tree();
    let expected = whole(&tree, "whole", ".");
    let out = beside(&tree, "inv");
    let output = run(scan(&tree).args(["--rate", "400", "--deadline", "1s", "-o"]).arg(&out).arg("."));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("the inventory is incomplete (deadline): "), "{said}");
    let (partial, all) = (entries(&out).len(), entries(&expected).len());
    assert!(partial > 10 && partial < all, "{partial} of {all}");
    assert_eq!(manifest(&out)["completeness"]["stopped"], "deadline");
    let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out));
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert!(entries(&out).keys().eq(entries(&expected).keys()));
    let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("the scan came to its end"));
}

#[test]
fn what_changed_meanwhile_is_no_reason_to_fail() {
    let tree = slow_tree();
    let out = beside(&tree, "inv");
    let output = run(scan(&tree).args(["--rate", "400", "--deadline", "1s", "-o"]).arg(&out).arg("."));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let open = rows(&out, "dirs").into_iter().filter(|dir| dir["state"] == Field::Str("partial".into()));
    let deepest = open.max_by_key(|dir| number(dir, "depth")).map(|dir| bytes(&dir, "path")).unwrap();
    let deepest = tree.path().join(std::ffi::OsStr::from_bytes(&deepest));
    assert_ne!(deepest, tree.path().join("."), "it was below the root");
    fs::rename(&deepest, beside(&tree, "away")).unwrap();
    let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("No such file or directory"));
    let dirs = rows(&out, "dirs");
    assert_eq!(dirs.iter().filter(|dir| dir["state"] == Field::Str("partial".into())).count(), 1);
    assert_eq!(manifest(&out)["completeness"]["stopped"], Value::Null);
}
