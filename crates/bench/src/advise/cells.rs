//! The cells of an advice run: every workload, warm and cold, small enough for a run of seconds;
//! and the candidate arms of each.

use fathom_io::Model;
use fathom_io::uring::Completion;

use crate::Workload;
use crate::arms::{Arm, arms};
use crate::fixture::{CacheState, Cell};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Bytes of one read in a sequential read of a file.
pub(super) const READ_BYTES: u64 = 128 * KIB;
/// Files of a tree.
const FILES: u64 = 50_000;
/// Up to this number of processors, an SQPOLL thread takes a processor that the work needs.
const CPUS_FEW: usize = 2;
/// The candidate among the published write arms: the number of threads nearest to eight.
const THREADED_WRITE_ARM: &str = "threads=10";

/// Workload, cache state, bytes of the file or of all files, bytes of an operation: the most
/// valuable question first, because time may run out. Workloads that share their files are
/// adjacent. The cells that depend on the device are the largest: a slow device gets smaller ones.
const ADVICE_CELLS: [(Workload, CacheState, u64, u64); 15] = [
    (Workload::Stat, CacheState::Cold, 0, 0),
    (Workload::Walk, CacheState::Cold, 0, 0),
    (Workload::Stat, CacheState::Warm, 0, 0),
    (Workload::Walk, CacheState::Warm, 0, 0),
    (Workload::Serve, CacheState::Cold, 16 * MIB, 4 * KIB),
    (Workload::SmallFiles, CacheState::Cold, 16 * MIB, 4 * KIB),
    (Workload::Serve, CacheState::Warm, 16 * MIB, 4 * KIB),
    (Workload::SmallFiles, CacheState::Warm, 16 * MIB, 4 * KIB),
    (Workload::Copy, CacheState::Warm, 96 * MIB, 128 * KIB),
    (Workload::RandomRead, CacheState::Warm, 192 * MIB, 4 * KIB),
    (Workload::Read, CacheState::Cold, 192 * MIB, READ_BYTES),
    (Workload::Read, CacheState::Warm, 192 * MIB, READ_BYTES),
    (Workload::RandomRead, CacheState::Cold, 24 * MIB, 4 * KIB),
    (Workload::Write, CacheState::Any, 96 * MIB, 64 * KIB),
    (Workload::AppendSync, CacheState::Any, 512 * KIB, 4 * KIB),
];

/// Returns the cells of an advice run, scaled by `scale`.
pub(super) fn advice_cells(seed: u64, scale: f64) -> Vec<Cell> {
    let scaled = |number: u64| (number as f64 * scale) as u64;
    let cell = |(workload, cache, size, block): (Workload, CacheState, u64, u64)| Cell {
        workload,
        size: scaled(size).next_multiple_of(block.max(1)),
        block: block as usize,
        files: scaled(FILES),
        direct: false,
        sync: false,
        cache,
        read_percent: 0,
        rate: 0,
        seed,
        own: None,
    };
    ADVICE_CELLS.into_iter().map(cell).collect()
}

/// Returns the cell of `cells` that also yields the cost constants.
pub(super) fn warm_read_cell(cells: &[Cell]) -> &Cell {
    let is_warm_read = |cell: &&Cell| cell.workload == Workload::RandomRead && cell.cache == CacheState::Warm;
    cells.iter().find(is_warm_read).expect("random reads of a warm file are a question")
}

/// Returns the cell that reads the same file with `O_DIRECT`, to measure latency by depth.
pub(super) fn direct_cell(warm: &Cell) -> Cell {
    let size = (warm.size / 24).next_multiple_of(warm.block as u64);
    Cell { direct: true, cache: CacheState::Any, size, ..warm.clone() }
}

/// Returns the candidate arms for `cell` on a machine with `cpus` processors.
pub(super) fn candidates(cell: &Cell, cpus: usize) -> Vec<Arm> {
    let all = match cell.workload {
        Workload::Write => {
            use Model::{Mmap, Nowait, Pool, Threads, Tokio, Uring};
            arms(Workload::Write, &[Threads(None), Pool, Tokio, Mmap, Uring(None), Nowait])
        }
        workload => arms(workload, &[]),
    };
    // Advice names models; a hint is no model.
    let is_candidate = |arm: &Arm| {
        let is_model = arm.hint.is_none();
        is_model
            && arm.completion == Completion::Wait
            // Without O_DIRECT, io_submit(2) waits for each transfer.
            && arm.model != Some(Model::Aio)
            && (arm.model != Some(Model::UringPolled) || cpus > CPUS_FEW)
            && (cell.workload != Workload::Write || arm.threads == 1 || arm.name == THREADED_WRITE_ARM)
    };
    all.into_iter().filter(is_candidate).collect()
}

/// Returns the arms that measure the gain from more operations in flight.
pub(super) fn depth_arms(cell: &Cell) -> Vec<Arm> {
    arms(cell.workload, &[Model::Threads(None), Model::Uring(None)])
        .into_iter()
        .filter(|arm| arm.completion == Completion::Wait)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cells_are_distinct_and_cover_the_workloads() {
        let cells = advice_cells(7, 1.0);
        let labels: std::collections::HashSet<String> = cells.iter().map(Cell::label).collect();
        assert_eq!(labels.len(), cells.len());
        // The predictions are of reads and of writes that extend the file.
        for workload in Workload::ALL.into_iter().filter(|workload| !workload.overwrites()) {
            assert!(cells.iter().any(|cell| cell.workload == workload), "{workload:?}");
        }
        assert_eq!(cells[0].label(), "stat 50000 files, cold");
        assert_eq!(warm_read_cell(&cells).label(), "random-read 192 MiB in 4 KiB blocks, warm");
        assert!(direct_cell(warm_read_cell(&advice_cells(7, 0.1))).size.is_multiple_of(4096));
        let larger = advice_cells(7, 1.5);
        assert_eq!((warm_read_cell(&larger).size, larger[0].files), (288 * MIB, 75_000));
    }

    #[test]
    fn polling_arms_are_no_candidates_on_few_processors() {
        for cell in advice_cells(1, 1.0) {
            let few = candidates(&cell, 2);
            assert_eq!(few[0].name, "sync");
            assert!(few.len() > 1, "{}", cell.label());
            assert!(
                few.iter()
                    .all(|arm| arm.completion == Completion::Wait && arm.model != Some(Model::UringPolled))
            );
        }
        let cells = advice_cells(1, 1.0);
        let warm = warm_read_cell(&cells);
        assert_eq!(candidates(warm, 3).len(), candidates(warm, 2).len() + 1);
        assert!(depth_arms(warm).iter().any(|arm| arm.depth == 128));
    }
}
