//! The tree that samples walk: directories of a hundred files, whose sizes are numbers that can be added up.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use fathom_io::sys::fs_magic;

use crate::lang::Answer;
use crate::pattern::Pattern;
use crate::sample::{Deed, small};

/// Files of a directory.
const WIDTH: u64 = 100;
/// Sizes of files go up to this.
const SIZES: u64 = 5000;

/// Makes a tree of `files` files at `path`.
pub(super) fn make(path: &Path, files: u64) -> io::Result<()> {
    fs::create_dir(path)?;
    for first in (0..files).step_by(WIDTH as usize) {
        let dir = path.join(format!("{:04}", first / WIDTH));
        fs::create_dir(&dir)?;
        for number in first..files.min(first + WIDTH) {
            File::create(dir.join(format!("file-{number}")))?.set_len(number % SIZES)?;
        }
    }
    Ok(())
}

/// Makes `size / block` files of `block` bytes at `path`, which together have `pattern`.
pub(super) fn make_small(path: &Path, size: u64, block: usize, pattern: &Pattern) -> io::Result<()> {
    let mut bytes = vec![0; block];
    for number in 0..size.div_ceil(block as u64) {
        let file = small::file(path, number);
        file.parent().map_or(Ok(()), fs::create_dir_all)?;
        pattern.fill(small::offset(number, block), &mut bytes);
        fs::write(file, &bytes[..small::len(size, block, number)])?;
    }
    Ok(())
}

/// Takes the metadata of everything in it, or reads all of it.
pub(super) fn warm(path: &Path, contents: bool) -> io::Result<()> {
    for dir in path.read_dir()? {
        for file in dir?.path().read_dir()? {
            let file = file?;
            file.metadata()?;
            if contents {
                fs::read(file.path())?;
            }
        }
    }
    Ok(())
}

/// Where the kernel is told to forget what it has cached.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Filesystems without a disk: tmpfs and ramfs (statfs(2)).
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// Has the kernel forget all metadata, of everything. It takes root.
pub(super) fn cool() -> io::Result<()> {
    fs::write(DROP_CACHES, "3").map_err(|error| io::Error::new(error.kind(), by_root_alone(&error)))
}

/// Why metadata of files in `place` cannot be made cold; `None` if it can.
pub(crate) fn stays_warm(place: &Path) -> Option<String> {
    let kind = File::open(place).ok().and_then(|dir| fs_magic(dir.as_fd()));
    if kind.is_some_and(|kind| IN_MEMORY.contains(&kind)) {
        return Some("its files are in memory, and nowhere else".to_owned());
    }
    File::options().write(true).open(DROP_CACHES).err().map(|error| by_root_alone(&error))
}

fn by_root_alone(error: &io::Error) -> String {
    format!("metadata can be made cold by root alone ({DROP_CACHES}): {}", super::words(error))
}

/// What is wrong with what a sample has counted.
pub(super) fn wrong(files: u64, deed: Deed, outcome: &Answer) -> Option<String> {
    let entries = files + files.div_ceil(WIDTH);
    let bytes: u64 = (0..files).map(|number| number % SIZES).sum();
    if outcome.ops != entries {
        return Some(format!("{} entries were counted instead of {entries}", outcome.ops));
    }
    let counted = deed == Deed::Stat && outcome.bytes != bytes;
    counted.then(|| format!("sizes came to {} instead of {bytes}", outcome.bytes))
}
