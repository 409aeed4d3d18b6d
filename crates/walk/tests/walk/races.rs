//! Another thread swaps directories of a tree for links that lead out of it, or for other
//! directories, during a walk. The walk never reports a name, size or directory outside the tree,
//! or an entry in a directory that never contained it.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::child::{self, report, role};
use crate::support::record::{Everything, Recorder};
use crate::support::tree::Tree;
use crate::support::way::{self, SYNC, Way};
use crate::support::{Random, skip};
use rustix::fs::{RenameFlags, renameat_with};

const LEVELS: usize = 40;
/// Maximum time to wait until a walk meets a swap.
const PATIENCE: Duration = Duration::from_secs(300);
/// Length of the files outside the tree. Files in the tree have another length.
const SECRET_BYTES: usize = 4_242;

const NAMES: [&str; 3] = ["a", "m", "z"];

/// Returns the name of the directory at this level that has directories. They alternate: in
/// whichever order a filesystem has names, there are levels at which others follow.
fn next_name(level: usize) -> &'static str {
    NAMES[level % NAMES.len()]
}

/// Creates a tree. The trees inside and outside have the same names, so that every wrong lookup
/// finds a directory.
fn build(dir: &Path, levels: usize, bytes: usize) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("file"), vec![b'x'; bytes]).unwrap();
    for name in if levels == 0 { [].as_slice() } else { &NAMES } {
        fs::create_dir(dir.join(name)).unwrap();
        fs::write(dir.join(name).join("file"), vec![b'x'; bytes]).unwrap();
    }
    if levels > 0 {
        build(&dir.join(next_name(LEVELS - levels)), levels - 1, bytes);
    }
}

fn level(dir: &Path, depth: usize) -> PathBuf {
    dir.join((0..depth).map(next_name).collect::<PathBuf>())
}

/// Returns the inode numbers of `dir` and of everything below.
fn inodes(dir: &Path) -> HashSet<u64> {
    let mut found = HashSet::new();
    let mut rest = vec![dir.to_owned()];
    while let Some(path) = rest.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        found.insert(metadata.ino());
        if metadata.is_dir() {
            rest.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    found
}

/// The replacement of a directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Decoy {
    /// A link to the directory outside with the same place.
    Link,
    /// That directory itself, which is then in the tree.
    Directory,
}

/// The names of a directory and of its replacement.
struct Swap {
    parent: OwnedFd,
    name: String,
    beside: Arc<OwnedFd>,
    decoy: String,
}

impl Swap {
    fn new(tree: &Path, opened: &Arc<OwnedFd>, depth: usize, kind: Decoy) -> Self {
        let beside = tree.parent().unwrap();
        let (dir, decoy) = (level(tree, depth), format!("decoy-{depth}"));
        if kind == Decoy::Link {
            symlink(level(&beside.join("outside"), depth), beside.join(&decoy)).unwrap();
        } else {
            build(&beside.join(&decoy), LEVELS - depth, SECRET_BYTES);
        }
        let parent = File::open(dir.parent().unwrap()).unwrap().into();
        let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
        Self { parent, name, beside: opened.clone(), decoy }
    }

    fn swap(&self) -> bool {
        renameat_with(&self.parent, &*self.name, &*self.beside, &*self.decoy, RenameFlags::EXCHANGE).is_ok()
    }
}

/// Returns the first line about an entry in a directory that never contained it.
fn misplaced(lines: &[String], outside: &HashSet<u64>, kind: Decoy) -> Option<String> {
    let secret = format!(" {SECRET_BYTES}");
    let mut inside = vec![false];
    lines.iter().find_map(|line| {
        let among_decoys = *inside.last().unwrap();
        let right = if line.starts_with("enter ") {
            let ino = line.split(' ').nth(3).unwrap().trim_end_matches(':').parse().unwrap();
            inside.push(outside.contains(&ino));
            // A directory below a decoy is one of the decoy's, and a decoy may replace a directory.
            outside.contains(&ino) == among_decoys || (kind == Decoy::Directory && !among_decoys)
        } else if line.starts_with("leave") {
            inside.pop();
            true
        } else {
            line.contains("error") || line.contains("Symlink") || line.ends_with(&secret) == among_decoys
        };
        (!right).then(|| line.clone())
    })
}

/// Counts of the walks during which directories were swapped.
#[derive(Debug, Default)]
struct SwapCounts {
    walks: usize,
    swaps: usize,
    /// Number of lines about decoys.
    met: usize,
    errors: usize,
}

