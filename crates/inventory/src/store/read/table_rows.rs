//! The rows of any table as plain values, for readers that have their own representation of rows.

use std::ops::ControlFlow;

use super::values::{NumberColumn, TextColumn};
use super::{Error, Inventory, Table};
use crate::store::column::ColumnKind;
use crate::store::span::Span;

/// The kind of the values of a table's column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueKind {
    /// Numbers; 0 or 1 for truth values.
    Number,
    /// Microseconds since 1970.
    Time,
    /// UTF-8.
    Text,
    /// Any bytes.
    Bytes,
}

impl Table {
    /// Iterates over the names of the columns and the kinds of their values. Inventories of earlier
    /// formats, and of scans without the option for a column, have no value in it.
    pub fn columns(self) -> impl Iterator<Item = (&'static str, ValueKind)> {
        self.specs().iter().map(|spec| {
            let kind = match spec.kind {
                ColumnKind::Int32 | ColumnKind::Uint32 | ColumnKind::Int64 | ColumnKind::Bool => {
                    ValueKind::Number
                }
                ColumnKind::Micros => ValueKind::Time,
                ColumnKind::Text => ValueKind::Text,
                ColumnKind::Bytes => ValueKind::Bytes,
            };
            (spec.name, kind)
        })
    }
}

/// A decoded column.
#[derive(Debug)]
enum TableColumn {
    Numbers(NumberColumn),
    Texts(TextColumn),
}

/// The selected rows and columns of a row group.
#[derive(Debug)]
pub struct TableRows {
    rows: Vec<usize>,
    columns: Vec<TableColumn>,
}

impl TableRows {
    /// Returns the number of rows.
    #[must_use]
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number in a row of a column; `None` if there is none, or if the column has no
    /// numbers. Columns count in the order in which they were requested.
    #[must_use]
    pub fn number(&self, column: usize, row: usize) -> Option<i64> {
        match self.columns.get(column)? {
            TableColumn::Numbers(numbers) => numbers.get(*self.rows.get(row)?),
            TableColumn::Texts(_) => None,
        }
    }

    /// Returns the text in a row of a column; `None` if there is none, or if the column has no
    /// texts.
    #[must_use]
    pub fn text(&self, column: usize, row: usize) -> Option<&[u8]> {
        match self.columns.get(column)? {
            TableColumn::Numbers(_) => None,
            TableColumn::Texts(texts) => texts.get(*self.rows.get(row)?),
        }
    }
}

impl Inventory {
    /// Calls `each` for every row group of a table, with those rows whose directory is in `span`,
    /// until it breaks. Only the columns `columns` are read, and none of them for a row group
    /// without such rows.
    ///
    /// # Errors
    /// If the inventory is damaged, or the table has no such column.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use fathom_inventory::store::{Inventory, Table};
    /// use fathom_inventory::store::Span;
    ///
    /// # let temp = tempfile::tempdir()?;
    /// # let out = temp.path().join("src.inv");
    /// # use fathom_scans::scan::{Scan, scan};
    /// # scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
    /// let inventory = Inventory::open(&out)?;
    /// let mut files = None;
    /// inventory.each_rows(Table::Dirs, Span::ALL, &["path", "t_files"], &mut |rows| {
    ///     let root = (0..rows.count()).find(|row| rows.text(0, *row) == Some(b"src"));
    ///     files = root.and_then(|row| rows.number(1, row));
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert!(files > Some(20));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn each_rows(
        &self,
        table: Table,
        span: Span,
        columns: &[&str],
        each: &mut dyn FnMut(&TableRows) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut is_over = false;
        self.each(table, |group| {
            if is_over {
                return Ok(());
            }
            let mut rows: Vec<_> = (0..group.rows()).collect();
            if span != Span::ALL {
                let ids = group.numbers("dir_id")?;
                rows.retain(|row| ids.get(*row).is_some_and(|id| span.contains(id)));
            }
            if rows.is_empty() {
                return Ok(());
            }
            let is_text = |name: &str| {
                let mut kinds = table.columns().filter(|(column, _)| *column == name);
                kinds.any(|(_, kind)| matches!(kind, ValueKind::Text | ValueKind::Bytes))
            };
            let read = |name: &&str| {
                if is_text(name) {
                    group.texts(name).map(TableColumn::Texts)
                } else {
                    group.numbers(name).map(TableColumn::Numbers)
                }
            };
            let columns = columns.iter().map(read).collect::<Result<_, _>>()?;
            is_over = each(&TableRows { rows, columns }).is_break();
            Ok(())
        })
    }
}
