//! Each failure is reported in its place and everything else as without faults, for every number of
//! workers and duration of calls. The faults are derived from a seed and from inode numbers, so two
//! runs have different ones, and each test runs with many seeds.

use std::collections::HashSet;
use std::path::Path;

use crate::support::Random;
use crate::support::record::{Recorder, assert_same};
use crate::support::tree::{Tree, bushy, c_path, fill, mixed};
use crate::support::way::{self, SYNC, Way};
use fathom_io::blocking::Blocking;
use fathom_io::sim::{Faults, Rates};
use fathom_io::sys::CWD;
use fathom_io::tokio_fs::{AsyncPar, AsyncSeq};
use fathom_io::{MetadataModel, Unavailable};
use fathom_walk::{Follow, Model, Options, Summary};

/// The lines and the summary of a walk, and the number of calls that failed because of a fault.
struct FaultyWalk {
    lines: Vec<String>,
    summary: Summary,
    failed: u64,
}

#[track_caller]
fn walk(options: Options, root: &Path, seed: u64, rates: Rates) -> FaultyWalk {
    walk_over(options, root, seed, rates, || Ok(Blocking))
}

/// Like [`walk`], with the models that `make` returns.
#[track_caller]
fn walk_over<M: MetadataModel>(
    options: Options,
    root: &Path,
    seed: u64,
    rates: Rates,
    make: impl Fn() -> Result<M, Unavailable> + Send + Sync + 'static,
) -> FaultyWalk {
    let faults = Faults::new(seed, rates);
    let mut recorder = Recorder::new(&[root]);
    let shared = faults.clone();
    let summary = way::walk_over(options, &mut recorder, move || make().map(|model| shared.over(model)));
    FaultyWalk { lines: recorder.lines, summary, failed: faults.counts().failed }
}

/// Creates small directories, one directory with enough entries for several chunks, and links.
fn forest() -> Tree {
    let tree = Tree::new();
    mixed(&tree);
    bushy(&tree.dir("bush"), 3, 4);
    fill(&tree.dir("wide"), 3_000);
    for name in ["wide/d1/x", "wide/d2/x"] {
        tree.dir(name);
    }
    tree
}

/// Returns rates of all faults together, some of which are zero.
fn rates(random: &mut Random) -> Rates {
    let mut rate =
        |most: f64| if random.below(3) == 0 { 0.0 } else { most * random.below(100) as f64 / 100.0 };
    Rates {
        open_eacces: rate(0.1),
        open_emfile: rate(0.3),
        emfile_tries: 3,
        read_eio: rate(0.1),
        read_part: rate(0.2),
        unknown_type: rate(0.5),
        short_read: rate(0.1),
        stat_enoent: rate(0.2),
        stat_eio: rate(0.1),
        slow: rate(0.02),
        slow_us: 500,
        no_magic: false,
    }
}

/// Returns options that depend on the seed: whether links are followed, and whether the metadata of
/// directories is read with the metadata of the other entries.
fn options_for(way: Way, seed: u64) -> Options {
    let links = if seed.is_multiple_of(3) { Follow::Yes } else { Follow::No };
    way.options().follow_links(links).stat_dirs(seed.is_multiple_of(2))
}

#[test]
fn the_same_faults_are_reported_for_any_schedule() {
    let tree = forest();
    let mut failed = 0;
    for seed in fathom_cases::seeds(30) {
        let mut random = Random::new(seed);
        let rates = rates(&mut random);
        let change = |way: Way| options_for(way, seed);
        let first = walk(change(SYNC), &tree.root(), seed, Rates { slow: 0.0, ..rates });
        failed += first.failed;
        for way in [Way::workers(1 + random.below(8)), Way::workers(64), Way::of(Model::Auto)] {
            let other = walk(change(way), &tree.root(), seed, rates);
            assert_same(&first.lines, &other.lines, format_args!("seed {seed}, {way}, {rates:?}"));
        }
    }
    assert!(failed > fathom_cases::count(1_000) as u64, "{failed} faults are too few for a test");
}