/// Walks `tree` in each of the ways in turn, at least `rounds` times and until walks have met swaps
/// and `errors`. Fails if a walk reports an entry in a directory that never contained it.
#[track_caller]
fn walk_while_swapping(
    tree: &Path,
    depths: &[usize],
    kind: Decoy,
    ways: &[Way],
    rounds: usize,
    errors: usize,
) -> SwapCounts {
    let beside = tree.parent().unwrap();
    let opened = Arc::new(OwnedFd::from(File::open(beside).unwrap()));
    let swaps: Vec<Swap> = depths.iter().map(|depth| Swap::new(tree, &opened, *depth, kind)).collect();
    let mut outside = inodes(&beside.join("outside"));
    if kind == Decoy::Directory {
        outside.extend(swaps.iter().flat_map(|swap| inodes(&beside.join(&swap.decoy))));
    }
    let (done, swapped) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (mut counts, mut wrong) = (SwapCounts::default(), None);
    std::thread::scope(|scope| {
        let swapper = scope.spawn(|| swap_until(&done, &swapped, &swaps));
        let start = Instant::now();
        // On a filesystem that cannot swap names, no walk meets a swap.
        let waits = |counts: &SwapCounts| {
            let has_met = counts.met > 0 && counts.errors >= errors;
            !has_met && swapped.load(Ordering::Relaxed) > 0 && start.elapsed() < PATIENCE
        };
        while wrong.is_none() && (counts.walks < rounds * ways.len() || waits(&counts)) {
            let mut recorder = Recorder::new(&[tree]);
            way::walk(ways[counts.walks % ways.len()].options(), Everything::default(), &mut recorder);
            wrong = misplaced(&recorder.lines, &outside, kind);
            let count = |what: &str| recorder.lines.iter().filter(|line| line.contains(what)).count();
            counts.walks += 1;
            counts.met += count("Symlink") + count(&format!(" {SECRET_BYTES}"));
            counts.errors += count("error");
        }
        done.store(true, Ordering::Relaxed);
        swapper.join().unwrap();
    });
    counts.swaps = swapped.into_inner();
    assert_eq!(wrong, None, "an entry in a directory that never contained it");
    counts
}

fn swap_until(done: &AtomicBool, swapped: &AtomicUsize, swaps: &[Swap]) {
    let mut random = Random::new(1);
    while !done.load(Ordering::Relaxed) {
        swapped.fetch_add(usize::from(swaps[random.below(swaps.len())].swap()), Ordering::Relaxed);
        for _ in 0..random.below(3) {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

fn trees() -> Tree {
    let tree = Tree::new();
    build(&tree.root(), LEVELS, 1);
    build(&tree.beside("outside"), LEVELS, SECRET_BYTES);
    tree
}

#[track_caller]
fn check(counts: &SwapCounts, has_errors: bool) {
    println!("{counts:?}");
    if counts.swaps == 0 {
        skip("this filesystem cannot swap two names");
        return;
    }
    assert!(counts.met > 0 && (!has_errors || counts.errors > 0), "no walk met a swap: {counts:?}");
}

#[test]
fn directories_swapped_for_links_lead_nowhere() {
    let tree = trees();
    check(&walk_while_swapping(&tree.root(), &[1, 13, 26, LEVELS], Decoy::Link, &way::all(), 5, 0), false);
}

#[test]
fn a_root_swapped_for_a_link_leads_nowhere() {
    let tree = trees();
    check(&walk_while_swapping(&tree.root(), &[0], Decoy::Link, &way::all(), 5, 0), false);
}

/// With few descriptors, directories are reopened on the way up. A link or another directory may
/// have replaced them by then.
#[test]
fn reopened_directories_are_the_same_ones() {
    let test = "races::reopened_directories_are_the_same_ones";
    if let Some((role, tree)) = role() {
        let kind = if role == "links" { Decoy::Link } else { Decoy::Directory };
        let ways = [SYNC, Way::workers(2)];
        let counts = walk_while_swapping(&tree, &[3, 10, 17, 21], kind, &ways, 20, 1);
        for (key, value) in [("swaps", counts.swaps), ("met", counts.met), ("errors", counts.errors)] {
            report(key, value);
        }
        return;
    }
    for role in ["links", "directories"] {
        let tree = trees();
        let report = child::run(test, role, &tree.root(), 32);
        let [swaps, met, errors] = ["swaps", "met", "errors"].map(|key| report.number(key));
        check(&SwapCounts { walks: 0, swaps, met, errors }, true);
    }
}
