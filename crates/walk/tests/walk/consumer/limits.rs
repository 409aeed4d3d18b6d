//! Dropped entries, the payload of an entry, and the order of messages.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fathom_walk::gatherer::{Builder, Filter, Message, Pick, Policy, PolicyEntry};
use fathom_walk::{Errno, FileType, Follow, Name, Node, Op, Opened, Operation};

use crate::support::child::{self, report, role};
use crate::support::tree::{Tree, bushy};

/// Returns the paths below the root, sorted.
fn found(builder: Builder, root: impl AsRef<Path>) -> BTreeSet<PathBuf> {
    let mut walk = builder.walk([root]).unwrap();
    let found = walk.by_ref().map(|item| item.unwrap().path.below_root()).collect();
    assert!(walk.finish().unwrap().complete);
    found
}

fn names<const N: usize>(names: [&str; N]) -> BTreeSet<PathBuf> {
    names.map(PathBuf::from).into()
}

#[test]
fn entries_are_limited_by_depth() {
    let tree = Tree::new();
    tree.dir("a/b/c");
    tree.file("f");
    tree.file("a/b/g");
    let new = Builder::new;
    assert_eq!(found(new(), tree.root()), names(["a", "a/b", "a/b/c", "a/b/g", "f"]));
    assert_eq!(found(new().max_depth(1), tree.root()), names(["a", "f"]));
    assert_eq!(found(new().min_depth(2).max_depth(2), tree.root()), names(["a/b"]));
    assert_eq!(found(new().max_depth(0), tree.root()), names([]));
    // A root that is a file is at depth 0.
    assert_eq!(found(new().max_depth(0), tree.path("f")), names([""]));
    assert_eq!(found(new().min_depth(1), tree.path("f")), names([]));
}

#[test]
fn one_file_system_stays_on_the_device_of_the_root() {
    const TEST: &str = "consumer::limits::one_file_system_stays_on_the_device_of_the_root";
    if let Some((_, tree)) = role() {
        let crossed = found(Builder::new(), &tree).len();
        let stayed = found(Builder::new().one_file_system(true), &tree);
        let held = stayed == names(["beside", "mounted"]);
        report("crossed", crossed);
        return report("held", u8::from(held));
    }
    let tree = Tree::new();
    tree.dir("mounted");
    tree.file("beside");
    let prepare = "mount -t tmpfs none \"$0/mounted\" && mkdir -p \"$0/mounted/x/y\"";
    let Some(report) = child::run_with_mounts(TEST, "mounts", &tree.root(), prepare) else { return };
    assert_eq!((report.number("crossed"), report.number("held")), (4, 1));
}

#[test]
fn contents_come_before_their_directory() {
    let tree = Tree::new();
    bushy(&tree.root(), 3, 4);
    for workers in [1, 8] {
        let walk = Builder::new().workers(workers).contents_first(true).walk([tree.root()]).unwrap();
        let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
        for item in walk {
            let path = item.unwrap().path.below_root();
            let parent = path.parent().unwrap().to_owned();
            assert!(!seen.contains(&parent), "{parent:?} before {path:?}");
            assert!(seen.insert(path));
        }
        assert_eq!(seen, found(Builder::new(), tree.root()), "each once");
    }
}

#[test]
fn a_directory_that_fails_comes_after_its_failure() {
    let tree = Tree::new();
    tree.dir("a/b");
    tree.symlink("..", "a/b/up");
    let walk = Builder::new().follow(Follow::Yes).contents_first(true).walk([tree.root()]).unwrap();
    let results: Vec<_> = walk.map(|item| item.map(|item| item.path.below_root())).collect();
    let Some(Err(failed)) = results.first() else { panic!("{results:?}") };
    assert_eq!((failed.operation, failed.errno), (Operation::Descend, Errno::LOOP));
    let rest: Vec<_> = results[1..].iter().map(|path| path.as_ref().unwrap().to_str().unwrap()).collect();
    assert_eq!(rest, ["a/b/up", "a/b", "a"]);
}

#[test]
fn a_function_is_a_filter() {
    let tree = Tree::new();
    tree.dir("keep/.git/objects");
    tree.dir(".git/x");
    tree.file("keep/f");
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let filter = move |_: &Arc<Node>, name: Name<'_>| {
        count.fetch_add(1, Ordering::Relaxed);
        assert_ne!(name.file_type, FileType::Unknown);
        name.name != c".git"
    };
    assert_eq!(found(Builder::new().filter(filter), tree.root()), names(["keep", "keep/f"]));
    assert_eq!(calls.load(Ordering::Relaxed), 4, "once for each entry, and not below dropped entries");
}

