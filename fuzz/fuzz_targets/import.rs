//! Exports of ncdu and gdu and lines of du as arbitrary bytes: they are refused and leave nothing,
//! or make an inventory of which every row can be read.

#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::{env, fs, process};

use fathom_inventory::store::Inventory;
use fathom_scans::import::{DuOutput, ImportFormat, ImportSource, import};
use libfuzzer_sys::fuzz_target;

/// Returns the directory of this process.
fn top() -> &'static PathBuf {
    static TOP: OnceLock<PathBuf> = OnceLock::new();
    TOP.get_or_init(|| {
        let memory = PathBuf::from("/dev/shm");
        let parent = if memory.is_dir() { memory } else { env::temp_dir() };
        let top = parent.join(format!("fathom-fuzz-import-{}", process::id()));
        fs::create_dir_all(&top).expect("a directory can be created");
        top
    })
}

// The first byte selects the format.
fuzz_target!(|bytes: &[u8]| {
    let Some((which, mut input)) = bytes.split_first() else { return };
    let du = DuOutput {
        apparent: which & 8 > 0,
        only_directories: which & 16 > 0,
        has_total: which & 32 > 0,
        ..DuOutput::default()
    };
    let format = [ImportFormat::Ncdu, ImportFormat::Gdu, ImportFormat::Du(du)][usize::from(which % 3)];
    let out = top().join("i");
    let source = ImportSource { name: "fuzz".to_owned(), modified: Some(0) };
    match import(format, &mut input, &source, &out, &AtomicBool::new(false), &mut |_| ()) {
        Ok(_) => {
            let inventory = Inventory::open(&out).expect("an inventory can be opened");
            inventory.check().expect("every row can be read");
            fs::remove_dir_all(&out).expect("it can be removed");
        }
        Err(_) => assert!(fs::read_dir(top()).expect("it is there").next().is_none()),
    }
});
