//! Mount points in a namespace of their own: each is an error and stays with everything in it.

use std::process::{Command, Output};

use super::{parts, sorted};
use crate::support::commands::program;
use crate::support::{Tree, needs_mounts};

/// Runs a script in a mount namespace; `rm` in it is `fathom rm`.
pub(crate) fn script(tree: &Tree, text: &str) -> Output {
    let text = format!("set -e\nrm() {{ '{}' rm \"$@\"; }}\n{text}", program().display());
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &text]).current_dir(tree.path()).env("LC_ALL", "C");
    command.output().unwrap()
}

#[test]
fn a_mount_inside_is_left_with_all_directories_above_it() {
    if !needs_mounts() {
        return;
    }
    let tree = Tree::parse("d/a/m/, d/b/file 1, d/f 1, outside/file 1, d/c/bind/");
    let output = script(
        &tree,
        "mount -t tmpfs none d/a/m && touch d/a/m/inside
         mount --bind outside d/c/bind
         rm -rf d || echo status $?
         find d outside | sort",
    );
    let (_, stdout, stderr) = parts(&output);
    assert_eq!(
        sorted(&stderr),
        [
            "fathom rm: cannot remove 'd/a/m': It is a mount point",
            "fathom rm: cannot remove 'd/c/bind': It is a mount point",
        ]
    );
    assert_eq!(
        stdout,
        "status 1\nd\nd/a\nd/a/m\nd/a/m/inside\nd/c\nd/c/bind\nd/c/bind/file\noutside\noutside/file\n"
    );
}

#[test]
fn a_directory_with_a_mount_inside_does_not_go_to_the_trash() {
    if !needs_mounts() {
        return;
    }
    let tree = Tree::parse("d/a/, d/f 1, d-2/f 1, file/f, outside 1, data/");
    let output = script(
        &tree,
        "export XDG_DATA_HOME=$PWD/data
         mkdir 'd/a/m x'
         mount -t tmpfs none 'd/a/m x' && touch 'd/a/m x/inside'
         mount --bind outside file/f
         ln -s . link
         rm -r --trash link/d file d-2 || echo status $?
         find d file d-2 data/Trash/files data/Trash/info 2>/dev/null | sort",
    );
    let (_, stdout, stderr) = parts(&output);
    assert_eq!(
        stderr,
        "fathom rm: cannot trash 'link/d': Something is mounted in it\n\
         fathom rm: cannot trash 'file': Something is mounted in it\n"
    );
    assert_eq!(
        stdout,
        "status 1\nd\nd/a\nd/a/m x\nd/a/m x/inside\nd/f\ndata/Trash/files\ndata/Trash/files/d-2\n\
         data/Trash/files/d-2/f\ndata/Trash/info\ndata/Trash/info/d-2.trashinfo\nfile\nfile/f\n"
    );
}

#[test]
fn a_target_that_is_a_mount_point_is_left_and_so_is_a_mounted_file() {
    if !needs_mounts() {
        return;
    }
    let tree = Tree::parse("m/, d/file 1, outside 1");
    let output = script(
        &tree,
        "mount -t tmpfs none m && mkdir m/dir && touch m/dir/inside
         mount --bind outside d/file
         rm -rf m d || echo status $?
         rm -rf m/dir && find m d | sort",
    );
    let (_, stdout, stderr) = parts(&output);
    assert_eq!(
        sorted(&stderr),
        [
            "fathom rm: cannot remove 'd/file': Device or resource busy",
            "fathom rm: cannot remove 'm': It is a mount point",
        ]
    );
    assert_eq!(stdout, "status 1\nd\nd/file\nm\n");
}
