//! The final pass: puts the tables of all units together into one inventory, with the rows in the
//! order of one machine's scan.

mod dirs;
mod entries;
mod plan;
mod rows;

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use fathom_text::strerror;
use fathom_walk::Errno;

use super::job::Job;
use crate::scan::{create_part_dir, local_root, publish, seconds};
use fathom_inventory::Owners;
use fathom_inventory::store::{
    BatchWriter, Completeness, Error, ErrorRow, Inventory, Manifest, Op, OptionalColumns, PathColumns,
    ReuseSummary, RowBatch, RowGroup, SegmentWriter, TIME_OPERATION, Table, VERSION, errno_of, rename_new,
    stored_path,
};
use plan::Plan;

/// The directory in which the new tables are written.
const WHOLE: &str = "whole";

/// The counts of the new inventory.
#[derive(Default)]
struct StitchTotals {
    entries: u64,
    completeness: Completeness,
}

/// Writes the new tables.
struct Stitcher<'a> {
    plan: Plan,
    writer: BatchWriter,
    batch: RowBatch,
    totals: StitchTotals,
    stop: &'a AtomicBool,
    progress: &'a mut dyn FnMut(u64),
}

impl Job {
    /// Puts the tables of all units together, and gives the inventory its name. `stopped` says why
    /// units are missing. If some are, or have failed, the inventory is incomplete, and another
    /// driver can go on. `progress` is called with the number of entries so far.
    ///
    /// # Errors
    /// If tables are damaged or cannot be written, if another inventory has the name by now, or
    /// once `stop` is set.
    pub fn finish(
        &self,
        stopped: Option<&str>,
        owners: &Owners,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Manifest, Error> {
        let whole = self.part().join(WHOLE);
        remove(&whole)?;
        create_part_dir(&whole).map_err(|error| Error::new(Op::Create, &whole, error))?;
        let plan = Plan::read(self.part(), self.operand_count())?;
        let writer = SegmentWriter::new(whole.clone(), Vec::new(), 0, OptionalColumns::default());
        let mut stitcher = Stitcher {
            plan,
            writer: BatchWriter::start(writer),
            batch: RowBatch::default(),
            totals: StitchTotals::default(),
            stop,
            progress,
        };
        let written = stitcher.entries().and_then(|()| stitcher.dirs()).and_then(|()| stitcher.errors());
        stitcher.send();
        let Stitcher { plan, writer, totals, .. } = stitcher;
        // A write error is the cause of the errors after it: report it first.
        let writer = writer.end()?;
        let reused = written?;
        let files = writer.finish(owners)?;
        let hosts: HashSet<&str> = plan.units.iter().map(|unit| unit.host.as_str()).collect();
        let host = if hosts.len() > 1 { "several hosts" } else { &self.file.host };
        let missing = match (stopped, plan.failed()) {
            (Some(why), _) if plan.pending > 0 => Some(why.to_owned()),
            (_, 0) => (plan.pending > 0).then(|| "interrupted".to_owned()),
            (_, 1) => Some("a unit killed its workers".to_owned()),
            (_, count) => Some(format!("{count} units killed their workers")),
        };
        let scan = self.file.scan();
        let manifest = Manifest {
            format: VERSION,
            tool: concat!("fathom ", env!("CARGO_PKG_VERSION")).to_owned(),
            host: host.to_owned(),
            roots: self.file.operands().iter().map(local_root).collect(),
            options: scan.options,
            optional_columns: OptionalColumns::default(),
            start: self.file.start,
            end: seconds(SystemTime::now()),
            entries: totals.entries,
            completeness: Completeness { stopped: missing, ..totals.completeness },
            since: self
                .file
                .since()
                .map(|path| ReuseSummary { path: path.to_string_lossy().into_owned(), ..reused }),
            files,
        };
        manifest.write(&whole)?;
        self.publish(&whole, &manifest)?;
        Ok(manifest)
    }

    /// Gives the inventory its name, and removes the directory of the units if nothing is missing.
    fn publish(&self, whole: &Path, manifest: &Manifest) -> Result<(), Error> {
        if self.earlier_result().is_some() {
            // The inventory of a run that a deadline has ended: this one takes its place.
            let old = self.part().join("replaced");
            remove(&old)?;
            rename_new(&self.out, &old).map_err(|error| Error::new(Op::Rename, &self.out, error))?;
        }
        publish(whole, &self.out, ": remove it, and continue (--resume)")?;
        if manifest.completeness.stopped.is_none() {
            self.remove_part()
        } else {
            remove(&self.part().join("replaced"))
        }
    }
}

fn remove(directory: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::new(Op::Write, directory, error)),
        _ => Ok(()),
    }
}

