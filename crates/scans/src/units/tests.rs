//! Scans in units give the rows of one machine's scan.

use std::collections::VecDeque;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fathom_walk::Model;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use super::{Job, JobOptions, SLICE_BYTES, UnitOptions, UnitRange, UnitRecord, UnitWorker};
use crate::scan::{Scan, scan};
use fathom_inventory::Owners;
use fathom_inventory::store::{ColumnKind, Inventory, Manifest, Table};

/// The columns of times that reading a directory changes.
const TIMES: [&str; 3] = ["scanned", "atime", "atime_ns"];

/// Gives a record its name, as drivers do.
fn publish(part: &Path, record: &UnitRecord) {
    let done = part.join("done");
    let new = done.join(format!(".{}.{}.new", record.unit.id, record.attempt));
    fs::hard_link(&new, done.join(format!("{}.json", record.unit.id))).unwrap();
    fs::remove_file(new).unwrap();
}

fn children(record: &UnitRecord) -> Vec<UnitRange> {
    let unit = |(piece, (start, end)): (usize, &(usize, usize))| UnitRange {
        id: format!("{}x{piece}", record.unit.id),
        parent: record.unit.id.clone(),
        start: *start,
        end: *end,
    };
    record.pieces.iter().enumerate().map(unit).collect()
}

fn options(budget: Duration, pieces: usize) -> UnitOptions {
    UnitOptions {
        budget,
        pieces,
        slices: 3,
        slice_bytes: SLICE_BYTES,
        rate: None,
        in_flight_max: None,
        threads: Some(2),
        model: Model::Threads(None),
        stop: Arc::default(),
    }
}

/// Runs at most `units_max` units. `decide` may record a unit in place of a scan.
fn run(
    job: &Job,
    options: &UnitOptions,
    units_max: usize,
    decide: &dyn Fn(&Job, &UnitRange) -> Option<UnitRecord>,
) -> usize {
    let mut worker = UnitWorker::new(job.part()).unwrap();
    let root = UnitRange { id: "root".to_owned(), parent: String::new(), start: 0, end: job.operand_count() };
    let mut queue = VecDeque::from([root]);
    let mut count = 0;
    while let Some(unit) = queue.pop_front().filter(|_| count < units_max) {
        count += 1;
        let record = decide(job, &unit).unwrap_or_else(|| worker.run(&unit, 0, options, &mut ()).unwrap());
        publish(job.part(), &record);
        queue.extend(children(&record));
    }
    count
}

fn finish(job: &Job) -> Manifest {
    job.finish(None, &Owners::default(), &AtomicBool::new(false), &mut |_| ()).unwrap()
}

/// Asserts that rows are the same, and shows the first ones that are not.
fn assert_rows(one: &[String], units: &[String], table: Table) {
    for (row, (one, units)) in one.iter().zip(units).enumerate() {
        assert_eq!(one, units, "row {row} of {}", table.name());
    }
    assert_eq!(one.len(), units.len(), "rows of {}", table.name());
}

/// Returns all rows of a table, without the times that reading a directory changes.
fn rows(path: &Path, table: Table) -> Vec<String> {
    let inventory = Inventory::open(path).unwrap();
    let mut rows = Vec::new();
    inventory
        .each(table, |group| {
            let first = rows.len();
            rows.resize(first + group.rows(), String::new());
            for spec in table.specs().iter().filter(|spec| !TIMES.contains(&spec.name)) {
                let is_text = matches!(spec.kind, ColumnKind::Text | ColumnKind::Bytes);
                let (texts, numbers) = if is_text {
                    (Some(group.texts(spec.name)?), None)
                } else {
                    (None, Some(group.numbers(spec.name)?))
                };
                for row in 0..group.rows() {
                    let text = texts.as_ref().and_then(|texts| texts.get(row)).map(<[u8]>::escape_ascii);
                    let number = numbers.as_ref().and_then(|numbers| numbers.get(row));
                    let text = text.map(|text| text.to_string());
                    let value = text.or(number.map(|number| number.to_string()));
                    rows[first + row] += &format!("{}={} ", spec.name, value.unwrap_or_default());
                }
            }
            Ok(())
        })
        .unwrap();
    rows
}

