//! The arms and samples of a run, grouped by cell.

use serde_json::Value;

use super::markup::{Escaped, name};
use super::number::{NONE, interval, number};
use crate::{ArmSummary, Noise, Row, Run};

/// An arm on a cell.
pub(super) struct ArmSection<'a> {
    /// The JSON pointer of the arm.
    pub(super) at: String,
    /// The arm as JSON.
    object: &'a Value,
    pub(super) summary: &'a ArmSummary,
    /// The name as HTML, with language and concurrency if the name alone is ambiguous.
    pub(super) name: String,
    /// Samples of the arm in order of execution, including discarded ones.
    pub(super) samples: Vec<&'a Row>,
}

impl<'a> ArmSection<'a> {
    fn new(run: &'a Run, json: &'a Value, index: usize) -> Self {
        let (at, summary) = (format!("/arms/{index}"), &run.arms[index]);
        let object = json.pointer(&at).unwrap_or(&Value::Null);
        Self { at, object, summary, name: arm_name(run, summary), samples: Vec::new() }
    }

    /// Formats the number at `key` of the arm. A workload on names alone has no throughput.
    pub(super) fn number(&self, key: &str) -> String {
        let is_none = key == "bytes_per_s" && self.summary.bytes_per_s == 0.0;
        if is_none { NONE.to_owned() } else { number(self.object, key) }
    }

    /// Formats the interval at `key` of the arm.
    pub(super) fn interval(&self, key: &str) -> String {
        interval(self.object, key)
    }

    /// Returns the values that identify the arm within a cell.
    pub(super) fn key(&self) -> (&str, &str, u32, u32) {
        (&self.summary.lang, &self.summary.method, self.summary.threads, self.summary.depth)
    }
}

fn arm_name(run: &Run, arm: &ArmSummary) -> String {
    let same = |other: &&ArmSummary| {
        (&other.cell, &other.lang, &other.method) == (&arm.cell, &arm.lang, &arm.method)
    };
    let is_ambiguous = run.arms.iter().filter(same).count() > 1;
    let lang =
        run.arms.iter().any(|other| other.lang != run.arms[0].lang).then(|| Escaped(&arm.lang).to_string());
    let flight = is_ambiguous.then(|| format!("{}\u{a0}×\u{a0}{}", arm.threads, arm.depth));
    let more: Vec<String> = [lang, flight].into_iter().flatten().collect();
    let more = if more.is_empty() { String::new() } else { format!(" <small>{}</small>", more.join(", ")) };
    format!("<code>{}</code>{more}", name(&arm.method))
}

/// A cell.
pub(super) struct CellSection<'a> {
    pub(super) name: &'a str,
    /// Sorted by time.
    pub(super) arms: Vec<ArmSection<'a>>,
    /// The noise of the cell, with its index in [`Run::noise`].
    pub(super) noise: Option<(usize, &'a Noise)>,
    /// Indexes in [`Run::rows`] of all samples of the cell.
    pub(super) rows: Vec<usize>,
}

impl<'a> CellSection<'a> {
    /// Returns the workload, the first word of the cell's name.
    pub(super) fn workload(&self) -> &'a str {
        workload(self.name)
    }

    /// Returns the section of `arm`, which is one of the run's.
    pub(super) fn section_of(&self, arm: &ArmSummary) -> Option<&ArmSection<'a>> {
        self.arms.iter().find(|section| std::ptr::eq(section.summary, arm))
    }

    /// Returns the arms with counted samples.
    pub(super) fn counted(&self) -> impl Iterator<Item = &ArmSection<'a>> {
        self.arms.iter().filter(|arm| arm.summary.runs > 0)
    }

    /// Returns the cache state.
    pub(super) fn cache(&self) -> &'a str {
        self.arms.first().map_or("", |arm| &arm.summary.cache)
    }

    /// Returns the name without the cache state.
    pub(super) fn name_without_cache(&self) -> String {
        self.name.replace(self.cache(), "").trim_end_matches([',', ' ']).to_owned()
    }
}

/// Returns the first word of a cell's name.
fn workload(cell: &str) -> &str {
    cell.split([' ', ',']).next().unwrap_or(cell)
}

