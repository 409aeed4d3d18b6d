//! What is asked: every workload, warm and cold, small enough to be answered in seconds; and which arms may be the answer.

use fathom_io::uring::Completion;

use crate::arms::{Arm, arms};
use crate::lab::{Cache, Cell};
use crate::sample::Deed;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Bytes of one read of a file from its beginning to its end.
pub(super) const READ_BYTES: u64 = 128 * KIB;
/// Files of a tree.
const FILES: u64 = 50_000;
/// A thread of the kernel's that polls takes a processor from the work where there are no more than these.
const CPUS_FEW: usize = 2;
/// Of the published methods of writing, those with this many threads: eight, more or less.
const WRITERS: &str = "10_threads_pwrite";

/// Workload, state of the cache, bytes of the file or of all files, bytes of an operation. What the same files do for stands together.
/// Warm work is more than cold work, so that it takes as long.
const QUESTIONS: [(Deed, Cache, u64, u64); 15] = [
    (Deed::RandomRead, Cache::Warm, 192 * MIB, 4 * KIB),
    (Deed::Read, Cache::Warm, 192 * MIB, READ_BYTES),
    (Deed::Read, Cache::Cold, 192 * MIB, READ_BYTES),
    (Deed::RandomRead, Cache::Cold, 24 * MIB, 4 * KIB),
    (Deed::Write, Cache::Any, 96 * MIB, 64 * KIB),
    (Deed::AppendSync, Cache::Any, 512 * KIB, 4 * KIB),
    (Deed::SmallFiles, Cache::Warm, 32 * MIB, 4 * KIB),
    (Deed::SmallFiles, Cache::Cold, 32 * MIB, 4 * KIB),
    (Deed::Serve, Cache::Warm, 32 * MIB, 4 * KIB),
    (Deed::Serve, Cache::Cold, 32 * MIB, 4 * KIB),
    (Deed::Walk, Cache::Warm, 0, 0),
    (Deed::Walk, Cache::Cold, 0, 0),
    (Deed::Stat, Cache::Warm, 0, 0),
    (Deed::Stat, Cache::Cold, 0, 0),
    (Deed::Copy, Cache::Warm, 96 * MIB, 128 * KIB),
];

/// The cells to ask about, `scale` times as large as usual. The first one is that of the constants.
pub(super) fn questions(seed: u64, scale: f64) -> Vec<Cell> {
    let scaled = |number: u64| (number as f64 * scale) as u64;
    let cell = |(deed, cache, size, block): (Deed, Cache, u64, u64)| Cell {
        deed,
        size: scaled(size).next_multiple_of(block.max(1)),
        block: block as usize,
        files: scaled(FILES),
        direct: false,
        sync: false,
        cache,
        seed,
    };
    QUESTIONS.into_iter().map(cell).collect()
}

/// The same file read past the page cache: how latency goes with depth.
pub(super) fn direct(warm: &Cell) -> Cell {
    let size = (warm.size / 24).next_multiple_of(warm.block as u64);
    Cell { direct: true, cache: Cache::Any, size, ..warm.clone() }
}

/// The arms that may be the answer for `cell` on a machine with `cpus` processors.
pub(super) fn candidates(cell: &Cell, cpus: usize) -> Vec<Arm> {
    let all = match cell.deed {
        Deed::Write => {
            arms(Deed::Write, &["threads", "pool", "tokio", "mmap", "uring", "nowait"].map(str::to_owned))
        }
        deed => arms(deed, &[]),
    };
    let is_candidate = |arm: &Arm| {
        arm.completion == Completion::Wait
            && (arm.model != "uring-polled" || cpus > CPUS_FEW)
            && (cell.deed != Deed::Write || arm.threads == 1 || arm.name == WRITERS)
    };
    all.into_iter().filter(is_candidate).collect()
}

/// The arms that show how much is gained by more operations under way.
pub(super) fn depths(cell: &Cell) -> Vec<Arm> {
    arms(cell.deed, &["threads".to_owned(), "uring".to_owned()])
        .into_iter()
        .filter(|arm| arm.completion == Completion::Wait)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_is_asked_about_once_in_each_state() {
        let cells = questions(7, 1.0);
        let labels: std::collections::HashSet<String> = cells.iter().map(Cell::label).collect();
        assert_eq!(labels.len(), cells.len());
        for deed in Deed::ALL {
            assert!(cells.iter().any(|cell| cell.deed == deed), "{deed:?}");
        }
        assert_eq!(cells[0].label(), "random-read 192 MiB in 4 KiB blocks, warm");
        assert!(direct(&questions(7, 0.1)[0]).size.is_multiple_of(4096));
        let larger = questions(7, 1.5);
        assert_eq!((larger[0].size, larger[10].files), (288 * MIB, 75_000));
    }

    #[test]
    fn what_burns_a_processor_is_no_candidate_where_there_are_few() {
        for cell in questions(1, 1.0) {
            let few = candidates(&cell, 2);
            assert_eq!(few[0].name, "blocking");
            assert!(few.len() > 1, "{}", cell.label());
            assert!(few.iter().all(|arm| arm.completion == Completion::Wait && arm.model != "uring-polled"));
        }
        let warm = &questions(1, 1.0)[0];
        assert_eq!(candidates(warm, 3).len(), candidates(warm, 2).len() + 1);
        assert!(depths(warm).iter().any(|arm| arm.depth == 128));
    }
}
