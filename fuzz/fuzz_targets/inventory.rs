//! Files of a real inventory with arbitrary bytes at arbitrary offsets, as if their hashes matched:
//! reading such a file yields an error or rows.

#![no_main]

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;
use std::{env, fs, process};

use fathom_inventory::Owners;
use fathom_inventory::store::{Inventory, OptionalColumns, Table, check_bytes};
use fathom_scans::scan::{Observer, Problem, Scan, scan};
use fathom_walk::{Model, Progress};
use libfuzzer_sys::fuzz_target;

struct SilentWatch;

impl Observer for SilentWatch {
    fn progress(&mut self, _progress: Progress) {}
    fn problem(&mut self, _problem: &Problem) {}
}

/// Creates a tree and its inventory below `top`.
fn create_inventory(top: &Path) -> std::io::Result<Vec<(Table, Vec<u8>)>> {
    let tree = top.join("tree");
    for number in 0..9 {
        let directory = tree.join(format!("d{}", number % 3));
        fs::create_dir_all(&directory)?;
        fs::write(directory.join(format!("file-{number}.txt")), vec![7; number])?;
    }
    fs::hard_link(tree.join("d0/file-0.txt"), tree.join("link"))?;
    std::os::unix::fs::symlink("d0", tree.join("symlink"))?;
    let options = Scan {
        checkpoint_entries: u64::MAX,
        optional_columns: OptionalColumns { project: true, xattrs: true, acl: true, ignored: true },
        owners: Owners::read(),
        roots: vec![CString::new(tree.as_os_str().as_bytes())?],
        model: Model::Sync,
        ..Scan::default()
    };
    let inventory_dir = top.join("made.inv");
    scan(&options, &inventory_dir, &mut SilentWatch).map_err(std::io::Error::other)?;
    let inventory = Inventory::open(&inventory_dir).map_err(std::io::Error::other)?;
    let files = inventory.manifest().files.iter().filter_map(|file| {
        let table = Table::ALL.into_iter().find(|table| table.name() == file.table)?;
        Some(fs::read(inventory_dir.join(&file.name)).map(|bytes| (table, bytes)))
    });
    files.collect()
}

fn files() -> &'static [(Table, Vec<u8>)] {
    static FILES: OnceLock<Vec<(Table, Vec<u8>)>> = OnceLock::new();
    FILES.get_or_init(|| {
        let top = env::temp_dir().join(format!("fathom-fuzz-{}", process::id()));
        let files = fs::create_dir(&top).and_then(|()| create_inventory(&top));
        let _ = fs::remove_dir_all(&top);
        files.expect("a small inventory can be created")
    })
}

// The first byte selects the file. Each further group of three bytes is an offset from the end (16
// bits) and the new byte.
fuzz_target!(|bytes: &[u8]| {
    let Some((which, changes)) = bytes.split_first() else { return };
    let (table, file) = &files()[usize::from(*which) % files().len()];
    let mut file = file.clone();
    for change in changes.chunks_exact(3) {
        let back = usize::from(u16::from_le_bytes([change[0], change[1]]));
        let at = file.len() - 1 - back % file.len();
        file[at] = change[2];
    }
    let _ = check_bytes(*table, file);
});
