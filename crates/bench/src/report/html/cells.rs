//! The run's arms and samples, cell by cell.

use crate::{Noise, Row, Run, Summary};

/// An arm on a cell.
pub(super) struct Arm<'a> {
    /// Its place in [`Run::arms`].
    pub(super) at: usize,
    pub(super) summary: &'a Summary,
    /// Its samples, discarded ones too, in the order they were made.
    pub(super) samples: Vec<&'a Row>,
}

/// A cell.
pub(super) struct Cell<'a> {
    pub(super) name: &'a str,
    /// The fastest first.
    pub(super) arms: Vec<Arm<'a>>,
    /// With its place in [`Run::noise`].
    pub(super) noise: Option<(usize, &'a Noise)>,
    /// All samples, by their places in [`Run::rows`].
    pub(super) rows: Vec<usize>,
}

impl<'a> Cell<'a> {
    /// The workload, which a cell's name begins with.
    pub(super) fn workload(&self) -> &'a str {
        workload(self.name)
    }

    /// The arm that ratios are in relation to, if it gave samples that count.
    pub(super) fn baseline(&self) -> Option<&Arm<'a>> {
        self.counted().find(|arm| arm.summary.ratio.is_none())
    }

    /// Arms with samples that count.
    pub(super) fn counted(&self) -> impl Iterator<Item = &Arm<'a>> {
        self.arms.iter().filter(|arm| arm.summary.runs > 0)
    }

    /// Whether another arm has the same name, so that it alone says too little.
    pub(super) fn is_ambiguous(&self, arm: &Arm) -> bool {
        let same = |other: &&Arm| {
            (&other.summary.lang, &other.summary.method) == (&arm.summary.lang, &arm.summary.method)
        };
        self.arms.iter().filter(same).count() > 1
    }
}

/// The first word of a cell's name.
fn workload(cell: &str) -> &str {
    cell.split([' ', ',']).next().unwrap_or(cell)
}

/// The cells in the order of their first arms, and the places of samples that belong to none.
pub(super) fn cells(run: &Run) -> (Vec<Cell<'_>>, Vec<usize>) {
    let mut cells: Vec<Cell> = Vec::new();
    for (at, summary) in run.arms.iter().enumerate() {
        let arm = Arm { at, summary, samples: Vec::new() };
        match cells.iter_mut().find(|cell| cell.name == summary.cell) {
            Some(cell) => cell.arms.push(arm),
            None => cells.push(new_cell(run, arm)),
        }
    }
    let strays = give_rows(run, &mut cells);
    (cells, strays)
}

fn new_cell<'a>(run: &'a Run, arm: Arm<'a>) -> Cell<'a> {
    let name = &arm.summary.cell;
    let noise = run.noise.iter().enumerate().find(|(_, noise)| noise.cell == *name);
    Cell { name, arms: vec![arm], noise, rows: Vec::new() }
}

/// What samples of one cell have in common.
type Conditions<'a> = (&'a str, &'a str, u64, u64, bool, &'a str);

fn conditions(row: &Row) -> Conditions<'_> {
    (&row.workload, &row.cache, row.block_bytes, row.size_bytes, row.direct, &row.sync)
}

/// Gives each cell its samples. A row does not name its cell: the second kind of samples with a workload and cache
/// state is of the second cell with these, as both are in the order of the run.
fn give_rows<'a>(run: &'a Run, cells: &mut [Cell<'a>]) -> Vec<usize> {
    let mut kinds: Vec<(Conditions, Option<usize>)> = Vec::new();
    let mut strays = Vec::new();
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
            None => strays.push(at),
        }
    }
    strays
}

fn nth_cell(cells: &[Cell], row: &Row, n: usize) -> Option<usize> {
    let fits = |cell: &Cell| cell.workload() == row.workload && cell.arms[0].summary.cache == row.cache;
    cells.iter().enumerate().filter(|(_, cell)| fits(cell)).map(|(at, _)| at).nth(n)
}

impl<'a> Cell<'a> {
    fn take(&mut self, at: usize, row: &'a Row) {
        self.rows.push(at);
        if let Some(arm) = self.arms.iter_mut().find(|arm| is_of(row, arm.summary)) {
            arm.samples.push(row);
        }
    }
}

fn is_of(row: &Row, arm: &Summary) -> bool {
    (&row.lang, &row.method, &row.model, row.threads, row.depth)
        == (&arm.lang, &arm.method, &arm.model, arm.threads, arm.depth)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(cell: &str, method: &str, cache: &str) -> Summary {
        Summary { cell: cell.into(), method: method.into(), cache: cache.into(), ..Summary::default() }
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
        let (cells, strays) = cells(&run);
        let of_cells: Vec<_> = cells.iter().map(|cell| cell.rows.clone()).collect();
        assert_eq!(of_cells, [vec![0], vec![1], vec![2, 3]]);
        assert_eq!(cells[2].arms[1].samples, [&run.rows[2]]);
        assert_eq!(strays, [4]);
    }
}
