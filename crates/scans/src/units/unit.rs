//! A unit of a scan: reads its roots until its budget is over, and writes tables and a record.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use fathom_walk::Model;

use super::job::JobFile;
use super::record::{UnitEnd, UnitRange, UnitRecord, attempt_path, roots_of, write_lists};
use crate::scan::{CutOptions, EarlierInventory, Observer, Scan, host, read_earlier_of, scan_unit};
use fathom_inventory::store::{Error, Op};

/// Bytes of a directory for each of its slices: about 65,536 names of usual length on ext4.
pub const SLICE_BYTES: i64 = 2 << 20;

/// The options of an attempt at a unit.
#[derive(Clone, Debug)]
pub struct UnitOptions {
    /// The time after which no more directories are entered.
    pub budget: Duration,
    /// Most pieces that the rest is cut into.
    pub pieces: usize,
    /// Most units that read one directory with very many names.
    pub slices: usize,
    /// Bytes of such a directory for each of those units.
    pub slice_bytes: i64,
    /// Most entries that are examined in a second.
    pub rate: Option<u64>,
    /// Most directories that are read at once.
    pub in_flight_max: Option<usize>,
    /// The number of threads; the model decides if it is `None`.
    pub threads: Option<usize>,
    /// The I/O model.
    pub model: Model,
    /// Ends the unit without a record when it is set.
    pub stop: Arc<AtomicBool>,
}

/// A worker: what it keeps from one unit of a scan to the next.
pub struct UnitWorker {
    part: std::path::PathBuf,
    job: JobFile,
    earlier: EarlierInventory,
}

impl std::fmt::Debug for UnitWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnitWorker").field("part", &self.part).finish_non_exhaustive()
    }
}

impl UnitWorker {
    /// Prepares this machine for units of the scan in `part`.
    ///
    /// # Errors
    /// If there is no scan, if this machine sees other filesystems at its operands, or if the
    /// earlier inventory cannot be read.
    pub fn new(part: &Path) -> Result<Self, Error> {
        let job = JobFile::read(part)?;
        job.check_mounts(false)?;
        let earlier = read_earlier_of(&job.scan())?;
        Ok(Self { part: part.to_owned(), job, earlier })
    }

    /// Returns the directory of the scan.
    #[must_use]
    pub fn part(&self) -> &Path {
        &self.part
    }

    /// Makes an attempt at a unit, and writes its record under the temporary name.
    ///
    /// # Errors
    /// If the references cannot be read, if the tables cannot be written, or once `stop` is set.
    pub fn run(
        &mut self,
        unit: &UnitRange,
        attempt: i64,
        options: &UnitOptions,
        observer: &mut dyn Observer,
    ) -> Result<UnitRecord, Error> {
        let begin = Instant::now();
        let roots = roots_of(&self.part, unit, &self.job.operands())?;
        let out = attempt_path(&self.part, &unit.id, attempt);
        let scan = Scan {
            roots: roots.iter().map(|root| root.path.clone()).collect(),
            model: options.model,
            threads: options.threads,
            in_flight_max: options.in_flight_max,
            rate: options.rate,
            checkpoint_entries: u64::MAX,
            stop: Arc::clone(&options.stop),
            ..self.job.scan()
        };
        let cut = CutOptions {
            budget: options.budget,
            part: self.part.clone(),
            roots,
            slices_max: u32::try_from(options.slices).unwrap_or(u32::MAX),
            slice_bytes: options.slice_bytes,
        };
        let scanned = scan_unit(&scan, cut, self.earlier.take(), &out, observer);
        let (outcome, cut, earlier) = match scanned {
            Ok(scanned) => scanned,
            Err(error) => {
                // The earlier inventory went with the unit.
                self.earlier = read_earlier_of(&self.job.scan())?;
                return Err(error);
            }
        };
        self.earlier = earlier;
        if !outcome.summary.complete {
            return Err(Error::new(Op::Walk, &out, "interrupted"));
        }
        // A mount that went away meanwhile left empty directories, and no error.
        self.job.check_mounts(true)?;
        let expected = write_lists(&out, &cut)?;
        let manifest = outcome.manifest;
        let rows = |table: &str| {
            manifest.files.iter().filter(|file| file.table == table).map(|file| file.rows).sum::<u64>()
        };
        let record = UnitRecord {
            unit: unit.clone(),
            attempt,
            end: UnitEnd::Scanned,
            pieces: pieces(&expected, options.pieces),
            entries: manifest.entries - cut.left.len() as u64,
            dirs: rows("dirs") - cut.left.len() as u64,
            errors: rows("errors"),
            complete: rows("errors") == 0,
            seconds: begin.elapsed().as_secs_f64(),
            host: host(),
            reason: String::new(),
        };
        record.write_new(&self.part)?;
        Ok(record)
    }
}

/// Cuts references into at most `pieces` ranges that are expected to have about the same number of
/// entries.
fn pieces(expected: &[u64], pieces: usize) -> Vec<(usize, usize)> {
    let pieces = pieces.clamp(1, expected.len().max(1)) as u128;
    let total: u128 = expected.iter().copied().map(u128::from).sum();
    let (mut found, mut start, mut sum) = (Vec::new(), 0, 0);
    for (at, entries) in expected.iter().enumerate() {
        // A range ends at the nearest place to its share of the total.
        let target = total * (found.len() as u128 + 1);
        let after = sum + u128::from(*entries);
        let is_end = target.abs_diff(sum * pieces) < target.abs_diff(after * pieces);
        if at > start && (is_end || expected.len() as u128 <= pieces) {
            found.push((start, at));
            start = at;
        }
        sum = after;
    }
    if start < expected.len() {
        found.push((start, expected.len()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_everything_once() {
        assert_eq!(pieces(&[], 4), []);
        assert_eq!(pieces(&[1; 3], 8), [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(pieces(&[7; 10], 4), [(0, 3), (3, 5), (5, 8), (8, 10)]);
        assert_eq!(pieces(&[1; 5], 0), [(0, 5)]);
        assert_eq!(pieces(&[0, 0], 2).iter().map(|(start, end)| end - start).sum::<usize>(), 2);
    }

    #[test]
    fn pieces_have_as_many_entries_as_others() {
        let mut expected = vec![1; 36];
        expected.extend([100; 64]);
        assert_eq!(pieces(&expected, 2), [(0, 68), (68, 100)]);
        assert_eq!(pieces(&[1000, 1, 1, 1], 2), [(0, 1), (1, 4)]);
        assert_eq!(pieces(&[1, 1, 1, 1000], 2), [(0, 3), (3, 4)]);
        assert_eq!(pieces(&[u64::MAX; 4], 2), [(0, 2), (2, 4)]);
    }
}
