//! A tree with the cases that are easy to get wrong, and its inventory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::query::engine::{fathom, inventory_name};
use crate::support::tree::{Tree, name};

/// The roots of the scan, in this order. `absent` does not exist.
pub(crate) const ROOTS: [&[u8]; 5] = [b"home", b"other//", b"alone\xff.Txt", b"absent", b"link"];
/// Seconds of a day.
const DAY: i64 = 86_400;

/// The tree, with its inventory inside the same directory.
pub(crate) struct ScannedTree {
    tree: Tree,
}

impl ScannedTree {
    pub(crate) fn new() -> Self {
        let tree = Tree::parse(
            "home/src/a.rs 5000, home/src/deep/er/b.RS 70000, home/src/deep/c.log 100, home/copy/a.rs 5000, home/empty/, \
             home/src/none/, home/d.log 3, home/big 3000000, home/hole ~3G, home/hard = home/big, home/src/hard = home/big, \
             home/pair.txt 40000, home/copy/pair2.txt = home/pair.txt, home/to-dir -> src, home/dangling -> nowhere, \
             home/fifo |, home/socket %, home/.hidden 1, home/.dot/x.tar.gz 9, home/anybody 1, home/anydir/, \
             home/sticky/, home/program 10, other/one/two 7, other/three 8, link -> home",
        );
        for odd in [
            b"it's".as_slice(),
            b"with \"quotes\"",
            b"new\nline",
            b"back\\slash",
            b"*?[x]",
            b"\xff\xfe.JPG",
            b"\xe4\\",
        ] {
            tree.file(OsStr::from_bytes(&[b"home/odd\\names/", odd].concat()), 11);
            tree.file(OsStr::from_bytes(&[b"home/odd \xf1/", odd].concat()), 12);
        }
        tree.file(name(ROOTS[2]), 77);
        tree.symlink("home/odd-target", name(b"\xfe\\'"));
        let tree = tree.wide("home/wide", 3000).mode("home/anybody", 0o666).mode("home/anydir", 0o777);
        let tree = tree.mode("home/sticky", 0o1777).mode("home/program", 0o4755);
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs().cast_signed();
        tree.times("home/src/a.rs", (now - 500 * DAY, 0), (now - 600 * DAY, 123_456_789));
        tree.times("home/d.log", (now - 400 * DAY, 0), (now - 30 * DAY, 999_999_999));
        tree.times("home/big", (now - 300 * DAY, 0), (now - 300 * DAY, 1));
        tree.times("home/hole", (now, 0), (-5, 1500));
        let home = Self { tree };
        home.scan();
        home
    }

    fn scan(&self) {
        let inventory = inventory_name();
        let mut words = vec![OsStr::new("scan"), OsStr::new("-o"), &inventory];
        words.extend(ROOTS.map(OsStr::from_bytes));
        let output = fathom(self.path(), &words).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "'absent' is missing: {output:?}");
    }

    /// The directory that contains the roots and the inventory.
    pub(crate) fn path(&self) -> &Path {
        self.tree.path()
    }

    /// Returns a path in that directory.
    pub(crate) fn at(&self, name: impl AsRef<OsStr>) -> std::path::PathBuf {
        self.tree.at(name)
    }
}