/// Calls that take a millisecond on average, like round trips: chunks of a directory become tasks
/// before the directory is read to its end.
const SLOW: Rates = Rates {
    open_eacces: 0.0,
    open_emfile: 0.0,
    emfile_tries: 0,
    read_eio: 0.0,
    read_part: 0.0,
    unknown_type: 0.0,
    short_read: 0.0,
    stat_enoent: 0.0,
    stat_eio: 0.0,
    slow: 1.0,
    slow_us: 2_000,
    no_magic: true,
};

#[test]
fn results_are_the_same_where_each_call_is_a_round_trip() {
    let tree = Tree::new();
    mixed(&tree);
    bushy(&tree.dir("bush"), 3, 4);
    fill(&tree.dir("wide"), 500);
    for seed in fathom_cases::seeds(10) {
        let mut random = Random::new(seed);
        let rates = rates(&mut random);
        let change = |way: Way| options_for(way, seed);
        let first = walk(change(SYNC), &tree.root(), seed, Rates { slow: 0.0, ..rates });
        for way in [Way::workers(64), Way::of(Model::Auto)] {
            let rates = Rates { slow: SLOW.slow, slow_us: SLOW.slow_us, no_magic: true, ..rates };
            let other = walk(change(way), &tree.root(), seed, rates);
            assert_same(&first.lines, &other.lines, format_args!("seed {seed}, {way}, {rates:?}"));
        }
    }
}

/// On a disk, 10,000 names are sorted by inode number, which is decided only after many of them
/// belong to tasks.
#[test]
fn a_very_wide_directory_is_the_same_where_each_call_is_a_round_trip() {
    let tree = Tree::new();
    fill(&tree.dir("wide"), 11_000);
    for name in ["wide/d1/x", "wide/d2/x"] {
        tree.dir(name);
    }
    let first = walk(SYNC.options(), &tree.root(), 0, Rates::default());
    for way in [Way::workers(256), Way::of(Model::Auto)] {
        let other = walk(way.options(), &tree.root(), 0, SLOW);
        assert_same(&first.lines, &other.lines, way);
    }
}

fn count(lines: &[String], what: &str) -> usize {
    lines.iter().filter(|line| line.contains(what)).count()
}

/// Walks without faults and with faults of one kind, and returns both results.
fn compare(rates: Rates) -> (FaultyWalk, FaultyWalk) {
    let tree = forest();
    let none = walk(SYNC.options(), &tree.root(), 0, Rates::default());
    let all = walk(Way::workers(3).options(), &tree.root(), 0, rates);
    (none, all)
}

#[test]
fn a_temporary_lack_of_descriptors_and_short_reads_change_nothing() {
    let rates = Rates {
        open_emfile: 1.0,
        emfile_tries: 2,
        short_read: 0.2,
        slow: 0.01,
        slow_us: 100,
        ..Rates::default()
    };
    let (none, faulty) = compare(rates);
    assert_same(&none.lines, &faulty.lines, "EMFILE and short reads");
    let directories = faulty.summary.progress.directories;
    assert!(faulty.failed >= 2 * directories, "{} of {directories}", faulty.failed);
}

/// Once, each directory was waited for in vain, so a walk with five descriptors took hours.
#[test]
fn a_lasting_lack_of_descriptors_is_waited_for_once() {
    let rates = Rates { open_emfile: 0.9, emfile_tries: u32::MAX, ..Rates::default() };
    let tree = Tree::new();
    for number in 0..40 {
        tree.dir(&format!("{number}"));
    }
    let root = c_path(&tree.root());
    let opens = |seed: &u64| {
        let model = Faults::new(*seed, rates).over(Blocking);
        Blocking.run(model.open(CWD, &root, Follow::No)).is_ok()
    };
    let seed = (0..).find(opens).expect("one of ten opens");
    let found = walk(SYNC.options(), &tree.root(), seed, rates);
    let failed = count(&found.lines, "error 24") as u64;
    let opened = 41 - failed;
    assert!(failed > 15 && found.failed <= 2 * failed + 200 * opened, "{failed}, {opened}: {}", found.failed);
}

