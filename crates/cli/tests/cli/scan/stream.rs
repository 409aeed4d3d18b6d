//! `-o -`: the finished inventory as a tar archive on standard output.

use std::fs::{self, File};
use std::process::Command;

use crate::scan::{beside, comparable_rows, run, scan, scan_completely};
use crate::support::{Tree, needs_tool};

#[test]
fn the_archive_on_standard_output_is_the_inventory() {
    if !needs_tool("tar") {
        return;
    }
    let tree = Tree::parse("d/f 5, d/e/g 9000");
    let temporary = beside(&tree, "temporary");
    let (archive, out) = (beside(&tree, "a.tar"), beside(&tree, "unpacked"));
    [&temporary, &out].into_iter().for_each(|path| fs::create_dir(path).unwrap());
    let mut command = scan(&tree);
    command.args(["-o", "-", "d"]).env("TMPDIR", &temporary).stdout(File::create(&archive).unwrap());
    let output = run(&mut command);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "the temporary directory is removed");
    let unpacked = run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&out));
    assert!(unpacked.status.success(), "{unpacked:?}");
    assert_eq!(comparable_rows(&out), comparable_rows(&scan_completely(&tree, "made", "d")));
}

#[test]
fn an_inventory_that_cannot_be_written_is_an_error() {
    let tree = Tree::parse("d/f 5");
    let full = run(scan(&tree).args(["-o", "-", "d"]).stdout(File::create("/dev/full").unwrap()));
    assert_eq!(full.status.code(), Some(2));
    let message = "fathom scan: cannot write the inventory: No space left on device\n";
    assert_eq!(String::from_utf8_lossy(&full.stderr), message);
    let resumed = run(scan(&tree).args(["-o", "-", "--resume", "d"]));
    assert_eq!(resumed.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&resumed.stderr).contains("--resume cannot be combined with '-o -'"));
    let none = run(scan(&tree).args(["-o", "-", "d"]).env("TMPDIR", "/nonexistent"));
    assert_eq!((none.status.code(), none.stdout.len()), (Some(2), 0));
    let message = "fathom scan: cannot create a temporary directory: No such file or directory";
    assert!(String::from_utf8_lossy(&none.stderr).starts_with(message), "{none:?}");
    let missing = run(scan(&tree).args(["-o", "-", "missing"]));
    assert_eq!(missing.status.code(), Some(1));
    assert!(missing.stdout.len() > 1024, "an incomplete inventory is written as well");
}
