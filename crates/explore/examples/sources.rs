//! Opens what `fathom explore` explores, without a terminal: for measurements of time and memory.
//!
//! `sources walk PATH` walks a tree to its end, `sources open INVENTORY [OLDER]` opens an inventory
//! and lists the directory at its top. Both print the allocated bytes.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fathom_explore::source::{Place, Source};
use fathom_explore::sources::inventory::InventorySource;
use fathom_explore::sources::live::{LiveOptions, LiveSource};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    fathom_io::sys::keep_freed_memory();
    let mut words = std::env::args_os().skip(1);
    let (mode, path, older) = (words.next(), words.next(), words.next());
    let mut source: Box<dyn Source> = match (mode.as_ref().and_then(|mode| mode.to_str()), path) {
        (Some("walk"), Some(path)) => walk(path)?,
        (Some("open"), Some(path)) => {
            Box::new(InventorySource::open(Path::new(&path), older.as_deref().map(Path::new)).map_err(text)?)
        }
        _ => return Err("use: sources walk PATH | sources open INVENTORY [OLDER]".into()),
    };
    let top = Place { root: 0, below: Vec::new() };
    let rows = source.list(&top, &AtomicBool::new(false)).map_err(text)?;
    let roots = source.roots();
    eprintln!("{} entries at the top", rows.len());
    println!("{}", roots.iter().map(|root| root.amount.allocated).sum::<u64>());
    Ok(())
}

fn walk(path: OsString) -> Result<Box<dyn Source>, Box<dyn std::error::Error>> {
    let mut source =
        LiveSource::start(vec![CString::new(path.into_vec())?], LiveOptions::default()).map_err(text)?;
    source.wait();
    Ok(Box::new(source))
}

fn text(error: fathom_explore::source::SourceError) -> String {
    format!("{error:?}")
}