#[test]
fn types_missing_in_the_directory_are_read_with_stat() {
    let (none, faulty) = compare(Rates { unknown_type: 1.0, ..Rates::default() });
    let unknown = none.lines.iter().map(|line| match line.rsplit_once(": ") {
        Some((start, end)) if line.starts_with("item ") => {
            format!("{} Unknown: {end}", start.rsplit_once(' ').unwrap().0)
        }
        _ => line.clone(),
    });
    assert_same(&unknown.collect::<Vec<_>>(), &faulty.lines, "DT_UNKNOWN");
}

#[test]
fn every_entry_is_reported_even_if_every_stat_fails() {
    for (errno, rates) in [
        (2, Rates { stat_enoent: 1.0, ..Rates::default() }),
        (5, Rates { stat_eio: 1.0, ..Rates::default() }),
    ] {
        let (none, faulty) = compare(rates);
        assert_eq!(none.lines.len(), faulty.lines.len());
        let items = count(&none.lines, "item ");
        assert_eq!(count(&faulty.lines, &format!(": error {errno}")), items);
        assert_eq!(count(&faulty.lines, "enter "), count(&none.lines, "enter "));
    }
}

#[test]
fn an_unreadable_root_is_reported_alone() {
    for (errno, rates) in [
        (13, Rates { open_eacces: 1.0, ..Rates::default() }),
        (5, Rates { read_eio: 1.0, ..Rates::default() }),
    ] {
        let (_, faulty) = compare(rates);
        let lines = faulty.lines.as_slice();
        assert!(lines.len() == 2 && lines[0].ends_with(&format!(": error {errno}")), "{lines:#?}");
        assert_eq!(lines[1], "leave");
    }
}

#[test]
fn a_vanished_directory_is_reported_as_lost() {
    // The open call fails and the stat call after it finds nothing, as when another process removes
    // the directory in between.
    let tree = forest();
    let rates = Rates { open_eacces: 0.3, stat_enoent: 1.0, ..Rates::default() };
    let (mut lost, mut entered) = (0, 0);
    for seed in 0..16 {
        let lines = walk(SYNC.options(), &tree.root(), seed, rates).lines;
        lost += count(&lines, "lost ");
        entered += count(&lines, "enter ");
    }
    assert!(lost > 10 && entered > 10, "{lost} lost, {entered} entered");
}

#[test]
fn a_failed_read_is_reported_when_its_directory_is_left() {
    let tree = forest();
    let whole = walk(SYNC.options(), &tree.root(), 0, Rates::default()).lines;
    let whole: HashSet<&String> = whole.iter().collect();
    let (mut broken, mut items) = (0, 0);
    for seed in 0..12 {
        let rates = Rates { read_part: 0.4, ..Rates::default() };
        let faulty = walk(SYNC.options(), &tree.root(), seed, rates);
        let left = count(&faulty.lines, "leave error 5");
        // A directory whose read call fails at the first entry is unreadable.
        assert_eq!(left + count(&faulty.lines, ": error 5"), usize::try_from(faulty.failed).unwrap());
        broken += left;
        // The entries read before the failure are reported.
        for line in faulty.lines.iter().filter(|line| line.starts_with("item ")) {
            assert!(whole.contains(line), "{line}");
            items += 1;
        }
    }
    assert!(broken > 10 && items > 100, "{broken} reads broke off, {items} items");
}

/// The faults under every model are reported like those under the blocking one.
#[test]
fn the_same_faults_are_reported_under_every_model() {
    let tree = forest();
    let mut failed = 0;
    for seed in 0..4 {
        let rates = Rates { slow: 0.0, ..rates(&mut Random::new(seed)) };
        let options = || options_for(SYNC, seed);
        let expected = walk(options(), &tree.root(), seed, rates);
        failed += expected.failed;
        let same = |walked: FaultyWalk| assert_same(&expected.lines, &walked.lines, seed);
        let root = tree.root();
        if AsyncSeq::new().is_ok() {
            same(walk_over(options(), &root, seed, rates, AsyncSeq::new));
            same(walk_over(options(), &root, seed, rates, AsyncPar::new));
        } else {
            println!("skipped: no tokio model");
        }
        #[cfg(target_os = "linux")]
        same(walk_over(options(), &root, seed, rates, || fathom_io::uring::Uring::new(64)));
    }
    assert!(failed > 0);
}
