//! Estimates of a real tree, with a budget of directories: they are right on average, and their
//! ranges hold the truth.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::collections::HashSet;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_scans::estimate::{Basis, Budget, EstimateRange, Survey, SurveyOutcome, TreeEstimate, estimate};
use fathom_scans::scan::{Observer, Problem};
use fathom_walk::Progress;

struct PanicOnProblem;

impl Observer for PanicOnProblem {
    fn progress(&mut self, _progress: Progress) {}

    fn problem(&mut self, problem: &Problem) {
        panic!("{problem:?}");
    }
}

fn survey(root: &Path, budget: Budget, seed: u64) -> Survey {
    Survey {
        roots: vec![CString::new(root.as_os_str().as_bytes()).unwrap()],
        budget,
        threads: Some(2),
        largest: 5,
        seed,
        ..Survey::default()
    }
}

fn sample(root: &Path, budget: u64, seed: u64) -> SurveyOutcome {
    estimate(&survey(root, Budget::Directories(budget), seed), &mut PanicOnProblem).unwrap()
}

/// Sets `stop` once two directories have been opened.
struct StopAfterTwo(Arc<AtomicBool>);

impl Observer for StopAfterTwo {
    fn progress(&mut self, progress: Progress) {
        self.0.fetch_or(progress.directories > 1, Ordering::Relaxed);
    }

    fn problem(&mut self, _problem: &Problem) {}
}

/// After the first directory of 1000 entries, the rate limit delays the next read by more than a
/// quarter of an hour. A budget of directories has no time after which an estimate is abandoned.
#[test]
fn an_estimate_that_is_stopped_does_not_wait_for_its_rate() {
    let temporary = tempfile::tempdir().unwrap();
    for number in 0..1000 {
        fs::create_dir(temporary.path().join(number.to_string())).unwrap();
    }
    let survey = Survey { rate: Some(1), ..survey(temporary.path(), Budget::Directories(10), 0) };
    let outcome = estimate(&survey, &mut StopAfterTwo(survey.stop.clone())).unwrap();
    assert!(outcome.stopped && !outcome.exact);
}

/// Entries, files, directories, apparent size and disk usage, with each inode counted once.
fn truth(path: &Path, seen: &mut HashSet<u64>) -> [f64; 5] {
    let metadata = path.symlink_metadata().unwrap();
    let usage = if seen.insert(metadata.ino()) { metadata.blocks() as f64 * 512.0 } else { 0.0 };
    if !metadata.is_dir() {
        let size = if usage > 0.0 || metadata.nlink() == 1 { metadata.len() as f64 } else { 0.0 };
        return [1.0, 1.0, 0.0, size, usage];
    }
    let mut sums = [1.0, 0.0, 1.0, 0.0, usage];
    for entry in fs::read_dir(path).unwrap() {
        let below = truth(&entry.unwrap().path(), seen);
        sums.iter_mut().zip(below).for_each(|(sum, below)| *sum += below);
    }
    sums
}

fn ranges(figures: &TreeEstimate) -> [EstimateRange; 5] {
    let TreeEstimate { entries, files, dirs, apparent, allocated } = *figures;
    [entries, files, dirs, apparent, allocated]
}

/// Makes 3,000 directories of very different sizes. One of them has a tenth of all files.
fn skewed(root: &Path) {
    let mut made = vec![root.join("t")];
    fs::create_dir(&made[0]).unwrap();
    let mut state = 7_u64;
    let mut below = |end: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % end
    };
    for number in 1..3_000 {
        let dir = made[below(made.len())].join(format!("d{number}"));
        fs::create_dir(&dir).unwrap();
        for file in 0..below(5) {
            fs::write(dir.join(format!("f{file}")), vec![b'x'; below(100) * below(100)]).unwrap();
        }
        made.push(dir);
    }
    for file in 0..700 {
        fs::write(made[1].join(format!("many{file}")), b"x").unwrap();
    }
    fs::hard_link(made[1].join("many0"), made[2].join("another name")).unwrap();
    fs::write(made[2].join("three"), vec![b'y'; 9_000]).unwrap();
    fs::hard_link(made[2].join("three"), made[3].join("three")).unwrap();
    fs::hard_link(made[2].join("three"), made[4].join("three")).unwrap();
}

