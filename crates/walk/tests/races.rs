//! While a tree is walked somebody swaps its directories for links that lead out of it. Nothing outside is ever told: not a
//! name, not the size of a file, not a directory.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{RenameFlags, renameat_with};
use support::child::{self, report, role};
use support::record::{Everything, Recorder};
use support::tree::Tree;
use support::way::{self, SYNC, Way};
use support::{Random, skip};

const LEVELS: usize = 40;
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

/// A directory's place in its parent, and the link beside the tree it is swapped with.
struct Swap {
    parent: OwnedFd,
    name: String,
    beside: Arc<OwnedFd>,
    link: String,
}

impl Swap {
    fn new(tree: &Path, opened: &Arc<OwnedFd>, depth: usize) -> Self {
        let beside = tree.parent().unwrap();
        let dir = level(tree, depth);
        let link = format!("link-{depth}");
        symlink(level(&beside.join("outside"), depth), beside.join(&link)).unwrap();
        let parent = File::open(dir.parent().unwrap()).unwrap().into();
        let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
        Self { parent, name, beside: opened.clone(), link }
    }

    fn swap(&self) -> bool {
        renameat_with(&self.parent, &*self.name, &*self.beside, &*self.link, RenameFlags::EXCHANGE).is_ok()
    }
}

/// What a number of walks while directories were swapped came to.
#[derive(Debug, Default)]
struct Hunt {
    walks: usize,
    swaps: usize,
    /// Lines of a link where a directory had been, and of what could not be found again.
    links: usize,
    errors: usize,
}

/// Walks `tree` for a while in the ways given, one after another; fails if anything outside is told.
fn hunt(tree: &Path, depths: &[usize], ways: &[Way], time: Duration) -> Hunt {
    let beside = tree.parent().unwrap();
    let outside = inodes(&beside.join("outside"));
    let secret = format!(" {SECRET_BYTES}");
    let is_secret = |line: &String| {
        let ino = line.starts_with("enter ").then(|| line.split(' ').nth(3).unwrap().trim_end_matches(':'));
        line.ends_with(&secret) || ino.is_some_and(|ino| outside.contains(&ino.parse().unwrap()))
    };
    let opened = Arc::new(OwnedFd::from(File::open(beside).unwrap()));
    let swaps: Vec<Swap> = depths.iter().map(|depth| Swap::new(tree, &opened, *depth)).collect();
    let done = AtomicBool::new(false);
    let mut hunt = Hunt::default();
    std::thread::scope(|scope| {
        let swapper = scope.spawn(|| swap_until(&done, &swaps));
        let start = Instant::now();
        while start.elapsed() < time {
            let mut recorder = Recorder::new(&[tree]);
            way::walk(ways[hunt.walks % ways.len()].options(), Everything::default(), &mut recorder);
            let told = recorder.lines.iter().find(|line| is_secret(line));
            if told.is_some() {
                done.store(true, Ordering::Relaxed);
            }
            assert_eq!(told, None, "told of outside");
            hunt.walks += 1;
            hunt.links += recorder.lines.iter().filter(|line| line.contains("Symlink")).count();
            hunt.errors += recorder.lines.iter().filter(|line| line.contains("error")).count();
        }
        done.store(true, Ordering::Relaxed);
        hunt.swaps = swapper.join().unwrap();
    });
    hunt
}

fn swap_until(done: &AtomicBool, swaps: &[Swap]) -> usize {
    let mut random = Random(1);
    let mut count = 0;
    while !done.load(Ordering::Relaxed) {
        count += usize::from(swaps[random.below(swaps.len())].swap());
        // Directories are to be there most of the time, or nothing would be walked.
        for _ in 0..random.below(3) {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    count
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
    assert!(hunt.links > 0 && (!has_errors || hunt.errors > 0), "no walk met a swap: {hunt:?}");
}

#[test]
fn directories_swapped_for_links_lead_nowhere() {
    let tree = trees();
    let hunt = hunt(&tree.root(), &[1, 13, 26, LEVELS], &way::all(), Duration::from_millis(1_500));
    check(&hunt, false);
}

#[test]
fn a_root_swapped_for_a_link_leads_nowhere() {
    let tree = trees();
    check(&hunt(&tree.root(), &[0], &way::all(), Duration::from_millis(800)), false);
}

/// With few descriptors directories are opened a second time on the way up, by then perhaps a link or another directory.
#[test]
fn directories_found_again_are_those_that_were_there() {
    let test = "directories_found_again_are_those_that_were_there";
    if let Some((_, tree)) = role() {
        let ways = [SYNC, Way::workers(2)];
        let hunt = hunt(&tree, &[3, 9, 15, 21], &ways, Duration::from_millis(1_500));
        println!("{hunt:?}");
        report("swaps", hunt.swaps);
        report("links", hunt.links);
        return report("errors", hunt.errors);
    }
    let tree = trees();
    let report = child::run(test, "few", &tree.root(), 32);
    let [swaps, links, errors] = ["swaps", "links", "errors"].map(|key| report.number(key));
    check(&Hunt { walks: 0, swaps, links, errors }, true);
}
