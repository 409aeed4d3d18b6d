//! The words for the space of a filesystem: in the last line, and in the information.

use fathom_remove::DeletedFile;
use fathom_text::human::BlockSize;

use super::text;
use crate::disk::DiskSpace;

/// Returns the facts for the last line. `allocated` is the sum of the whole tree, if it is known.
pub(super) fn facts(space: &DiskSpace, allocated: Option<u64>, units: BlockSize) -> Vec<String> {
    let size = |bytes| text::size(bytes, units);
    let mut facts = vec![format!("filesystem {}, {} free", size(space.bytes.size), size(space.bytes.free))];
    if let Some((file, program)) = space.largest_deleted.first().filter(|_| space.is_much_deleted()) {
        facts.push(format!("{} deleted but open: {}", size(space.deleted), process(file, program)));
    }
    if let Some(bytes) = allocated.and_then(|allocated| space.unexplained(allocated)) {
        facts.push(format!("{} in no file here", size(bytes)));
    }
    facts
}

/// Returns the lines for the information.
pub(super) fn lines(space: &DiskSpace, units: BlockSize) -> Vec<String> {
    let size = |bytes| text::size(bytes, units);
    let (all, used, free) = (size(space.bytes.size), size(space.bytes.used), size(space.bytes.free));
    let mut lines = vec![format!("disk      {all}, {used} used, {free} free")];
    if !space.largest_deleted.is_empty() {
        lines.push(format!("          {} in deleted files that are still open:", size(space.deleted)));
    }
    for (file, program) in &space.largest_deleted {
        let (bytes, path) = (size(file.allocated), text::message(&file.path));
        lines.push(format!("          {bytes:>6} {}: {path}", process(file, program)));
    }
    lines
}

fn process(file: &DeletedFile, program: &[u8]) -> String {
    format!("{} (pid {})", text::message(program), file.holder.pid)
}
