//! Mount points: `-x`, directories that are mounted twice, and directories that are mounted inside
//! themselves.

use crate::support::fuse::{ScriptedFs, TOP};
use crate::support::{Tree, du, needs_fuse, needs_mounts};

fn tree() -> Tree {
    Tree::parse("a/x 9000, a/mnt/, a/z/y 100, b/mnt/, c 10, l -> a/mnt, a/l -> mnt, b/file")
}

const TMPFS: &str = "mount -t tmpfs none a/mnt; mkdir a/mnt/d; head -c 5000 /dev/zero >a/mnt/d/f";

#[test]
fn other_file_systems_are_left_out_whole() {
    if !needs_mounts() {
        return;
    }
    let tree = tree();
    let entered = du(&tree, "-a a").own_mounts().after(TMPFS).compare();
    entered.prints("a/mnt/d/f\n");
    for words in ["-x a", "-ax", "-ax a b", "-sx a", "-x --inodes a", "-axS a", "-xc a b", "-axl a a"] {
        let out = du(&tree, words).own_mounts().after(TMPFS).compare();
        assert!(!out.out().contains("mnt/d"), "{out:?}");
    }
}

#[test]
fn an_operand_is_never_on_another_file_system() {
    if !needs_mounts() {
        return;
    }
    let tree = tree();
    for words in [
        "-ax a/mnt",
        "-ax a a/mnt",
        "-ax a/mnt a",
        "-ax a/mnt/d/f c",
        "-x /dev/null c",
        "-xs a a/mnt b",
        "-ax /proc/self/stat c",
    ] {
        du(&tree, words).own_mounts().after(TMPFS).compare().prints("\t");
    }
}

#[test]
fn a_followed_link_may_lead_to_another_file_system() {
    if !needs_mounts() {
        return;
    }
    let tree = tree();
    for words in ["-axL a", "-axL", "-axD l", "-axL l", "-axL l a", "-aL a", "-axD a l", "-axP l"] {
        du(&tree, words).own_mounts().after(TMPFS).compare().status(0);
    }
}

#[test]
fn a_file_bound_to_another_counts_once_for_several_operands() {
    if !needs_mounts() {
        return;
    }
    let tree = tree();
    let bound = "mount --bind a/x b/file; touch a/mnt/f; mount --bind c a/mnt/f";
    for words in
        ["-a a b", "-a b a", "-ac b a c", "-a c a b", "-s a/mnt b a", "-a b/file a", "-x a b", "-al b a"]
    {
        du(&tree, words).own_mounts().after(bound).compare();
    }
    for mounts in ["mount --bind a b", "mount --bind a/z b/mnt", TMPFS] {
        for words in ["-a a b", "-a b/mnt a a/z", "-s b a a/mnt/d/f", "-ac a/mnt a b"] {
            du(&tree, words).own_mounts().after(mounts).compare();
        }
    }
}

#[test]
fn a_place_bound_twice_counts_twice_for_one_operand() {
    if !needs_mounts() {
        return;
    }
    let tree = tree();
    for words in [
        "-a .",
        "-x .",
        "-s",
        "-s a b",
        "-c b a",
        "-a b/mnt a",
        "--inodes",
        "-l",
        "-L",
        "-ab a b/mnt",
        "-x b",
    ] {
        du(&tree, words).own_mounts().after("mount --bind a b/mnt").compare().status(0);
    }
    let one = du(&tree, "-s").own_mounts().after("mount --bind a b/mnt").compare();
    let two = du(&tree, "-sc a b").own_mounts().after("mount --bind a b/mnt").compare();
    assert_ne!(one.out(), two.out());
}

#[test]
fn a_bound_file_counts_as_its_links_say() {
    if !needs_mounts() {
        return;
    }
    let tree = tree();
    for words in ["-a .", "-a a/x b/file", "-a a b", "-ax b", "-al a b"] {
        du(&tree, words).own_mounts().after("mount --bind a/x b/file").compare().status(0);
    }
}

#[test]
fn a_directory_bound_inside_itself_is_silent() {
    if !needs_mounts() {
        return;
    }
    let tree = tree();
    for words in [
        "a",
        "-a a",
        ".",
        "-s a",
        "-l a",
        "-L a",
        "a b",
        "-x a",
        "a/mnt",
        "a/mnt a",
        "a a/mnt",
        "-ab a/z a",
        "--inodes a",
    ] {
        du(&tree, words).own_mounts().after("mount --bind a a/mnt").compare().says("").status(0);
    }
}

