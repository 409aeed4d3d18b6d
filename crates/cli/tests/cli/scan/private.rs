//! Permissions of an inventory: only its owner may read it, unless the command line grants access
//! to others.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::scan::faults::{StoppedScan, killed_at, part_of};
use crate::scan::{beside, run, scan, scan_completely};
use crate::support::{Tree, needs_faults};

fn bits(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o7777
}

/// Returns the permission bits of a directory, and of its entries.
fn all_bits(directory: &Path) -> (u32, Vec<u32>) {
    let mut files: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| bits(&entry.unwrap().path())).collect();
    files.sort_unstable();
    files.dedup();
    (bits(directory), files)
}

#[test]
fn an_inventory_is_private_unless_mode_grants_access() {
    let tree = Tree::parse("d/f 1");
    assert_eq!(all_bits(&scan_completely(&tree, "private", "d")), (0o700, vec![0o600]));
    for (mode, expected) in
        [("640", (0o750, vec![0o640])), ("0755", (0o755, vec![0o644])), ("660", (0o770, vec![0o660]))]
    {
        assert_eq!(all_bits(&scan_completely(&tree, mode, &format!("--mode={mode} d"))), expected, "{mode}");
    }
}

#[test]
fn an_unfinished_inventory_is_private_and_a_resumed_run_keeps_the_mode() {
    if !needs_faults() {
        return;
    }
    let tree = Tree::parse("d/f 1, e/g 2");
    let out = beside(&tree, "inv");
    let halted = StoppedScan::at(&tree, &out, "manifest-written", &["--mode=644", "."]);
    assert_eq!(all_bits(&part_of(&out)), (0o700, vec![0o600]));
    assert!(halted.go_on().status.success());
    assert_eq!(all_bits(&out), (0o755, vec![0o644]));
    for point in ["journal-synced:2", "manifest-written"] {
        let out = beside(&tree, point);
        killed_at(&tree, &out, point, &["--checkpoint=1", "--mode=644", "."]);
        assert!(run(scan(&tree).args(["--resume", "-o"]).arg(&out)).status.success(), "{point}");
        assert_eq!(all_bits(&out), (0o755, vec![0o644]), "{point}");
    }
}
