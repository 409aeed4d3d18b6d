//! Prints the XXH64 of every regular file: `hash_all DIRECTORY...`

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;

use fathom_walk::gatherer::{Builder, Inbox, Message, Pick, Policy, PolicyEntry};
use fathom_walk::{Error, FileType, Follow};
use twox_hash::XxHash64;

const THREADS: usize = 8;

/// Regular files go to one channel, from which all threads take them: a large file holds up one
/// thread only.
struct Files;

impl Policy for Files {
    fn pick(&self, entry: &PolicyEntry<'_>) -> Pick {
        match entry.file_type() {
            FileType::Directory => Pick::default().descend(),
            FileType::Regular => Pick::send(0),
            _ => Pick::default(),
        }
    }
}

/// The hashes of all files below `roots`, in the order of paths, and whether that is all.
pub(crate) fn hash_all(roots: &[impl AsRef<Path>]) -> Result<(Vec<(PathBuf, u64)>, bool), Error> {
    let (gatherer, inboxes) = Builder::new().start(Files)?;
    let added = roots.iter().filter(|root| gatherer.add_root(root).is_ok()).count();
    gatherer.no_more_roots();
    let workers: Vec<_> = inboxes
        .iter()
        .flat_map(|inbox| (0..THREADS).map(|_| inbox.clone()))
        .map(|inbox| thread::spawn(|| hash_some(inbox)))
        .collect();
    // Only the threads' clones are left: when those are dropped, nothing waits for a consumer.
    drop(inboxes);
    let (mut hashes, mut is_all) = (Vec::new(), added == roots.len());
    for worker in workers {
        let (some, failures) = worker.join().unwrap_or_default();
        hashes.extend(some);
        is_all &= failures == 0;
    }
    hashes.sort();
    Ok((hashes, is_all && gatherer.finish()?.complete))
}

/// Hashes what comes out of a channel; also returns how many files could not be read.
fn hash_some(inbox: Inbox) -> (Vec<(PathBuf, u64)>, usize) {
    let (mut hashes, mut failures) = (Vec::new(), 0);
    for message in inbox {
        match message {
            Message::Entry(item) => match item.path.open(Follow::No).and_then(hash) {
                Ok(hash) => hashes.push((item.path.to_path_buf(), hash)),
                Err(error) => {
                    eprintln!("hash_all: cannot read '{}': {error}", item.path);
                    failures += 1;
                }
            },
            Message::Error(failed) => eprintln!("hash_all: {failed}"),
            _ => {}
        }
    }
    (hashes, failures)
}

fn hash(mut file: File) -> io::Result<u64> {
    let (mut hasher, mut buffer) = (XxHash64::with_seed(0), vec![0; 256 * 1024]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            len => hasher.write(&buffer[..len]),
        }
    }
}

fn main() {
    let roots: Vec<_> = std::env::args_os().skip(1).collect();
    match hash_all(&roots) {
        Ok((hashes, is_all)) => {
            hashes.iter().for_each(|(path, hash)| println!("{hash:016x}  {}", path.display()));
            std::process::exit(i32::from(!is_all));
        }
        Err(error) => {
            eprintln!("hash_all: {error}");
            std::process::exit(2);
        }
    }
}
