//! SQL statements that copy the tables into SQLite, in one transaction: a file that ends too soon
//! changes nothing.

use fathom_text::number::{write_decimal, write_hex};
use parquet::errors::Result;

use super::OutputBuffer;
use crate::replay::ReplayTree;
use fathom_inventory::store::Span;
use fathom_inventory::store::{
    ColumnKind, ColumnSpec, Error, Inventory, NumberColumn, OptionalColumns, RowGroup, Table, TextColumn,
};

/// Most rows of a statement. Each statement has a cost.
const ROWS: usize = 100;
/// Bytes at which a statement ends. Some programs limit SQLite to a million.
const STATEMENT_BYTES: usize = 256 * 1024;

/// Writes everything in `span`, and all owners.
pub(super) fn write(inventory: &Inventory, span: Span, out: &mut OutputBuffer<'_>) -> Result<(), Error> {
    // Check first that `parent_id` leads from every directory to a root: a reader of the tables may
    // follow it.
    ReplayTree::read(inventory, span, None, false)?;
    out.buffer.extend_from_slice(b"BEGIN;\n");
    for table in Table::ALL {
        create(table, inventory.manifest().optional_columns, &mut out.buffer);
        inventory
            .each(table, |group| insert(table, inventory.manifest().optional_columns, group, span, out))?;
    }
    out.buffer.extend_from_slice(b"COMMIT;\n");
    out.flush().map_err(|_| inventory.refused("the output cannot be written"))
}

/// Iterates over the columns of a table that the inventory has.
fn specs(table: Table, optional_columns: OptionalColumns) -> impl Iterator<Item = &'static ColumnSpec> {
    table.specs().iter().filter(move |spec| spec.is_in(optional_columns))
}

fn create(table: Table, optional_columns: OptionalColumns, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("CREATE TABLE \"{}\" (", table.name()).as_bytes());
    for (place, spec) in specs(table, optional_columns).enumerate() {
        let kind = match spec.kind {
            ColumnKind::Text => "TEXT",
            ColumnKind::Bytes => "BLOB",
            _ => "INTEGER",
        };
        let is_key = table == Table::Dirs && spec.name == "dir_id";
        let more = if is_key {
            " PRIMARY KEY"
        } else if spec.nullable {
            ""
        } else {
            " NOT NULL"
        };
        let comma = if place == 0 { "" } else { ", " };
        out.extend_from_slice(format!("{comma}\"{}\" {kind}{more}", spec.name).as_bytes());
    }
    out.extend_from_slice(b");\n");
}

fn insert(
    table: Table,
    optional_columns: OptionalColumns,
    group: &RowGroup<'_>,
    span: Span,
    out: &mut OutputBuffer<'_>,
) -> Result<()> {
    let columns = specs(table, optional_columns)
        .map(|spec| SqlColumn::read(group, spec))
        .collect::<Result<Vec<_>>>()?;
    let ids = match table {
        Table::Users | Table::Groups => None,
        _ => Some(group.numbers("dir_id")?),
    };
    // The errors about missing operands have no directory.
    let is_wanted = |row: &usize| {
        ids.as_ref().is_none_or(|ids| span == Span::ALL || ids.get(*row).is_some_and(|id| span.contains(id)))
    };
    let (mut rows, mut bytes) = (0, 0);
    for row in (0..group.rows()).filter(is_wanted) {
        if rows == ROWS || bytes >= STATEMENT_BYTES {
            out.buffer.extend_from_slice(b";\n");
            (rows, bytes) = (0, 0);
        }
        let start = out.buffer.len();
        if rows == 0 {
            out.buffer.extend_from_slice(format!("INSERT INTO \"{}\" VALUES\n", table.name()).as_bytes());
        } else {
            out.buffer.extend_from_slice(b",\n");
        }
        rows += 1;
        for (place, column) in columns.iter().enumerate() {
            out.buffer.push(if place == 0 { b'(' } else { b',' });
            column.write(row, &mut out.buffer);
        }
        out.buffer.push(b')');
        bytes += out.buffer.len() - start;
        out.flush_if_full()?;
    }
    if rows > 0 {
        out.buffer.extend_from_slice(b";\n");
    }
    Ok(())
}

/// A column of a row group.
enum SqlColumn {
    Numbers(NumberColumn),
    Texts(TextColumn),
    Bytes(TextColumn),
}

impl SqlColumn {
    fn read(group: &RowGroup<'_>, spec: &ColumnSpec) -> Result<Self> {
        Ok(match spec.kind {
            ColumnKind::Text => Self::Texts(group.texts(spec.name)?),
            ColumnKind::Bytes => Self::Bytes(group.texts(spec.name)?),
            _ => Self::Numbers(group.numbers(spec.name)?),
        })
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) {
        let written = match self {
            Self::Numbers(numbers) => numbers.get(row).map(|number| write_decimal(number, out)),
            Self::Texts(texts) => texts.get(row).map(|text| write_text(text, out)),
            Self::Bytes(texts) => texts.get(row).map(|bytes| write_bytes(bytes, out)),
        };
        written.unwrap_or_else(|| out.extend_from_slice(b"NULL"));
    }
}

/// Appends a literal of type text, on one line whatever the text contains.
fn write_text(text: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(text) {
        Ok(text) if !text.contains(char::is_control) => {
            out.push(b'\'');
            out.extend_from_slice(text.replace('\'', "''").as_bytes());
            out.push(b'\'');
        }
        _ => {
            out.extend_from_slice(b"CAST(");
            write_bytes(text, out);
            out.extend_from_slice(b" AS TEXT)");
        }
    }
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"X'");
    write_hex(bytes, out);
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_is_one_line_and_ends_where_it_should() {
        let written = |text: &[u8]| {
            let mut out = Vec::new();
            write_text(text, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written("it's \\ü".as_bytes()), "'it''s \\ü'");
        assert_eq!(written(b"a\n.quit"), "CAST(X'610a2e71756974' AS TEXT)");
        assert_eq!(written(b"\xff\0'"), "CAST(X'ff0027' AS TEXT)");
    }

    #[test]
    fn numbers_go_to_both_ends() {
        let mut out = Vec::new();
        [i64::MIN, 0, i64::MAX].iter().for_each(|number| write_decimal(*number, &mut out));
        assert_eq!(out, b"-922337203685477580809223372036854775807");
    }
}