fn path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

/// Makes a tree with several levels, links, holes and names that are not UTF-8.
fn tree(top: &Path) {
    for dir in 0..24_usize {
        let parent = if dir == 0 { top.to_owned() } else { top.join(place((dir - 1) / 3)) };
        let path = if dir == 0 { top.to_owned() } else { parent.join(format!("d{dir}")) };
        fs::create_dir_all(&path).unwrap();
        for file in 0..dir % 7 {
            let size = 5000 * file;
            fs::write(path.join(format!("f{file}")), vec![b'x'; size]).unwrap();
        }
        if dir % 5 == 1 {
            fs::hard_link(top.join("first"), path.join("again")).unwrap();
            std::os::unix::fs::symlink("nowhere", path.join("link")).unwrap();
        } else if dir == 0 {
            fs::write(top.join("first"), "twice").unwrap();
        }
        if dir % 6 == 2 {
            fs::write(path.join(std::ffi::OsStr::from_bytes(b"\xff\xfe")), "raw").unwrap();
        }
    }
}

/// Returns the path of directory `dir` of [`tree`] below its top.
fn place(dir: usize) -> String {
    if dir == 0 { ".".to_owned() } else { format!("{}/d{dir}", place((dir - 1) / 3)) }
}

struct Setting {
    top: tempfile::TempDir,
    one: Manifest,
    roots: Vec<CString>,
}

impl Setting {
    /// Makes trees and scans them on one machine.
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        tree(&top.path().join("a"));
        tree(&top.path().join("b"));
        fs::write(top.path().join("file"), "a root that is a file").unwrap();
        let roots: Vec<CString> =
            ["a", "file", "missing", "b"].iter().map(|name| path(&top.path().join(name))).collect();
        let options = Scan { roots: roots.clone(), ..Scan::default() };
        let one = scan(&options, &top.path().join("one.inv"), &mut ()).unwrap().manifest;
        Self { top, one, roots }
    }

    fn begin(&self, name: &str) -> Job {
        let options = JobOptions { roots: self.roots.clone(), ..JobOptions::default() };
        Job::begin(&options, &self.top.path().join(name)).unwrap()
    }

    fn assert_same(&self, name: &str, found: &Manifest) {
        assert_eq!((found.entries, &found.completeness), (self.one.entries, &self.one.completeness));
        for table in Table::ALL {
            let [one, units] = ["one.inv", name].map(|name| rows(&self.top.path().join(name), table));
            assert_rows(&one, &units, table);
        }
        Inventory::open(&self.top.path().join(name)).unwrap().check().unwrap();
    }
}

#[test]
fn units_give_the_rows_of_one_scan_in_its_order() {
    let setting = Setting::new();
    // With a budget of zero, a unit reads its first root and leaves everything below.
    for (pieces, budget_ms, least) in [(1, 0, 4), (2, 0, 10), (64, 0, 24), (3, 60_000, 1)] {
        let name = format!("{pieces}-{budget_ms}.inv");
        let job = setting.begin(&name);
        let units = run(&job, &options(Duration::from_millis(budget_ms), pieces), usize::MAX, &|_, _| None);
        assert!(units >= least, "{units} units");
        setting.assert_same(&name, &finish(&job));
        assert!(!job.part().exists(), "the directory of the units is gone");
    }
}

#[test]
fn a_unit_that_was_split_gives_the_same_rows() {
    let setting = Setting::new();
    let job = setting.begin("split.inv");
    let split = |job: &Job, unit: &UnitRange| {
        let count = unit.end - unit.start;
        let halves = [(0, count / 2), (count / 2, count)];
        (count > 1).then(|| job.record_split(unit, &halves).unwrap())
    };
    run(&job, &options(Duration::ZERO, 2), usize::MAX, &split);
    setting.assert_same("split.inv", &finish(&job));
}

