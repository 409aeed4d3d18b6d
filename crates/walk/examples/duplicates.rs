//! Lists regular files with the same contents: `duplicates DIRECTORY...`

use std::collections::{BTreeMap, HashMap};
use std::hash::Hasher;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use fathom_walk::gatherer::{Builder, EntryPath, Message, Pick, Policy, PolicyEntry};
use fathom_walk::{Error, FileType, Follow, Node};
use twox_hash::XxHash64;

/// Bytes at the start of a file that its worker hashes.
const START_BYTES: u64 = 4096;

/// The common key of files with the same contents: their size, and the hash of their first bytes.
type Key = (i64, u64);

/// Reads the first bytes of each file where it is found, on the walk's workers, and sends their
/// hash along.
struct Starts;

impl Policy<io::Result<Key>> for Starts {
    fn wants_metadata(&self, _dir: &Arc<Node>, file_type: FileType) -> bool {
        file_type == FileType::Regular
    }

    fn pick(&self, entry: &PolicyEntry<'_>) -> Pick<io::Result<Key>> {
        match entry.meta() {
            Some(meta) if entry.file_type() == FileType::Regular && meta.size > 0 => {
                let start = entry.open(Follow::No).and_then(|file| hash(file.take(START_BYTES)));
                Pick::send_with(0, start.map(|hash| (meta.size, hash)))
            }
            _ => Pick::default().descend(),
        }
    }
}

fn hash(mut reader: impl Read) -> io::Result<u64> {
    let (mut hasher, mut buffer) = (XxHash64::with_seed(0), vec![0; 64 * 1024]);
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            len => hasher.write(&buffer[..len]),
        }
    }
}

/// Groups of paths of files with the same contents. Several names of one file are one file: the
/// least is listed.
pub(crate) fn duplicates(roots: &[impl AsRef<Path>]) -> Result<Vec<Vec<EntryPath>>, Error> {
    let (gatherer, inboxes) = Builder::new().start(Starts)?;
    for root in roots {
        if let Err(error) = gatherer.add_root(root) {
            eprintln!("duplicates: cannot add '{}': {error}", root.as_ref().display());
        }
    }
    gatherer.no_more_roots();
    let mut alike: BTreeMap<Key, HashMap<(u64, u64), EntryPath>> = BTreeMap::new();
    for message in inboxes.into_iter().flatten() {
        match message {
            Message::Entry(item) => match (item.payload, item.meta) {
                (Ok(key), Some(meta)) => {
                    let first = alike.entry(key).or_default().entry(meta.id()).or_insert(item.path.clone());
                    *first = item.path.min(first.clone());
                }
                (Err(error), _) => eprintln!("duplicates: cannot read '{}': {error}", item.path),
                (Ok(_), None) => {}
            },
            Message::Error(failed) => eprintln!("duplicates: {failed}"),
            _ => {}
        }
    }
    gatherer.finish()?;
    let mut groups: Vec<_> = alike.into_values().filter(|files| files.len() > 1).flat_map(same).collect();
    groups.sort();
    Ok(groups)
}

/// Returns the groups of files with the same contents among files with the same first bytes. Opens
/// them relative to their directories, which the walk may still hold open.
fn same(files: HashMap<(u64, u64), EntryPath>) -> Vec<Vec<EntryPath>> {
    let mut groups: BTreeMap<u64, Vec<EntryPath>> = BTreeMap::new();
    for path in files.into_values() {
        match path.open(Follow::No).and_then(hash) {
            Ok(hash) => groups.entry(hash).or_default().push(path),
            Err(error) => eprintln!("duplicates: cannot read '{path}': {error}"),
        }
    }
    groups.values_mut().for_each(|group| group.sort());
    groups.into_values().filter(|group| group.len() > 1).collect()
}

fn main() {
    let roots: Vec<_> = std::env::args_os().skip(1).collect();
    match duplicates(&roots) {
        Ok(groups) => {
            for group in groups {
                group.iter().for_each(|path| println!("{}", path.to_path_buf().display()));
                println!();
            }
        }
        Err(error) => {
            eprintln!("duplicates: {error}");
            std::process::exit(2);
        }
    }
}
