//! A rough estimate of what a run takes, shown on a terminal before it starts.

use fathom_bench::Workload;
use fathom_bench::arms::Arm;
use fathom_bench::fixture::{CacheState, Cell};

use crate::shared::progress::format_seconds;

/// Seconds of a sample besides its operations: a process, and files that are put in order.
const SAMPLE_S: f64 = 0.05;
/// Bytes a second of memory, and of a usual disk.
const MEMORY_BYTES_PER_S: f64 = 1.5e9;
const DISK_BYTES_PER_S: f64 = 3e8;
/// Seconds of a read of a usual disk, and of a sync.
const DISK_READ_S: f64 = 1e-4;
const DISK_SYNC_S: f64 = 1e-3;
/// Reads that a usual disk serves at the same time.
const DISK_READS_MAX: f64 = 16.0;
/// Seconds of an entry of a tree with its metadata in memory, and on a usual disk.
const ENTRY_WARM_S: f64 = 3e-6;
const ENTRY_COLD_S: f64 = 4e-5;

/// The samples, bytes and seconds of a run. The time is estimated for a usual machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RunEstimate {
    samples: u64,
    moved_bytes: u64,
    disk_bytes: u64,
    seconds: f64,
}

impl RunEstimate {
    /// Adds `blocks` blocks of `arms` on `cell`; the baseline runs twice in each.
    pub(super) fn add(&mut self, cell: &Cell, arms: &[Arm], blocks: u32) {
        let runs = arms.iter().chain(arms.first());
        let seconds: f64 = runs.clone().map(|arm| sample_seconds(cell, arm)).sum();
        let samples = u64::from(blocks).saturating_mul(runs.count() as u64);
        let bytes = if cell.workload.is_of_tree() { 0 } else { cell.size };
        self.samples += samples;
        self.moved_bytes = self.moved_bytes.saturating_add(samples.saturating_mul(bytes));
        self.disk_bytes = self.disk_bytes.max(cell.demand().disk_bytes);
        self.seconds += seconds * f64::from(blocks);
    }

    /// Formats the estimate, as in `132 samples, 132 GiB to move, 1.0 GiB on the disk, roughly 3
    /// min`.
    pub(super) fn text(&self) -> String {
        let bytes = |bytes: u64, what: &str| {
            if bytes == 0 { String::new() } else { format!(", {} {what}", binary(bytes)) }
        };
        let (moved, disk) = (bytes(self.moved_bytes, "to move"), bytes(self.disk_bytes, "on the disk"));
        format!("{} samples{moved}{disk}, roughly {}", self.samples, format_seconds(self.seconds))
    }
}

fn sample_seconds(cell: &Cell, arm: &Arm) -> f64 {
    let waits = cell.cache == CacheState::Cold || cell.direct;
    let ops = cell.size.div_ceil(cell.block.max(1) as u64) as f64;
    let in_flight = ((arm.threads * arm.depth) as f64).min(DISK_READS_MAX);
    let memory = cell.size as f64 / MEMORY_BYTES_PER_S;
    let disk = cell.size as f64 / DISK_BYTES_PER_S;
    let random_reads = if waits { ops * DISK_READ_S / in_flight } else { 2.0 * memory };
    // The written bytes go to the disk before the next sample, and are read back.
    let writes = 2.0 * memory + disk;
    let share = f64::from(cell.read_percent) / 100.0;
    SAMPLE_S
        + match cell.workload {
            Workload::Walk | Workload::Stat => {
                cell.files as f64 * if waits { ENTRY_COLD_S } else { ENTRY_WARM_S }
            }
            Workload::AppendSync => ops * DISK_SYNC_S,
            Workload::Write | Workload::RandomWrite | Workload::Copy => writes,
            Workload::Mixed => share * random_reads + (1.0 - share) * writes,
            Workload::Read if waits => disk,
            Workload::Serve if cell.rate > 0 => random_reads.max(ops / f64::from(cell.rate)),
            _ => random_reads,
        }
}

/// Formats bytes in the largest binary unit that leaves a number of at least 1.
fn binary(bytes: u64) -> String {
    let units = [(1_u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.iter().find(|(unit, _)| bytes >= *unit);
    unit.map_or_else(
        || format!("{bytes} B"),
        |(unit, name)| format!("{:.1} {name}", bytes as f64 / *unit as f64),
    )
}

#[cfg(test)]
mod tests {
    use fathom_bench::arms::arms;

    use super::*;

    #[test]
    fn samples_and_bytes_are_counted_and_time_grows_with_the_work() {
        let cell = |workload, cache, size| Cell {
            workload,
            size,
            block: 4096,
            files: 1000,
            direct: false,
            sync: false,
            cache,
            read_percent: 70,
            rate: 0,
            seed: 1,
            own: None,
        };
        let of = |cell: &Cell| {
            let mut estimate = RunEstimate::default();
            estimate.add(cell, &arms(cell.workload, &[]), 10);
            estimate
        };
        let write = of(&cell(Workload::Write, CacheState::Any, 1 << 30));
        // Ten arms and the baseline's copy.
        assert_eq!((write.samples, write.moved_bytes, write.disk_bytes), (110, 110 << 30, 1 << 30));
        assert!(write.text().starts_with("110 samples, 110.0 GiB to move, 1.0 GiB on the disk, roughly "));
        let [warm, cold] = [CacheState::Warm, CacheState::Cold]
            .map(|cache| of(&cell(Workload::RandomRead, cache, 1 << 28)).seconds);
        assert!(cold > warm);
        let tree = of(&cell(Workload::Stat, CacheState::Warm, 0));
        assert_eq!(tree.text(), format!("{} samples, roughly 6 s", tree.samples));
    }
}
