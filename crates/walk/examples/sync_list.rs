//! Lists what a copy of a tree needs to be like its source: `sync_list SOURCE COPY`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fathom_walk::gatherer::{Builder, Item};
use fathom_walk::{Error, Meta};

/// The entries below `root`, by their paths there; `None` if some could not be looked at.
fn entries(root: &Path) -> Result<Option<BTreeMap<PathBuf, Meta>>, Error> {
    let mut walk = Builder::new().metadata(true).walk([root])?;
    let mut entries = BTreeMap::new();
    for entry in &mut walk {
        match entry {
            Ok(Item { path, meta: Some(meta), .. }) => {
                entries.insert(path.below_root(), meta);
            }
            Ok(_) => {}
            Err(failed) => eprintln!("sync_list: {failed}"),
        }
    }
    Ok(walk.finish()?.complete.then_some(entries))
}

/// Whether a file of the copy can stay as it is.
fn is_same(source: &Meta, copy: &Meta) -> bool {
    let is_dir = source.mode & 0o170_000 == 0o040_000;
    source.mode == copy.mode && (is_dir || (source.size, source.mtime) == (copy.size, copy.mtime))
}

/// Returns the actions, one line each: copies in the order of paths, then deletions, contents
/// before their directories.
pub(crate) fn sync_list(source: &Path, copy: &Path) -> Result<Option<Vec<String>>, Error> {
    let (Some(source), Some(copy)) = (entries(source)?, entries(copy)?) else { return Ok(None) };
    let is_stale = |path: &PathBuf, meta: &Meta| !copy.get(path).is_some_and(|copy| is_same(meta, copy));
    let copies = source.iter().filter(|(path, meta)| is_stale(path, meta));
    let deletions = copy.keys().rev().filter(|path| !source.contains_key(*path));
    let copies = copies.map(|(path, _)| format!("copy {}", path.display()));
    Ok(Some(copies.chain(deletions.map(|path| format!("delete {}", path.display()))).collect()))
}

fn main() {
    let args: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [source, copy] = args.as_slice() else {
        eprintln!("usage: sync_list SOURCE COPY");
        std::process::exit(2);
    };
    match sync_list(source, copy) {
        Ok(Some(lines)) => lines.iter().for_each(|line| println!("{line}")),
        // An incomplete list would delete what could not be read.
        Ok(None) => std::process::exit(1),
        Err(error) => {
            eprintln!("sync_list: {error}");
            std::process::exit(2);
        }
    }
}