#[test]
fn ranges_hold_the_truth_and_what_is_read_in_full_is_exact() {
    let temp = tempfile::tempdir().unwrap();
    skewed(temp.path());
    let root = temp.path().join("t");
    let truth = truth(&root, &mut HashSet::new());

    let whole = sample(&root, 6_000, 1);
    assert!(whole.exact && !whole.stopped && whole.errors == 0, "{whole:?}");
    for (range, truth) in ranges(&whole.total).iter().zip(truth) {
        assert_eq!((range.estimate.round(), range.low.round(), range.high.round()), (truth, truth, truth));
    }
    assert_eq!(whole.reads, truth[2] as u64);

    for budget in [60, 1_000, 2_500] {
        let (mut claimed, mut held, mut mean, runs) =
            ([0; 5], [0; 5], [0.0; 5], fathom_cases::count(30).max(6) as u64);
        for seed in 0..runs {
            let outcome = sample(&root, budget, seed);
            assert!(!outcome.exact && !outcome.stopped && outcome.reads < budget + 300, "{outcome:?}");
            for (kind, range) in ranges(&outcome.total).iter().enumerate() {
                let is_claimed = matches!(range.basis, Basis::Count | Basis::Confident);
                let holds = range.low <= truth[kind] + 0.5 && truth[kind] - 0.5 <= range.high;
                claimed[kind] += usize::from(is_claimed);
                held[kind] += usize::from(is_claimed && holds);
                assert!(range.counted <= truth[kind] + 0.5, "{kind}: {range:?}");
                mean[kind] += range.estimate / truth[kind] / runs as f64;
            }
        }
        println!("{budget}: held {held:?} of {claimed:?}, mean {mean:.3?}");
        // With informative link counts, this share is enough for a confidence in the numbers of
        // entries.
        let tells = root.metadata().unwrap().nlink() > 2;
        assert!(!tells || budget < 2_500 || claimed[..3] == [runs as usize; 3], "{claimed:?}");
        let wrong = |kind: usize| claimed[kind] - held[kind];
        assert!(
            (0..5).all(|kind| wrong(kind) * 10 <= claimed[kind].max(10)),
            "{budget}: {held:?} of {claimed:?}"
        );
        assert!(budget < 1_000 || mean.iter().all(|mean| (0.9..1.1).contains(mean)), "{mean:?}");
    }
}

#[test]
fn the_same_seed_and_budget_give_the_same_estimate() {
    let temp = tempfile::tempdir().unwrap();
    skewed(temp.path());
    let root = temp.path().join("t");
    let shown = |threads: usize, seed: u64| {
        let survey = Survey { threads: Some(threads), ..survey(&root, Budget::Directories(700), seed) };
        let outcome = estimate(&survey, &mut PanicOnProblem).unwrap();
        let paths: Vec<_> = outcome.largest.into_iter().map(|(path, _)| path).collect();
        (ranges(&outcome.total).map(|range| (range.estimate.round(), range.high.round())), paths)
    };
    assert_eq!(shown(1, 3), shown(4, 3));
    assert_ne!(shown(1, 3), shown(1, 4));
}

#[test]
fn of_a_wide_directory_not_all_names_are_looked_at_where_time_is_short() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().join("t");
    fs::create_dir_all(root.join("wide")).unwrap();
    (0..60_000).for_each(|file| drop(fs::File::create(root.join(format!("wide/{file}"))).unwrap()));
    (0..600)
        .for_each(|file| fs::write(root.join(format!("wide/{}", 100 * file)), vec![b'x'; 5_000]).unwrap());
    let whole = sample(&root, 10, 1);
    assert!(whole.exact && whole.total.entries == EstimateRange::exact(60_002.0), "{whole:?}");
    let mut mean = 0.0;
    for seed in 0..20 {
        // With almost no budget, the directory is drawn and its entries are sampled.
        let outcome = sample(&root, 1, seed);
        assert!(!outcome.stopped && !outcome.exact && outcome.reads == 2, "{outcome:?}");
        let TreeEstimate { files, apparent, .. } = outcome.total;
        assert_eq!(files.estimate, 60_000.0);
        assert_eq!(apparent.basis, Basis::Spread, "one of the files that were not looked at may be large");
        // A share of 3e6, by chance: 1.85e6, and 2e6 in one of eight runs of this test.
        assert!(apparent.counted < 2.4e6, "{apparent:?}: what was not looked at was not counted");
        mean += apparent.estimate / 3e6 / 20.0;
    }
    assert!(mean != 1.0 && (mean - 1.0).abs() < 0.05, "{mean}");
}

/// Checks the coverage on existing trees: `FATHOM_ESTIMATE_TREES=/usr:/home cargo test -p
/// fathom-scans --test estimate -- --nocapture`.
#[test]
fn ranges_with_a_confidence_hold_on_real_trees() {
    let Some(trees) = std::env::var_os("FATHOM_ESTIMATE_TREES") else {
        println!("skipped: FATHOM_ESTIMATE_TREES names no trees");
        return;
    };
    for root in std::env::split_paths(&trees) {
        let of = |budget, seed| {
            let survey = Survey { one_file_system: true, ..survey(&root, Budget::Directories(budget), seed) };
            estimate(&survey, &mut PanicOnProblem).unwrap()
        };
        let whole = of(u64::MAX / 2, 0);
        assert!(whole.exact, "{whole:?}");
        let truth = ranges(&whole.total).map(|range| range.estimate);
        for percent in [1, 3, 10, 30, 50, 70, 90] {
            let (mut claimed, mut held, mut mean, runs) = ([0; 5], [0; 5], [0.0; 5], 20);
            for seed in 0..runs {
                let outcome = of(whole.reads * percent / 100, seed);
                for (kind, range) in ranges(&outcome.total).iter().enumerate() {
                    let is_claimed = matches!(range.basis, Basis::Count | Basis::Confident);
                    let holds = range.low <= truth[kind] + 0.5 && truth[kind] - 0.5 <= range.high;
                    claimed[kind] += usize::from(is_claimed);
                    held[kind] += usize::from(is_claimed && holds);
                    mean[kind] += range.estimate / truth[kind] / runs as f64;
                }
            }
            println!("{} {percent} %: held {held:?} of {claimed:?}, mean {mean:.2?}", root.display());
            let wrong = |kind: usize| claimed[kind] - held[kind];
            assert!((0..5).all(|kind| wrong(kind) * 10 <= claimed[kind].max(10)), "{held:?} of {claimed:?}");
        }
    }
}
