//! Generated trees: every model lists the same as std, with any names, types, sizes and batch
//! sizes.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use fathom_io::blocking::Blocking;
use fathom_io::sim::{Faults, Rates};
use fathom_io::tokio_fs::{AsyncPar, AsyncSeq};
use fathom_io::{FileType, Follow, MetadataModel};
use proptest::collection::vec;
use proptest::prelude::*;
use rustix::fs::{CWD, FileType as Kind, Mode};

use crate::listing::{list, list_std, open};

/// A file or directory of a generated tree.
#[derive(Clone, Debug)]
enum Node {
    File(Vec<u8>),
    Sparse(u64),
    Link(Vec<u8>),
    /// A hard link to the regular file created this many files before.
    Same(usize),
    Fifo,
    Dir(Vec<(Vec<u8>, Node)>),
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let byte = any::<u8>().prop_filter("no byte of a name", |byte| !b"\0/".contains(byte));
    let short = vec(byte.clone(), 1..12);
    let long = vec(byte, 240..=255);
    prop_oneof![9 => short, 1 => long].prop_filter("a name of its own", |name| name != b"." && name != b"..")
}

fn node() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        4 => vec(any::<u8>(), 0..9000).prop_map(Node::File),
        1 => (0_u64..1 << 40).prop_map(Node::Sparse),
        2 => name().prop_map(Node::Link),
        2 => (0_usize..8).prop_map(Node::Same),
        1 => Just(Node::Fifo),
    ];
    leaf.prop_recursive(4, 60, 12, |inner| vec((name(), inner), 0..12).prop_map(Node::Dir))
}

/// Creates `nodes` in `dir`. Skips duplicate names.
fn plant(dir: &Path, nodes: &[(Vec<u8>, Node)], files: &mut Vec<PathBuf>) {
    let mut taken = BTreeSet::new();
    for (name, node) in nodes.iter().filter(|(name, _)| taken.insert(name.clone())) {
        let path = dir.join(OsString::from_vec(name.clone()));
        match node {
            Node::File(content) => fs::write(&path, content).unwrap(),
            Node::Sparse(len) => File::create(&path).unwrap().set_len(*len).unwrap(),
            Node::Link(to) => symlink(OsString::from_vec(to.clone()), &path).unwrap(),
            Node::Same(back) => {
                if let Some(file) = files.iter().rev().nth(*back) {
                    fs::hard_link(file, &path).unwrap();
                }
            }
            Node::Fifo => rustix::fs::mknodat(CWD, &path, Kind::Fifo, Mode::RUSR, 0).unwrap(),
            Node::Dir(nodes) => {
                fs::create_dir(&path).unwrap();
                plant(&path, nodes, files);
            }
        }
        if matches!(node, Node::File(_) | Node::Sparse(_)) {
            files.push(path);
        }
    }
}

/// Compares the listings of `path` and of all directories below it.
fn compare<M: MetadataModel>(model: &M, path: &Path, limit: usize, follow: Follow) {
    let mut queued = vec![path.to_path_buf()];
    while let Some(path) = queued.pop() {
        let seen = model.run(async { list(model, &open(model, &path).await, limit, follow).await });
        assert_eq!(seen, list_std(&path, follow), "{}", path.display());
        let directories = seen.into_iter().filter(|entry| entry.2 == FileType::Directory);
        queued.extend(directories.map(|entry| path.join(OsString::from_vec(entry.0))));
    }
}

/// Compares with every model that is available. The suites report the others as skipped.
fn compare_all(path: &Path, limit: usize, follow: Follow) {
    compare(&Blocking, path, limit, follow);
    compare(&Faults::new(1, Rates::default()).over(Blocking), path, limit, follow);
    AsyncSeq::new().into_iter().for_each(|model| compare(&model, path, limit, follow));
    AsyncPar::new().into_iter().for_each(|model| compare(&model, path, limit, follow));
    #[cfg(all(target_os = "linux", not(feature = "posix")))]
    for depth in [1, 3, 64] {
        fathom_io::uring::Uring::new(depth)
            .into_iter()
            .for_each(|model| compare(&model, path, limit, follow));
    }
}

proptest! {
    #![proptest_config(fathom_cases::property(64))]

    #[test]
    fn every_model_lists_generated_trees_as_std_does(
        nodes in vec((name(), node()), 0..20), limit in 1_usize..30, follow in any::<bool>()
    ) {
        let temp = tempfile::tempdir().unwrap();
        plant(temp.path(), &nodes, &mut Vec::new());
        compare_all(temp.path(), limit, if follow { Follow::Yes } else { Follow::No });
    }
}