/// Groups arms and samples by cell, in the order of the first arm of each cell. The second result
/// has the indexes of samples that belong to no cell.
pub(super) fn cells<'a>(run: &'a Run, json: &'a Value) -> (Vec<CellSection<'a>>, Vec<usize>) {
    let mut cells: Vec<CellSection> = Vec::new();
    for index in 0..run.arms.len() {
        let arm = ArmSection::new(run, json, index);
        match cells.iter_mut().find(|cell| cell.name == arm.summary.cell) {
            Some(cell) => cell.arms.push(arm),
            None => cells.push(new_cell(run, arm)),
        }
    }
    let unassigned = assign_rows(run, &mut cells);
    (cells, unassigned)
}

fn new_cell<'a>(run: &'a Run, arm: ArmSection<'a>) -> CellSection<'a> {
    let name = &arm.summary.cell;
    let noise = run.noise.iter().enumerate().find(|(_, noise)| noise.cell == *name);
    CellSection { name, arms: vec![arm], noise, rows: Vec::new() }
}

/// The values that all samples of one cell share.
type CellKey<'a> = (&'a str, &'a str, u64, u64, bool, &'a str);

fn conditions(row: &Row) -> CellKey<'_> {
    (&row.workload, &row.cache, row.block_bytes, row.size_bytes, row.direct, &row.sync)
}

/// Assigns the samples to cells and returns the indexes of the rest. A row does not name its cell.
/// Rows and cells are both in order of execution, so the n-th combination of values with a given
/// workload and cache state belongs to the n-th cell with that workload and cache state.
fn assign_rows<'a>(run: &'a Run, cells: &mut [CellSection<'a>]) -> Vec<usize> {
    let mut kinds: Vec<(CellKey, Option<usize>)> = Vec::new();
    let mut unassigned = Vec::new();
    for (at, row) in run.rows.iter().enumerate() {
        let known = kinds.iter().find(|(kind, _)| *kind == conditions(row)).map(|(_, cell)| *cell);
        let cell = known.unwrap_or_else(|| {
            let before =
                kinds.iter().filter(|(kind, _)| (kind.0, kind.1) == (&row.workload, &row.cache)).count();
            let cell = nth_cell(cells, row, before);
            kinds.push((conditions(row), cell));
            cell
        });
        match cell {
            Some(cell) => cells[cell].take(at, row),
            None => unassigned.push(at),
        }
    }
    unassigned
}

fn nth_cell(cells: &[CellSection], row: &Row, n: usize) -> Option<usize> {
    let fits = |cell: &CellSection| cell.workload() == row.workload && cell.cache() == row.cache;
    cells.iter().enumerate().filter(|(_, cell)| fits(cell)).map(|(at, _)| at).nth(n)
}

impl<'a> CellSection<'a> {
    fn take(&mut self, at: usize, row: &'a Row) {
        self.rows.push(at);
        if let Some(arm) = self.arms.iter_mut().find(|arm| is_of(row, arm.summary)) {
            arm.samples.push(row);
        }
    }
}

fn is_of(row: &Row, arm: &ArmSummary) -> bool {
    (&row.lang, &row.method, &row.model, row.threads, row.depth)
        == (&arm.lang, &arm.method, &arm.model, arm.threads, arm.depth)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(cell: &str, method: &str, cache: &str) -> ArmSummary {
        ArmSummary { cell: cell.into(), method: method.into(), cache: cache.into(), ..ArmSummary::default() }
    }

    fn row(workload: &str, method: &str, cache: &str, block_bytes: u64) -> Row {
        let (workload, method, cache) = (workload.into(), method.into(), cache.into());
        Row { workload, method, cache, block_bytes, ..Row::default() }
    }

    #[test]
    fn samples_find_their_cells() {
        let arms = vec![
            arm("read in 4 KiB blocks, warm", "a", "warm"),
            arm("read in 4 KiB blocks, cold", "a", "cold"),
            arm("read in 1 MiB blocks, warm", "a", "warm"),
            arm("read in 1 MiB blocks, warm", "b", "warm"),
        ];
        let rows = vec![
            row("read", "a", "warm", 4096),
            row("read", "a", "cold", 4096),
            row("read", "b", "warm", 1 << 20),
            row("read", "c", "warm", 1 << 20),
            row("write", "a", "warm", 4096),
        ];
        let run = Run { arms, rows, ..Run::default() };
        let (cells, unassigned) = cells(&run, &Value::Null);
        let of_cells: Vec<_> = cells.iter().map(|cell| cell.rows.clone()).collect();
        assert_eq!(of_cells, [vec![0], vec![1], vec![2, 3]]);
        assert_eq!(cells[2].arms[1].samples, [&run.rows[2]]);
        assert_eq!(unassigned, [4]);
    }
}
