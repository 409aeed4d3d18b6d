//! Paths compare by their bytes, independently of their representation, and open the entry that was
//! found or none.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fathom_walk::gatherer::{Builder, EntryPath, Item};
use fathom_walk::{Errno, Fields, FileType, Follow};
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};

use crate::support::tree::{Chain, Tree, bushy, mixed};

fn walk(roots: &[impl AsRef<Path>]) -> Vec<Item> {
    let mut walk = Builder::new().metadata(true).walk(roots).unwrap();
    let items: Vec<_> = walk.by_ref().map(Result::unwrap).collect();
    assert!(walk.finish().unwrap().complete);
    items
}

fn hash(path: &EntryPath) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

#[test]
#[allow(clippy::mutable_key_type, reason = "the hash is of names, which do not change")]
fn paths_compare_by_their_bytes() {
    let tree = Tree::new();
    mixed(&tree);
    bushy(&tree.dir("d"), 3, 2);
    for name in ["d-", "d.x", "d0"] {
        tree.file(name);
    }
    // The walk finds the same entries below other roots, one of which ends in a slash.
    let slash = PathBuf::from(format!("{}/", tree.path("d").display()));
    let items = walk(&[tree.root(), tree.path("d"), slash]);
    let mut paths: Vec<_> = items.iter().map(|item| &item.path).collect();
    assert!(paths.len() > 300);
    for one in paths.iter().step_by(7) {
        for other in &paths {
            let (a, b) = (one.to_path_buf(), other.to_path_buf());
            assert_eq!(*one == *other, a == b, "{a:?} {b:?}");
            assert_eq!(one.cmp(other), a.cmp(&b), "{a:?} {b:?}");
            assert!(a != b || hash(one) == hash(other), "{a:?}");
        }
    }
    paths.sort();
    assert!(paths.is_sorted_by_key(|path| path.to_path_buf()));
    let distinct: std::collections::HashSet<_> = paths.iter().collect();
    let written: std::collections::HashSet<_> = paths.iter().map(|path| path.to_path_buf()).collect();
    assert_eq!(distinct.len(), written.len());
}

#[test]
fn views_are_those_of_the_standard_library() {
    let tree = Tree::new();
    tree.dir("a");
    fs::write(tree.path("a/f"), "text").unwrap();
    let items = walk(&[tree.root()]);
    let item = items.iter().find(|item| item.file_type == FileType::Regular).unwrap();
    let (path, meta) = (&item.path, item.meta.unwrap());
    assert_eq!(path.to_path_buf(), tree.path("a/f"));
    assert_eq!((path.file_name(), path.below_root()), ("f".as_ref(), PathBuf::from("a/f")));
    assert_eq!((path.depth(), path.root().index()), (2, 0));
    let dir = path.parent().unwrap();
    assert_eq!((dir.file_name(), dir.to_path_buf()), ("a".as_ref(), tree.path("a")));
    let truth = fs::metadata(tree.path("a/f")).unwrap();
    assert_eq!(meta.mtime.to_system_time(), truth.modified().ok());
    assert!(meta.ctime.to_system_time() >= Some(SystemTime::UNIX_EPOCH));
    assert_eq!(format!("{path}"), tree.path("a/f").display().to_string());
}

#[test]
fn deep_paths_are_compared_and_opened_without_recursion() {
    let chain = Chain::new(20_000, &[]);
    let items = walk(&[chain.root()]);
    let deepest = items.iter().max_by_key(|item| item.path.depth()).unwrap();
    let again = walk(&[chain.root()]);
    let other = again.iter().max_by_key(|item| item.path.depth()).unwrap();
    assert_eq!((deepest.path.depth(), &deepest.path), (20_000, &other.path));
    assert_eq!(
        (hash(&deepest.path), deepest.path.cmp(&other.path)),
        (hash(&other.path), std::cmp::Ordering::Equal)
    );
    let meta = deepest.path.stat(Follow::No, Fields::ALL).unwrap();
    assert_eq!(meta.ino, deepest.ino);
    assert!(deepest.path.open(Follow::No).unwrap().metadata().unwrap().is_dir());
}

fn read(path: &EntryPath) -> std::io::Result<String> {
    let mut text = String::new();
    path.open(Follow::No)?.read_to_string(&mut text)?;
    Ok(text)
}

fn file<'a>(items: &'a [Item], name: &str) -> &'a EntryPath {
    &items.iter().find(|item| item.path.file_name() == name).unwrap().path
}

#[test]
fn an_entry_is_opened_only_in_its_own_directory() {
    let tree = Tree::new();
    tree.dir("a/b");
    tree.file("a/b/f");
    tree.symlink("f", "a/b/link");
    let outside = tree.beside("outside");
    fs::create_dir_all(outside.join("b")).unwrap();
    fs::write(outside.join("b/f"), "secret").unwrap();
    let items = walk(&[tree.root()]);
    let (path, link) = (file(&items, "f"), file(&items, "link"));
    assert_eq!(read(path).unwrap(), "a/b/f");
    assert_eq!(read(link).unwrap_err().raw_os_error(), Some(Errno::LOOP.raw_os_error()));
    assert!(link.open(Follow::Yes).is_ok());
    // The directory of the file may still be open. Otherwise its path has become invalid.
    let assert_original_or = |wanted: &[Errno]| match read(path) {
        Ok(text) => assert_eq!(text, "a/b/f"),
        Err(error) => {
            assert!(wanted.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error())), "{error}")
        }
    };
    fs::rename(tree.path("a"), tree.beside("moved")).unwrap();
    tree.symlink("../outside", "a");
    assert_original_or(&[Errno::LOOP, Errno::NOTDIR]);
    fs::remove_file(tree.path("a")).unwrap();
    fs::rename(&outside, tree.path("a")).unwrap();
    assert_original_or(&[Errno::STALE]);
    fs::rename(tree.path("a"), &outside).unwrap();
    fs::rename(tree.beside("moved"), tree.path("a")).unwrap();
    assert_eq!(read(path).unwrap(), "a/b/f");
}

#[test]
fn a_directory_and_a_name_serve_other_calls() {
    let tree = Tree::new();
    tree.dir("a/b");
    tree.file("a/f");
    let items = walk(&[tree.root(), tree.path("a/f")]);
    let at = file(&items, "b").at().unwrap();
    assert!(openat(at.as_fd(), at.name(), OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).is_ok());
    unlinkat(at.as_fd(), at.name(), AtFlags::REMOVEDIR).unwrap();
    assert!(!tree.path("a/b").exists());
    // The path of a root is relative to the directory that relative roots start from.
    let root = &items.iter().find(|item| item.path.depth() == 0).unwrap().path;
    assert_eq!((read(root).unwrap().as_str(), root.parent().is_none()), ("a/f", true));
    unlinkat(root.at().unwrap(), root.name(), AtFlags::empty()).unwrap();
    assert!(!tree.path("a/f").exists());
}
