//! Stores whose newest inventory may be of something else: a clock was ahead, a filesystem is not
//! mounted, a path is misspelt.

use std::fs;
use std::process::Command;

use crate::history::{names, run};
use crate::support::commands::{fathom, program};
use crate::support::{Tree, needs_mounts};

/// Once, the new inventory was removed, and without a word.
#[test]
fn an_inventory_of_a_clock_that_was_ahead_is_not_the_newest() {
    let tree = Tree::parse("t/a 1");
    run(&tree, &["scan", "--keep", "store", "t"]);
    let first = names(&tree).pop_last().unwrap();
    let later = "2130-12-31T23-59-59Z.inv";
    fs::rename(tree.at("store").join(&first), tree.at("store").join(later)).unwrap();
    let message =
        format!("'store/{later}' is ignored, because its time is in the future: is a clock wrong?\n");
    let mut made = Vec::new();
    for _ in 0..2 {
        let (_, errors) = run(&tree, &["scan", "--keep", "store", "--keep-last", "1", "t"]);
        assert_eq!(errors, format!("fathom scan: {message}"));
        let mut left = names(&tree);
        assert_eq!(left.pop_last().as_deref(), Some(later));
        made.push(left.pop_last().unwrap());
        assert!(left.is_empty(), "{left:?}");
    }
    assert_ne!(made[0], made[1]);
    run(&tree, &["scan", "--keep", "store", "t"]);
    let (out, errors) = run(&tree, &["grew", "--json", "store"]);
    assert!(!out.contains(later) && errors == format!("fathom grew: {message}"), "{out} {errors}");
    let (out, errors) = run(&tree, &["history", "prune", "--keep-last", "1", "store"]);
    assert_eq!((out, errors), (format!("store/{}\n", made[1]), format!("fathom history: {message}")));
    assert_eq!(names(&tree).len(), 2);
}

#[test]
fn what_has_a_hundredth_of_the_entries_replaces_nothing() {
    let tree = Tree::parse("t/a 1");
    for number in 0..300 {
        fs::write(tree.at(format!("t/{number}")), "").unwrap();
    }
    run(&tree, &["scan", "--keep", "store", "t"]);
    let full = names(&tree).pop_last().unwrap();
    fs::rename(tree.at("t"), tree.at("away")).unwrap();
    fs::create_dir(tree.at("t")).unwrap();
    let keep = || fathom(&tree, ["scan", "--keep", "store", "--keep-last", "1", "t"]);
    for (round, what) in ["may be of another tree than 'store/", "' is kept, as 'store/"].iter().enumerate() {
        let output = keep();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(
            errors.contains("there are 1 entries and were 302. ") && errors.contains(what),
            "{round}: {errors}"
        );
        assert!(names(&tree).len() == 2 && names(&tree).contains(&full), "{:?}", names(&tree));
    }
    let dry = fathom(&tree, ["history", "prune", "--dry-run", "--keep-last", "1", "store"]);
    assert_eq!((dry.status.code(), dry.stdout), (Some(1), Vec::new()));
    // It is back.
    fs::remove_dir(tree.at("t")).unwrap();
    fs::rename(tree.at("away"), tree.at("t")).unwrap();
    assert_eq!(keep().status.code(), Some(0));
    assert_eq!(names(&tree).len(), 1);
}

#[test]
fn a_filesystem_that_is_not_mounted_replaces_nothing() {
    if !needs_mounts() {
        return;
    }
    let tree = Tree::parse("t/below 1, t/mount 1");
    let script = format!(
        "set -e; mount -t tmpfs none t; touch t/1 t/2 t/3
         scan() {{ '{0}' scan --keep store --keep-last 1 t && echo kept || echo status $?; ls store | wc -l; }}
         scan; umount t; scan; scan; mount -t tmpfs none t; touch t/1 t/2; scan; umount t",
        program().display()
    );
    let mut command = Command::new("unshare");
    let command = command.args(["-m", "sh", "-c", &script]).current_dir(tree.path()).env("LC_ALL", "C");
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let lines = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        lines.split_whitespace().collect::<Vec<_>>().join(" "),
        "kept 1 status 1 2 status 1 2 kept 1",
        "{errors}"
    );
    assert!(errors.contains("and was on tmpfs. Is a file system not mounted?"), "{errors}");
}

#[test]
fn a_path_that_is_misspelt_makes_no_inventory() {
    let tree = Tree::parse("t/a 1, f 1");
    let keep = |roots: &[&str]| {
        let output = fathom(&tree, [&["scan", "--keep", "store"], roots].concat());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let missing = "fathom scan: cannot access 'tt': No such file or directory\n";
    assert_eq!(keep(&["tt"]), (Some(2), missing.into()));
    let none = "fathom scan: cannot access 'f/x': Not a directory\n";
    assert_eq!(keep(&["tt", "f/x"]), (Some(2), format!("{missing}{none}")));
    assert!(names(&tree).is_empty());
    assert_eq!(keep(&["tt", "t"]).0, Some(1));
    assert_eq!(names(&tree).len(), 1);
}