impl Stitcher<'_> {
    fn send(&mut self) {
        // A failed writer returns its error from `end`.
        let _ = self.writer.send(std::mem::take(&mut self.batch));
    }

    fn send_if_full(&mut self) -> Result<(), Error> {
        if self.writer.is_filled(&self.batch) {
            self.send();
            self.check_stop()?;
        }
        Ok(())
    }

    /// Reports progress.
    ///
    /// # Errors
    /// If the pass must stop.
    fn check_stop(&mut self) -> Result<(), Error> {
        (self.progress)(self.totals.entries);
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::new(Op::Write, Path::new(WHOLE), "interrupted"));
        }
        Ok(())
    }

    fn damaged(&self, unit: usize, why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::new(Op::Read, &self.plan.units[unit].directory, why)
    }

    /// Adds a row of `errors` about a directory whose unit has failed.
    fn failed_dir(&mut self, id: i64, path: Option<&[u8]>, reason: &str) {
        self.batch.errors.push(&ErrorRow {
            dir_id: Some(id),
            name: None,
            path: path.and_then(stored_path),
            op: "read",
            errno: Errno::IO.raw_os_error(),
            message: reason.as_bytes(),
        });
    }

    /// Writes the errors of all units, and adds up the rest of their manifests. Returns the part
    /// that was copied from an earlier inventory.
    fn errors(&mut self) -> Result<ReuseSummary, Error> {
        let mut reused = ReuseSummary { path: String::new(), directories: 0, entries: 0 };
        for unit in 0..self.plan.units.len() {
            if self.plan.units[unit].roots.is_empty() {
                continue;
            }
            let inventory = Inventory::open(&self.plan.units[unit].directory)?;
            let then = &inventory.manifest().completeness;
            let now = &mut self.totals.completeness;
            now.unknown_entries += then.unknown_entries;
            now.unknown_values += then.unknown_values;
            now.missing_roots += then.missing_roots;
            now.clamped_times += then.clamped_times;
            if let Some(since) = &inventory.manifest().since {
                reused.directories += since.directories;
                reused.entries += since.entries;
            }
            let mut sent = Ok(());
            inventory.each(Table::Errors, |group| {
                self.error_rows(unit, group)?;
                sent = self.send_if_full();
                Ok(())
            })?;
            sent?;
        }
        Ok(reused)
    }

    fn error_rows(&mut self, unit: usize, group: &RowGroup<'_>) -> parquet::errors::Result<()> {
        let (ids, errnos) = (group.numbers("dir_id")?, group.numbers("errno")?);
        let (paths, ops) = (PathColumns::read(group)?, group.texts("op")?);
        let [names, raw] = [group.texts("name")?, group.texts("name_raw")?];
        for row in 0..group.rows() {
            let (id, name) = (ids.get(row), raw.get(row).or(names.get(row)));
            let op = ops.get(row).and_then(|op| std::str::from_utf8(op).ok()).unwrap_or("access");
            if id.is_some_and(|id| name.is_none() && self.plan.is_told_elsewhere(unit, id)) {
                self.totals.completeness.clamped_times -= u64::from(op == TIME_OPERATION);
                continue;
            }
            let errno = errno_of(errnos.get(row));
            self.batch.errors.push(&ErrorRow {
                dir_id: id.map(|id| self.plan.new_id(unit, id)),
                name,
                path: paths.get(row),
                op,
                errno: errno.raw_os_error(),
                message: &strerror(errno),
            });
        }
        Ok(())
    }
}
