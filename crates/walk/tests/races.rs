//! While a tree is walked somebody swaps its directories for links that lead out of it, or for
//! other directories. Nothing outside is ever told, not a name, not a size, not a directory; and
//! nothing as in a directory where it never was.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{RenameFlags, renameat_with};
use support::child::{self, report, role};
use support::record::{Everything, Recorder};
use support::tree::Tree;
use support::way::{self, SYNC, Way};
use support::{Random, skip};

const LEVELS: usize = 40;
/// How long swaps are waited for that no walk meets.
const PATIENCE: Duration = Duration::from_secs(300);
/// Length of the files outside, which none inside has.
const SECRET_BYTES: usize = 4_242;

/// Inside and outside are made alike, so that a name that leads astray leads somewhere.
fn build(dir: &Path, levels: usize, bytes: usize) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("file"), vec![b'x'; bytes]).unwrap();
    for name in if levels == 0 { [].as_slice() } else { &["a", "z"] } {
        fs::create_dir(dir.join(name)).unwrap();
        fs::write(dir.join(name).join("file"), vec![b'x'; bytes]).unwrap();
    }
    if levels > 0 {
        build(&dir.join("m"), levels - 1, bytes);
    }
}

fn level(dir: &Path, depth: usize) -> PathBuf {
    dir.join(vec!["m"; depth].join("/"))
}

/// Inode numbers of `dir` and of everything below.
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

/// What a directory is swapped with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Decoy {
    /// A link to the directory outside that is like it.
    Link,
    /// That directory itself, which is then inside.
    Directory,
}

/// A directory's place in its parent, and that of its decoy.
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

/// The first line that tells of something in a directory where it never was.
fn misplaced(lines: &[String], outside: &HashSet<u64>, kind: Decoy) -> Option<String> {
    let secret = format!(" {SECRET_BYTES}");
    let mut inside = vec![false];
    lines.iter().find_map(|line| {
        let among_decoys = *inside.last().unwrap();
        let right = if line.starts_with("enter ") {
            let ino = line.split(' ').nth(3).unwrap().trim_end_matches(':').parse().unwrap();
            inside.push(outside.contains(&ino));
            // What is below a decoy is one, and a decoy may be met where a directory had been.
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

/// What a number of walks while directories were swapped came to.
#[derive(Debug, Default)]
struct Hunt {
    walks: usize,
    swaps: usize,
    /// Lines of what was not where it had been.
    met: usize,
    errors: usize,
}

/// Walks `tree` in the ways given, one after another, each `rounds` times, and until swaps and
/// `errors` have been met; fails if anything is told that never was there.
#[track_caller]
fn hunt(tree: &Path, depths: &[usize], kind: Decoy, ways: &[Way], rounds: usize, errors: usize) -> Hunt {
    let beside = tree.parent().unwrap();
    let opened = Arc::new(OwnedFd::from(File::open(beside).unwrap()));
    let swaps: Vec<Swap> = depths.iter().map(|depth| Swap::new(tree, &opened, *depth, kind)).collect();
    let mut outside = inodes(&beside.join("outside"));
    if kind == Decoy::Directory {
        outside.extend(swaps.iter().flat_map(|swap| inodes(&beside.join(&swap.decoy))));
    }
    let (done, swapped) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (mut hunt, mut wrong) = (Hunt::default(), None);
    std::thread::scope(|scope| {
        let swapper = scope.spawn(|| swap_until(&done, &swapped, &swaps));
        let start = Instant::now();
        // Where names cannot be swapped, nothing is ever met.
        let waits = |hunt: &Hunt| {
            let has_met = hunt.met > 0 && hunt.errors >= errors;
            !has_met && swapped.load(Ordering::Relaxed) > 0 && start.elapsed() < PATIENCE
        };
        while wrong.is_none() && (hunt.walks < rounds * ways.len() || waits(&hunt)) {
            let mut recorder = Recorder::new(&[tree]);
            way::walk(ways[hunt.walks % ways.len()].options(), Everything::default(), &mut recorder);
            wrong = misplaced(&recorder.lines, &outside, kind);
            let count = |what: &str| recorder.lines.iter().filter(|line| line.contains(what)).count();
            hunt.walks += 1;
            hunt.met += count("Symlink") + count(&format!(" {SECRET_BYTES}"));
            hunt.errors += count("error");
        }
        done.store(true, Ordering::Relaxed);
        swapper.join().unwrap();
    });
    hunt.swaps = swapped.into_inner();
    assert_eq!(wrong, None, "told where it never was");
    hunt
}

fn swap_until(done: &AtomicBool, swapped: &AtomicUsize, swaps: &[Swap]) {
    let mut random = Random(1);
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
fn check(hunt: &Hunt, has_errors: bool) {
    println!("{hunt:?}");
    if hunt.swaps == 0 {
        skip("this filesystem cannot swap two names");
        return;
    }
    assert!(hunt.met > 0 && (!has_errors || hunt.errors > 0), "no walk met a swap: {hunt:?}");
}

#[test]
fn directories_swapped_for_links_lead_nowhere() {
    let tree = trees();
    check(&hunt(&tree.root(), &[1, 13, 26, LEVELS], Decoy::Link, &way::all(), 5, 0), false);
}

#[test]
fn a_root_swapped_for_a_link_leads_nowhere() {
    let tree = trees();
    check(&hunt(&tree.root(), &[0], Decoy::Link, &way::all(), 5, 0), false);
}

/// With few descriptors directories are opened a second time on the way up, by then perhaps a link
/// or another directory.
#[test]
fn directories_found_again_are_those_that_were_there() {
    let test = "directories_found_again_are_those_that_were_there";
    if let Some((role, tree)) = role() {
        let kind = if role == "links" { Decoy::Link } else { Decoy::Directory };
        let ways = [SYNC, Way::workers(2)];
        let hunt = hunt(&tree, &[3, 9, 15, 21], kind, &ways, 20, 1);
        for (key, value) in [("swaps", hunt.swaps), ("met", hunt.met), ("errors", hunt.errors)] {
            report(key, value);
        }
        return;
    }
    for role in ["links", "directories"] {
        let tree = trees();
        let report = child::run(test, role, &tree.root(), 32);
        let [swaps, met, errors] = ["swaps", "met", "errors"].map(|key| report.number(key));
        check(&Hunt { walks: 0, swaps, met, errors }, true);
    }
}