#[test]
fn a_directory_whose_unit_has_failed_is_recorded_with_the_reason() {
    let setting = Setting::new();
    let job = setting.begin("failed.inv");
    let fail = |job: &Job, unit: &UnitRange| {
        (unit.id == "rootx0").then(|| job.record_failed(unit, "three workers have died of it").unwrap())
    };
    run(&job, &options(Duration::ZERO, 64), usize::MAX, &fail);
    let found = finish(&job);
    assert_eq!(found.completeness.failed, 1);
    assert_eq!(found.completeness.stopped.as_deref(), Some("a unit killed its workers"));
    assert!(!found.completeness.is_complete() && job.part().exists());
    let errors = rows(&setting.top.path().join("failed.inv"), Table::Errors);
    assert!(errors.iter().any(|error| error.contains("three workers have died of it")), "{errors:?}");
    // Sums without the failed directory stay consistent with the rows.
    let dirs = rows(&setting.top.path().join("failed.inv"), Table::Dirs);
    assert!(dirs.len() < rows(&setting.top.path().join("one.inv"), Table::Dirs).len());
    Inventory::open(&setting.top.path().join("failed.inv")).unwrap().check().unwrap();
}

#[test]
fn a_scan_that_was_ended_is_incomplete_and_goes_on() {
    let setting = Setting::new();
    let job = setting.begin("late.inv");
    run(&job, &options(Duration::ZERO, 2), 7, &|_, _| None);
    let stopped =
        job.finish(Some("deadline"), &Owners::default(), &AtomicBool::new(false), &mut |_| ()).unwrap();
    assert_eq!(stopped.completeness.stopped.as_deref(), Some("deadline"));
    assert!(stopped.completeness.partial > 0 && stopped.entries < setting.one.entries);
    drop(job);
    let out = setting.top.path().join("late.inv");
    let options_of = JobOptions { roots: setting.roots.clone(), ..JobOptions::default() };
    assert!(Job::begin(&options_of, &out).is_err(), "nothing is replaced unasked");
    let job = Job::resume(&options_of, &out).unwrap();
    assert!(Job::resume(&options_of, &out).is_err(), "the first driver has the lock");
    let mut worker = UnitWorker::new(job.part()).unwrap();
    let records = UnitRecord::read_all(job.part()).unwrap();
    let has = |unit: &UnitRange| records.iter().any(|record| record.unit == *unit);
    let mut queue: VecDeque<_> = records.iter().flat_map(children).filter(|unit| !has(unit)).collect();
    while let Some(unit) = queue.pop_front() {
        let record = worker.run(&unit, 5, &options(Duration::ZERO, 2), &mut ()).unwrap();
        publish(job.part(), &record);
        queue.extend(children(&record));
    }
    setting.assert_same("late.inv", &finish(&job));
}

/// Copies what is in a directory.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn a_driver_that_died_before_it_removed_the_units_has_finished() {
    let setting = Setting::new();
    let job = setting.begin("done.inv");
    run(&job, &options(Duration::ZERO, 64), usize::MAX, &|_, _| None);
    let (out, part) = (setting.top.path().join("done.inv"), job.part().to_owned());
    assert!(!job.is_finished());
    let kept = setting.top.path().join("kept");
    copy(&part, &kept);
    finish(&job);
    drop(job);
    copy(&kept, &part);
    let job = Job::resume(&JobOptions::default(), &out).unwrap();
    assert!(job.is_finished());
    job.remove_part().unwrap();
    assert!(!part.exists());
    drop(job);
    let error = Job::resume(&JobOptions::default(), &out).unwrap_err().to_string();
    assert!(error.ends_with("the scan is finished"), "{error}");
    // The .part of another scan does not belong to the inventory.
    fs::rename(&out, setting.top.path().join("other.inv")).unwrap();
    copy(&kept, &part);
    assert!(!Job::resume(&JobOptions::default(), &out).unwrap().is_finished());
}

/// A mount that goes away during a unit leaves an empty directory, which is another one.
#[test]
fn an_operand_that_is_replaced_during_the_scan_is_refused_and_one_that_is_removed_is_recorded() {
    let top = tempfile::tempdir().unwrap();
    let root = top.path().join("root");
    fs::create_dir(&root).unwrap();
    let options_of = JobOptions { roots: vec![path(&root)], ..JobOptions::default() };
    let job = Job::begin(&options_of, &top.path().join("x.inv")).unwrap();
    let mut worker = UnitWorker::new(job.part()).unwrap();
    let unit = UnitRange { id: "root".to_owned(), parent: String::new(), start: 0, end: 1 };
    let mut attempt = |number| worker.run(&unit, number, &options(Duration::from_secs(60), 2), &mut ());
    fs::rename(&root, top.path().join("before")).unwrap();
    fs::create_dir(&root).unwrap();
    let error = attempt(0).unwrap_err().to_string();
    assert!(error.ends_with("another file system mounted?"), "{error}");
    fs::remove_dir(&root).unwrap();
    let record = attempt(1).unwrap();
    assert_eq!((record.errors, record.complete), (1, false));
}