#[test]
fn a_directory_bound_deeper_inside_itself_is_silent() {
    if !needs_mounts() {
        return;
    }
    let tree = Tree::parse("a/b/c/d/, a/b/x 5000");
    for words in ["a", "-a .", "-al a", "a/b/c/d", "a/b/c a", "-S a"] {
        du(&tree, words).own_mounts().after("mount --bind a a/b/c/d").compare().says("").status(0);
        du(&tree, words).own_mounts().after("mount --bind a/b a/b/c/d").compare().says("").status(0);
    }
}

#[test]
fn a_cycle_that_is_no_mount_is_a_damaged_file_system() {
    if !needs_fuse() {
        return;
    }
    let tree = Tree::parse("mnt/, plain/x 100");
    let mut script = ScriptedFs::new();
    let top = script.dir(TOP, "top");
    script.file(top, "f", 8);
    let inner = script.dir(top, "inner");
    script.file(inner, "g", 16);
    let again = script.dir(inner, "again");
    script.same_inode(again, top);
    script.file(top, "z", 24);
    for words in [
        "mnt",
        "-a mnt",
        "-s mnt/top",
        "-al mnt",
        "-S mnt",
        "-x mnt",
        "-c mnt",
        "-l mnt/top plain",
        "-lc mnt mnt/top",
    ] {
        du(&tree, words).mounting(&script).compare().says("Circular directory structure").status(1);
    }
    // With two operands, the directory is silent because it was counted before.
    for words in ["mnt/top plain", "mnt/top mnt", "-c mnt/top/inner mnt/top plain", "-a plain mnt"] {
        du(&tree, words).mounting(&script).compare().says("").status(0);
    }
    for words in ["-L mnt", "-aL mnt/top", "-lL mnt"] {
        du(&tree, words).mounting(&script).compare().says("").status(0);
    }
}

#[test]
fn a_directory_that_is_its_own_entry() {
    if !needs_fuse() {
        return;
    }
    let tree = Tree::parse("mnt/");
    let mut script = ScriptedFs::new();
    let dir = script.dir(TOP, "d");
    let same = script.dir(dir, "d");
    script.same_inode(same, dir);
    let twin = script.dir(TOP, "twin");
    script.same_inode(twin, dir);
    for words in ["-a mnt", "mnt/d", "-l mnt/d mnt/twin"] {
        du(&tree, words).mounting(&script).compare();
    }
    du(&tree, "mnt/twin").mounting(&script).compare().status(0);
}

#[test]
fn a_cycle_through_the_mount_point_is_silent() {
    if !needs_fuse() {
        return;
    }
    let tree = Tree::parse("mnt/");
    let mut script = ScriptedFs::new();
    let dir = script.dir(TOP, "d");
    let same = script.dir(dir, "again");
    script.same_inode(same, TOP);
    script.file(dir, "f", 8);
    for words in ["-a mnt", "-s mnt", "-a .", "mnt/d mnt"] {
        du(&tree, words).mounting(&script).compare().says("").status(0);
    }
}

#[test]
fn entries_hidden_by_a_mount_do_not_count() {
    if !needs_mounts() {
        return;
    }
    let tree = tree();
    for words in ["-a", "-ax", "-s a", "-a a/z a"] {
        du(&tree, words).own_mounts().after("mount -t tmpfs none a/z").compare().status(0);
    }
}

#[test]
fn the_root_of_a_mount_has_attributes_of_its_own() {
    if !needs_fuse() {
        return;
    }
    let tree = Tree::parse("a/mnt/, mnt/");
    let mut script = ScriptedFs::new();
    script.blocks(TOP, 40);
    script.modified(TOP, 1_500_000_000);
    script.file(TOP, "f", 8);
    for words in ["mnt", "-a .", "--time mnt", "--time --inodes -a", "-L mnt", "-D mnt", "-S mnt"] {
        // The attributes of a fresh mount are not cached: the kernel knows only that its root is a
        // directory.
        let fresh = du(&tree, words).mounting(&script);
        fresh.compare().prints("mnt\n").status(0);
    }
}
