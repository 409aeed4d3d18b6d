//! Finds the rows of `entries` by directory, in any order: an index says where they are, and a few
//! row groups are kept decoded. Takes 24 bytes for each directory with entries, and some tens of
//! megabytes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use parquet::errors::Result;

use super::decode::damaged;
use super::rows::EntryColumns;
use super::table_file::TableFile;
use super::{Inventory, Table};
use crate::store::chunk::RowChunk;
use crate::store::error::{Error, Op};
use crate::store::manifest::ManifestFile;

/// Most decoded row groups. A caller that asks in the order of the rows needs one, and a second one
/// where a directory spans two.
const GROUPS_MAX: usize = 3;
/// Most rows of a chunk.
const CHUNK_ROWS: usize = 1024;

/// Consecutive rows of one directory in a row group.
#[derive(Clone, Copy, Debug)]
struct RowRun {
    dir_id: i64,
    file: u32,
    group: u32,
    start: u32,
    rows: u32,
}

/// An index of the rows of `entries` by directory.
pub struct EntriesByDir {
    files: Vec<(PathBuf, ManifestFile)>,
    /// Sorted by directory; the runs of one directory are in the order of the rows.
    runs: Vec<RowRun>,
    open: Option<(u32, TableFile)>,
    /// The decoded row groups, the most recently used one first.
    decoded: Vec<((u32, u32), EntryColumns)>,
}

impl EntriesByDir {
    /// Builds the index. Returns the directories that have entries without metadata as well.
    pub fn read(inventory: &Inventory) -> std::result::Result<(Self, HashSet<i64>), Error> {
        let (mut runs, mut unknown) = (Vec::new(), HashSet::new());
        let mut files = Vec::new();
        for at in inventory.files_of(Table::Entries) {
            let listed = &inventory.manifest.files[at];
            let (path, number) = (inventory.directory.join(&listed.name), files.len() as u32);
            let part = inventory.open_file(at, Table::Entries);
            part.and_then(|part| index(&part, number, &mut runs, &mut unknown))
                .map_err(|error| Error::new(Op::Read, &path, error))?;
            files.push((path, listed.clone()));
        }
        runs.sort_by_key(|run| run.dir_id);
        Ok((Self { files, runs, open: None, decoded: Vec::new() }, unknown))
    }

    /// Calls `take` with the rows of the directory `dir_id`, in their order.
    pub fn each(
        &mut self,
        dir_id: i64,
        mut take: impl FnMut(Box<RowChunk>),
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

    fn rows(&mut self, run: RowRun) -> Result<Vec<RowChunk>> {
        self.decode(run.file, run.group)?;
        let Some((_, rows)) = self.decoded.first() else { return Ok(Vec::new()) };
        let all = run.start as usize..(run.start + run.rows) as usize;
        let starts = all.clone().step_by(CHUNK_ROWS);
        starts.map(|start| rows.chunk(start..all.end.min(start + CHUNK_ROWS))).collect()
    }

    /// Moves a row group to the front of the decoded ones, and reads it if it is not among them.
    fn decode(&mut self, file: u32, group: u32) -> Result<()> {
        if let Some(at) = self.decoded.iter().position(|(index, _)| *index == (file, group)) {
            self.decoded[..=at].rotate_right(1);
            return Ok(());
        }
        let rows = EntryColumns::read(&self.part(file)?.group(group as usize)?)?;
        self.decoded.truncate(GROUPS_MAX - 1);
        self.decoded.insert(0, ((file, group), rows));
        Ok(())
    }

    fn part(&mut self, file: u32) -> Result<&TableFile> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != file) {
            let (path, listed) = self.files.get(file as usize).ok_or_else(|| damaged("no such file"))?;
            self.open = Some((file, TableFile::open(path, listed, Table::Entries.specs())?));
        }
        self.open.as_ref().map(|(_, part)| part).ok_or_else(|| damaged("no such file"))
    }
}

/// Adds the runs of a file to the index.
fn index(part: &TableFile, file: u32, runs: &mut Vec<RowRun>, unknown: &mut HashSet<i64>) -> Result<()> {
    let mut number = 0;
    part.each(&mut |group| {
        let (ids, errnos) = (group.numbers("dir_id")?, group.numbers("errno")?);
        for (row, dir_id) in (0..).zip(ids.or_zero().iter().copied()) {
            if errnos.get(row as usize).is_some() {
                unknown.insert(dir_id);
            }
            match runs.last_mut() {
                Some(run) if (run.dir_id, run.file, run.group) == (dir_id, file, number) => run.rows += 1,
                _ => runs.push(RowRun { dir_id, file, group: number, start: row, rows: 1 }),
            }
        }
        number += 1;
        Ok(())
    })
}
