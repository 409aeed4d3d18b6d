//! An entry that was replaced by one of another type before a scan resumes has one row, not two.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use fathom_inventory::store::Inventory;
use fathom_questions::export::{ExportFormat, ExportOptions, export};
use fathom_scans::scan::{Observer, Problem, Scan, Selection, resume, scan};
use fathom_walk::{Model, Names, Node, Progress};

/// Whether workers may read directories below the root.
#[derive(Debug, Default)]
struct Gate(Mutex<bool>, Condvar);

static GATE: Gate = Gate(Mutex::new(false), Condvar::new());

/// Blocks the workers in directories below the root, and has a warning on the root.
#[derive(Debug)]
struct BlockBelowRoot;

impl Selection for BlockBelowRoot {
    fn select(&self, dir: &Node, _names: &mut Names) {
        if dir.depth() > 0 {
            drop(GATE.1.wait_while(GATE.0.lock().unwrap(), |open| !*open).unwrap());
        }
    }

    fn leaves_out(&self, _dir: &Node, _name: &[u8], _is_dir: bool) -> bool {
        false
    }

    fn warnings(&self, dir: &Node) -> Vec<Vec<u8>> {
        if dir.depth() == 0 { vec![b"the root".to_vec()] } else { Vec::new() }
    }
}

/// Stops the scan once the root has been entered and its entries have been consumed, and opens the
/// gate.
#[derive(Default)]
struct StopAfterRoot {
    stop: Arc<AtomicBool>,
    /// The number of progress reports since the root was entered.
    reports: Option<u32>,
}

impl Observer for StopAfterRoot {
    fn progress(&mut self, _progress: Progress) {
        self.reports = self.reports.map(|reports| reports + 1);
        if self.reports == Some(3) {
            self.stop.store(true, Ordering::Relaxed);
            *GATE.0.lock().unwrap() = true;
            GATE.1.notify_all();
        }
    }

    fn problem(&mut self, problem: &Problem) {
        panic!("{problem:?}");
    }

    fn warning(&mut self, _message: &[u8]) {
        self.reports = Some(0);
    }
}

fn options(root: &Path, selects: bool) -> Scan {
    Scan {
        roots: vec![CString::new(root.as_os_str().as_bytes()).unwrap()],
        model: Model::Sync,
        selector: if selects { |_, _| Some(Arc::new(BlockBelowRoot)) } else { |_, _| None },
        checkpoint_entries: u64::MAX,
        ..Scan::default()
    }
}

/// Returns the paths in an inventory, and asserts that none occurs twice.
fn paths(inventory: &Path) -> BTreeSet<String> {
    let (inventory, mut text) = (Inventory::open(inventory).unwrap(), Vec::new());
    let ask = ExportOptions { format: ExportFormat::Nul, guards_formulas: false, below: None };
    let mut take = |bytes: &[u8]| {
        text.extend_from_slice(bytes);
        Ok(())
    };
    export(&inventory, &ask, &mut take).unwrap();
    let text = String::from_utf8(text).unwrap();
    let paths: Vec<_> = text.split_terminator('\0').map(str::to_owned).collect();
    let set: BTreeSet<_> = paths.iter().cloned().collect();
    assert_eq!(set.len(), paths.len(), "{paths:?}");
    set
}

#[test]
fn an_entry_replaced_before_a_resume_has_one_row() {
    let temp = tempfile::tempdir().unwrap();
    let (root, out) = (temp.path().join("t"), temp.path().join("i"));
    for number in 0..20 {
        fs::create_dir_all(root.join(format!("dir{number}/sub"))).unwrap();
        fs::write(root.join(format!("file{number}")), "x").unwrap();
    }
    let first = options(&root, true);
    let mut observer = StopAfterRoot { stop: first.stop.clone(), reports: None };
    let outcome = scan(&first, &out, &mut observer).unwrap();
    assert_eq!(outcome.manifest.completeness.stopped.as_deref(), Some("interrupted"));
    let known = paths(&out);
    assert!(known.contains(root.join("file3").to_str().unwrap()), "{known:?}");
    fs::remove_file(root.join("file3")).unwrap();
    fs::create_dir_all(root.join("file3/below")).unwrap();
    fs::remove_dir_all(root.join("dir3")).unwrap();
    fs::write(root.join("dir3"), "a file by now").unwrap();
    let outcome = resume(&options(&root, false), &out, &mut StopAfterRoot::default()).unwrap();
    assert_eq!(outcome.manifest.completeness.stopped, None);
    let all = paths(&out);
    for number in 0..20 {
        for name in [format!("dir{number}"), format!("file{number}")] {
            assert!(all.contains(root.join(&name).to_str().unwrap()), "{name} {all:?}");
        }
    }
    assert!(!all.contains(root.join("file3/below").to_str().unwrap()));
}