#[test]
fn a_scan_of_nothing_is_refused() {
    let top = tempfile::tempdir().unwrap();
    let out = top.path().join("none.inv");
    for begin in [Job::begin, Job::resume] {
        let error = begin(&JobOptions::default(), &out).unwrap_err().to_string();
        assert!(error.contains("PATH"), "{error}");
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_directory_that_vanishes_between_two_units_is_recorded_as_failed() {
    let setting = Setting::new();
    let job = setting.begin("vanished.inv");
    run(&job, &options(Duration::ZERO, 64), 1, &|_, _| None);
    let [gone, file] = ["a/d1", "a/d2"].map(|name| setting.top.path().join(name));
    fs::remove_dir_all(&gone).unwrap();
    fs::remove_dir_all(&file).unwrap();
    fs::write(&file, "now a file").unwrap();
    let record = &UnitRecord::read_all(job.part()).unwrap()[0];
    let mut queue: VecDeque<_> = children(record).into();
    let mut worker = UnitWorker::new(job.part()).unwrap();
    while let Some(unit) = queue.pop_front() {
        let record = worker.run(&unit, 0, &options(Duration::ZERO, 64), &mut ()).unwrap();
        publish(job.part(), &record);
        queue.extend(children(&record));
    }
    let found = finish(&job);
    assert_eq!((found.completeness.failed, found.completeness.missing_roots), (2, 1));
    let errors = rows(&setting.top.path().join("vanished.inv"), Table::Errors);
    let about = |errno: i32| errors.iter().filter(|error| error.contains(&format!("errno={errno} "))).count();
    assert_eq!((about(2), about(20)), (2, 1), "{errors:?}");
}

#[test]
fn a_directory_with_very_many_names_is_read_in_slices() {
    let top = tempfile::tempdir().unwrap();
    let wide = top.path().join("tree/wide");
    fs::create_dir_all(&wide).unwrap();
    for name in 0..1000 {
        let name = format!("{name:0>100}");
        if name.ends_with("00") {
            fs::create_dir(wide.join(&name)).unwrap();
            fs::write(wide.join(name).join("inside"), "x").unwrap();
        } else {
            fs::write(wide.join(name), "").unwrap();
        }
    }
    let options = UnitOptions { slice_bytes: 1000, ..options(Duration::from_secs(60), 3) };
    for root in ["tree", "tree/wide"] {
        let roots = vec![path(&top.path().join(root))];
        let name = root.replace('/', "-");
        let one = top.path().join(format!("{name}-one.inv"));
        let manifest =
            scan(&Scan { roots: roots.clone(), ..Scan::default() }, &one, &mut ()).unwrap().manifest;
        let out = top.path().join(format!("{name}-units.inv"));
        let job = Job::begin(&JobOptions { roots, ..JobOptions::default() }, &out).unwrap();
        let units = run(&job, &options, usize::MAX, &|_, _| None);
        assert!(units >= 3, "{units} units");
        let found = finish(&job);
        assert_eq!((found.entries, &found.completeness), (manifest.entries, &manifest.completeness));
        // Rows are the same but for their order, by which directories are numbered.
        let names = |path: &Path, table| {
            let mut rows = rows(path, table);
            let fields = ["dir_id=", "parent_id=", "pre=", "post=", "t_", "n_"];
            for row in &mut rows {
                let kept =
                    row.split(' ').filter(|field| !fields[..4].iter().any(|name| field.starts_with(name)));
                *row = kept.collect::<Vec<_>>().join(" ");
            }
            rows.sort();
            rows
        };
        for table in Table::ALL {
            assert_rows(&names(&one, table), &names(&out, table), table);
        }
    }
}

/// Scans `tree` in `top` on one machine, and begins the scan of it by units.
fn begin_beside_scan(top: &Path) -> Job {
    let roots = vec![path(&top.join("tree"))];
    scan(&Scan { roots: roots.clone(), ..Scan::default() }, &top.join("one.inv"), &mut ()).unwrap();
    Job::begin(&JobOptions { roots, ..JobOptions::default() }, &top.join("units.inv")).unwrap()
}

/// Finishes the scan by units, whose rows must equal the rows of the other scan. Returns the footer
/// of its `entries`.
fn finish_as_scan(job: &Job, top: &Path) -> ParquetMetaData {
    finish(job);
    for table in Table::ALL {
        let [one, units] = ["one.inv", "units.inv"].map(|name| rows(&top.join(name), table));
        assert_rows(&one, &units, table);
    }
    let file = fs::File::open(top.join("units.inv/entries-00000.parquet")).unwrap();
    ParquetMetaDataReader::new().parse_and_finish(&file).unwrap()
}

#[test]
fn row_groups_are_copied_with_their_statistics_and_links() {
    let top = tempfile::tempdir().unwrap();
    for dir in 0..5 {
        let dir = top.path().join(format!("tree/d{dir}"));
        fs::create_dir_all(&dir).unwrap();
        (0..9).for_each(|file| fs::write(dir.join(format!("f{file}")), vec![b'x'; 1000 * file]).unwrap());
        fs::hard_link(top.path().join("tree/d0/f1"), dir.join("of another")).unwrap();
        fs::hard_link(dir.join("f3"), dir.join("of its own")).unwrap();
    }
    let job = begin_beside_scan(top.path());
    run(&job, &options(Duration::ZERO, 64), usize::MAX, &|_, _| None);
    let footer = finish_as_scan(&job, top.path());
    // Rows that are not copied are all in one row group.
    assert_eq!(footer.num_row_groups(), 5, "one of each unit that has entries");
    for group in footer.row_groups() {
        let of = |name: &str| group.columns().iter().find(|column| column.column_descr().name() == name);
        for name in ["dir_id", "size", "mtime"] {
            let statistics = of(name).and_then(|column| column.statistics()).unwrap();
            assert!(statistics.min_bytes_opt().is_some() && statistics.max_bytes_opt().is_some(), "{name}");
        }
    }
}

#[test]
fn rows_that_go_on_where_another_unit_ends_are_copied() {
    let top = tempfile::tempdir().unwrap();
    for dir in (0..2 * 3 * 2).map(|at| format!("tree/t{}/d{}/s{}", at / 6, at / 2 % 3, at % 2)) {
        let dir = top.path().join(dir);
        fs::create_dir_all(&dir).unwrap();
        (0..3).for_each(|file| fs::write(dir.join(format!("f{file}")), "x").unwrap());
    }
    let job = begin_beside_scan(top.path());
    // The first unit leaves t0 and t1, each to a unit that leaves its three directories to another
    // one. That reads the first of them, and leaves what is in it together with the other two.
    let leave = |job: &Job, unit: &UnitRange| {
        let level = unit.id.matches('x').count();
        let options = options(Duration::ZERO, if level == 0 { 2 } else { 1 });
        let scanned = || UnitWorker::new(job.part()).unwrap().run(unit, 0, &options, &mut ()).unwrap();
        (level < 3).then(scanned)
    };
    assert_eq!(run(&job, &options(Duration::from_secs(60), 1), usize::MAX, &leave), 7);
    let footer = finish_as_scan(&job, top.path());
    // Rows that are not copied are all in one row group.
    assert_eq!(footer.num_row_groups(), 2, "one of each unit that has entries");
}

#[test]
fn another_mount_is_refused() {
    let setting = Setting::new();
    let job = setting.begin("mount.inv");
    fs::rename(setting.top.path().join("a"), setting.top.path().join("was-a")).unwrap();
    fs::create_dir(setting.top.path().join("a")).unwrap();
    let error = UnitWorker::new(job.part()).unwrap_err().to_string();
    assert!(error.contains("another file system mounted?"), "{error}");
}
