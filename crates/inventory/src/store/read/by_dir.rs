//! The rows of `entries` by directory, in any order: where they are is known, they are read when asked for, and a few row
//! groups are kept decoded. Takes 24 bytes for each directory with entries, and some tens of megabytes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use parquet::errors::Result;

use super::decode::damaged;
use super::part::Part;
use super::rows::Rows;
use super::{Inventory, Table};
use crate::store::chunk::Chunk;
use crate::store::error::{Error, Op};
use crate::store::manifest::Listed;

/// Row groups that stay decoded. Whoever asks in the order of the rows needs one, and another while a directory ends.
const GROUPS_MAX: usize = 3;
/// Rows of a chunk.
const CHUNK_ROWS: usize = 1024;

/// Where there are rows of a directory.
#[derive(Clone, Copy, Debug)]
struct Run {
    dir_id: i64,
    file: u32,
    group: u32,
    start: u32,
    rows: u32,
}

/// The rows of `entries`.
pub(crate) struct ByDir {
    files: Vec<(PathBuf, Listed)>,
    format: u32,
    /// By directory, those of one in the order of the rows.
    runs: Vec<Run>,
    open: Option<(u32, Part)>,
    /// The one used last first.
    decoded: Vec<((u32, u32), Rows)>,
}

impl ByDir {
    /// Finds out where the rows are; and the directories with entries of which nothing is known.
    pub(crate) fn read(inventory: &Inventory) -> std::result::Result<(Self, HashSet<i64>), Error> {
        let (mut runs, mut unknown) = (Vec::new(), HashSet::new());
        let mut files = Vec::new();
        for at in inventory.files_of(Table::Entries) {
            let listed = &inventory.manifest.files[at];
            let (path, number) = (inventory.directory.join(&listed.name), files.len() as u32);
            let part = inventory.part(at, Table::Entries);
            part.and_then(|part| index(&part, number, &mut runs, &mut unknown))
                .map_err(|error| Error::new(Op::Read, &path, error))?;
            files.push((path, listed.clone()));
        }
        runs.sort_by_key(|run| run.dir_id);
        let format = inventory.manifest.format;
        Ok((Self { files, format, runs, open: None, decoded: Vec::new() }, unknown))
    }

    /// Calls `take` with the rows of `dir_id`, in their order.
    pub(crate) fn each(
        &mut self,
        dir_id: i64,
        mut take: impl FnMut(Box<Chunk>),
    ) -> std::result::Result<(), Error> {
        let start = self.runs.partition_point(|run| run.dir_id < dir_id);
        let end = self.runs.partition_point(|run| run.dir_id <= dir_id);
        for at in start..end {
            let run = self.runs[at];
            let rows = self.rows(run).map_err(|error| {
                let file = self.files.get(run.file as usize);
                Error::new(Op::Read, file.map_or(Path::new("entries"), |(path, _)| path), error)
            })?;
            rows.into_iter().map(Box::new).for_each(&mut take);
        }
        Ok(())
    }

    fn rows(&mut self, run: Run) -> Result<Vec<Chunk>> {
        self.decode(run.file, run.group)?;
        let Some((_, rows)) = self.decoded.first() else { return Ok(Vec::new()) };
        let all = run.start as usize..(run.start + run.rows) as usize;
        let starts = all.clone().step_by(CHUNK_ROWS);
        starts.map(|start| rows.chunk(start..all.end.min(start + CHUNK_ROWS))).collect()
    }

    /// Puts a row group in front of those that are decoded.
    fn decode(&mut self, file: u32, group: u32) -> Result<()> {
        if let Some(at) = self.decoded.iter().position(|(place, _)| *place == (file, group)) {
            self.decoded[..=at].rotate_right(1);
            return Ok(());
        }
        let rows = Rows::read(&self.part(file)?.group(group as usize)?)?;
        self.decoded.truncate(GROUPS_MAX - 1);
        self.decoded.insert(0, ((file, group), rows));
        Ok(())
    }

    fn part(&mut self, file: u32) -> Result<&Part> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != file) {
            let (path, listed) =
                self.files.get(file as usize).ok_or_else(|| damaged("there is no such file"))?;
            self.open = Some((file, Part::open(path, listed, Table::Entries.specs(), self.format)?));
        }
        self.open.as_ref().map(|(_, part)| part).ok_or_else(|| damaged("there is no such file"))
    }
}

/// Adds the runs of a file.
fn index(part: &Part, file: u32, runs: &mut Vec<Run>, unknown: &mut HashSet<i64>) -> Result<()> {
    let mut number = 0;
    part.each(&mut |group| {
        let (ids, errnos) = (group.numbers("dir_id")?, group.numbers("errno")?);
        for (row, dir_id) in (0..).zip(ids.or_zero().iter().copied()) {
            if errnos.get(row as usize).is_some() {
                unknown.insert(dir_id);
            }
            match runs.last_mut() {
                Some(run) if (run.dir_id, run.file, run.group) == (dir_id, file, number) => run.rows += 1,
                _ => runs.push(Run { dir_id, file, group: number, start: row, rows: 1 }),
            }
        }
        number += 1;
        Ok(())
    })
}