/// Drops the names that are listed in a file `.ignore` of the directory or of an ancestor.
struct IgnoreFiles;

impl Filter for IgnoreFiles {
    fn opened(&self, dir: &Opened<'_>) -> usize {
        if !dir.names.iter().any(|name| name.name == c".ignore") {
            return 0;
        }
        let file = fathom_io::sys::open_file(dir.at, c".ignore", Follow::No);
        let mut text = String::new();
        fs::File::from(file.unwrap()).read_to_string(&mut text).unwrap();
        let bytes = text.len();
        dir.node.set_note(text);
        bytes
    }

    fn keeps(&self, dir: &Arc<Node>, name: Name<'_>) -> bool {
        let mut rules = dir.chain().filter_map(|node| node.note::<String>());
        !rules.any(|rules| rules.lines().any(|line| line.as_bytes() == name.name.to_bytes()))
    }
}

#[test]
fn a_filter_reads_ignore_files_in_directories() {
    let tree = Tree::new();
    tree.dir("a/target/x");
    tree.dir("a/b/target");
    tree.dir("target");
    tree.file("a/b/secret");
    tree.file("secret");
    fs::write(tree.path("a/.ignore"), "target\nsecret\n").unwrap();
    let expected = names(["a", "a/.ignore", "a/b", "secret", "target"]);
    for workers in [1, 4] {
        let builder = Builder::new().workers(workers).filter(IgnoreFiles).metadata(true);
        assert_eq!(found(builder, tree.root()), expected);
    }
}

/// Sends a line about each large file, from its metadata and its contents.
struct Large;

impl Policy<String> for Large {
    fn wants_metadata(&self, dir: &Arc<Node>, file_type: FileType) -> bool {
        assert!(dir.id().is_some());
        file_type == FileType::Regular
    }

    fn pick(&self, entry: &PolicyEntry<'_>) -> Pick<String> {
        let Some(meta) = entry.meta() else { return Pick::default().descend() };
        if meta.size < 3 {
            return Pick::default();
        }
        let mut text = String::new();
        entry.open(Follow::No).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(entry.stat(Follow::No, fathom_walk::Fields::ALL).unwrap().size, meta.size);
        let name = entry.file_name().to_str().unwrap();
        Pick::send_with(0, format!("{name} at depth {}: {text}", entry.depth()))
    }
}

#[test]
fn a_policy_reads_metadata_and_contents_and_sends_payloads() {
    let tree = Tree::new();
    tree.dir("a");
    fs::write(tree.path("a/large"), "three").unwrap();
    fs::write(tree.path("small"), "2").unwrap();
    tree.symlink("a/large", "link");
    let (gatherer, inboxes) = Builder::new().start(Large).unwrap();
    gatherer.add_root(tree.root()).unwrap();
    gatherer.add_root(tree.path("a/large")).unwrap();
    gatherer.no_more_roots();
    let lines = inboxes.into_iter().flatten().filter_map(|message| match message {
        Message::Entry(item) => Some(item.payload),
        _ => None,
    });
    let lines: BTreeSet<String> = lines.collect();
    let root = format!("{} at depth 0: three", tree.path("a/large").display());
    assert_eq!(lines, BTreeSet::from([root, "large at depth 2: three".to_owned()]));
    assert!(gatherer.add_root(tree.root()).is_err(), "no more roots were to come");
    assert!(gatherer.finish().unwrap().complete);
}

#[test]
fn an_iterator_that_is_dropped_early_ends_the_walk() {
    let tree = Tree::new();
    bushy(&tree.root(), 5, fathom_cases::count(5).max(4));
    let mut walk = Builder::new().backlog(1).walk([tree.root()]).unwrap();
    assert!(walk.next().is_some());
    assert!(!walk.finish().unwrap().complete);
    drop(Builder::new().walk([tree.root()]).unwrap());
    let empty: [&Path; 0] = [];
    assert_eq!(Builder::new().walk(empty).unwrap().count(), 0);
    assert_eq!(Builder::new().walk(["a\0b"]).unwrap_err().op(), Op::AddRoot);
    let mut missing = Builder::new().walk([tree.path("missing")]).unwrap();
    let failed = missing.next().unwrap().unwrap_err();
    assert_eq!((failed.operation, failed.errno), (Operation::Access, Errno::NOENT));
    assert!(missing.next().is_none());
    assert!(!missing.finish().unwrap().complete);
}
