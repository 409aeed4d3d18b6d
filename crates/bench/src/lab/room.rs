//! Whether there is room for a run: on the disk, in memory, below the limits of dirty pages.

use std::path::Path;

use rustix::fs::statvfs;

/// What a run needs and has, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Room {
    /// Free on the disk, for who is not root.
    pub disk_bytes: u64,
    /// Memory that could be had.
    pub memory_bytes: u64,
    /// Dirty pages from which on the kernel holds up writers.
    pub dirty_bytes: u64,
}

/// Kept free of what there is on the disk.
const DISK_RESERVE: u64 = 64 << 20;

impl Room {
    /// What there is at `dir`. What the kernel does not tell is taken for boundless.
    ///
    /// # Errors
    /// If the filesystem cannot be asked.
    pub fn at(dir: &Path) -> std::io::Result<Self> {
        let disk = statvfs(dir)?;
        let page_bytes = rustix::param::page_size() as u64;
        Ok(Self {
            disk_bytes: disk.f_bavail.saturating_mul(disk.f_frsize),
            memory_bytes: number("/proc/meminfo", "MemAvailable:").map_or(u64::MAX, |kib| kib * 1024),
            dirty_bytes: number("/proc/vmstat", "nr_dirty_threshold")
                .map_or(u64::MAX, |pages| pages * page_bytes),
        })
    }

    /// Why a file of `size` bytes and `buffers` bytes of memory have no room here.
    ///
    /// # Errors
    /// A sentence.
    pub fn check(&self, size: u64, buffers: u64) -> Result<(), String> {
        if size.saturating_add(DISK_RESERVE) > self.disk_bytes {
            return Err(format!(
                "{size} bytes and a reserve are needed on the disk, {} are free",
                self.disk_bytes
            ));
        }
        if buffers > self.memory_bytes / 2 {
            return Err(format!(
                "{buffers} bytes of buffers are needed, {} of memory are free",
                self.memory_bytes
            ));
        }
        Ok(())
    }

    /// What the reader should know of a run of files of `size` bytes.
    #[must_use]
    pub fn notes(&self, size: u64, writes: bool, warm: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if writes && size > self.dirty_bytes / 4 {
            let share = size * 100 / self.dirty_bytes.max(1);
            notes.push(format!(
                "A sample writes {share} % of what the kernel lets be dirty ({} bytes): writers may be held up.",
                self.dirty_bytes
            ));
        }
        if warm && size > self.memory_bytes / 2 {
            notes.push(
                "The file is more than half of the memory: it may not stay in the page cache.".to_owned(),
            );
        }
        notes
    }
}

/// The first number after `name` in a file of names and numbers.
fn number(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut words = text
        .lines()
        .find(|line| line.split_ascii_whitespace().next() == Some(name))?
        .split_ascii_whitespace();
    words.nth(1)?.parse().ok()
}

/// Pages that are being written or wait for it.
pub(super) fn unwritten_pages() -> Option<u64> {
    Some(number("/proc/vmstat", "nr_dirty")? + number("/proc/vmstat", "nr_writeback")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_said() {
        let room = Room { disk_bytes: 1 << 30, memory_bytes: 1 << 30, dirty_bytes: 1 << 28 };
        assert!(room.check(1 << 29, 1 << 20).is_ok());
        assert!(room.check(1 << 30, 0).unwrap_err().contains("disk"));
        assert!(room.check(u64::MAX, 0).unwrap_err().contains("disk"));
        assert!(room.check(0, 1 << 30).unwrap_err().contains("memory"));
        assert_eq!(room.notes(1 << 20, true, true), Vec::<String>::new());
        assert!(room.notes(1 << 28, true, false)[0].contains("100 %"));
        assert!(room.notes(1 << 30, false, true)[0].contains("page cache"));
    }

    #[test]
    fn this_machine_has_some() {
        let room = Room::at(&std::env::temp_dir()).unwrap();
        assert!(room.disk_bytes > 0 && room.memory_bytes > 0 && room.dirty_bytes > 0);
        assert!(Room::at(Path::new("/no/such/directory")).is_err());
    }
}
