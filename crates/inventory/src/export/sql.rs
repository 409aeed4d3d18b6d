//! Statements that make SQLite tables of the tables as they are, in one transaction: a file that ends too soon changes nothing.

use fathom_text::number::decimal;
use parquet::errors::Result;

use super::out::{Out, write_hex};
use crate::replay::Tree;
use crate::store::{Also, Error, Group, Inventory, Kind, Numbers, Spec, Table, Texts};
use crate::top::below::Span;

/// Rows of a statement at most: each statement costs.
const ROWS: usize = 100;
/// A statement ends once it has so many bytes: SQLite's limit is a million in some programs.
const STATEMENT_BYTES: usize = 256 * 1024;

/// Writes everything in `span`, and all owners.
pub(super) fn write(inventory: &Inventory, span: Span, out: &mut Out<'_>) -> Result<(), Error> {
    // Whoever follows `parent_id` gets to a root: tables that say otherwise are damaged.
    Tree::read(inventory, span, false)?;
    out.buffer.extend_from_slice(b"BEGIN;\n");
    for table in Table::ALL {
        create(table, inventory.manifest().also, &mut out.buffer);
        inventory.each(table, |group| insert(table, inventory.manifest().also, group, span, out))?;
    }
    out.buffer.extend_from_slice(b"COMMIT;\n");
    out.flush().map_err(|_| inventory.refused("nobody takes it"))
}

/// The columns of a table: of those that have to be asked for, the ones that were.
fn specs(table: Table, also: Also) -> impl Iterator<Item = &'static Spec> {
    table.specs().iter().filter(move |spec| spec.is_in(also))
}

fn create(table: Table, also: Also, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("CREATE TABLE \"{}\" (", table.name()).as_bytes());
    for (place, spec) in specs(table, also).enumerate() {
        let kind = match spec.kind {
            Kind::Text => "TEXT",
            Kind::Bytes => "BLOB",
            _ => "INTEGER",
        };
        let is_key = table == Table::Dirs && spec.name == "dir_id";
        let more = if is_key {
            " PRIMARY KEY"
        } else if spec.optional {
            ""
        } else {
            " NOT NULL"
        };
        let comma = if place == 0 { "" } else { ", " };
        out.extend_from_slice(format!("{comma}\"{}\" {kind}{more}", spec.name).as_bytes());
    }
    out.extend_from_slice(b");\n");
}

fn insert(table: Table, also: Also, group: &Group<'_>, span: Span, out: &mut Out<'_>) -> Result<()> {
    let columns = specs(table, also).map(|spec| Column::read(group, spec)).collect::<Result<Vec<_>>>()?;
    let ids = match table {
        Table::Users | Table::Groups => None,
        _ => Some(group.numbers("dir_id")?),
    };
    // What could not be found at all is in no directory.
    let is_wanted = |row: &usize| {
        ids.as_ref().is_none_or(|ids| span == Span::ALL || ids.get(*row).is_some_and(|id| span.has(id)))
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
        out.relieve()?;
    }
    if rows > 0 {
        out.buffer.extend_from_slice(b";\n");
    }
    Ok(())
}

/// A column of a row group.
enum Column {
    Numbers(Numbers),
    Texts(Texts),
    Bytes(Texts),
}

impl Column {
    fn read(group: &Group<'_>, spec: &Spec) -> Result<Self> {
        Ok(match spec.kind {
            Kind::Text => Self::Texts(group.texts(spec.name)?),
            Kind::Bytes => Self::Bytes(group.texts(spec.name)?),
            _ => Self::Numbers(group.numbers(spec.name)?),
        })
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) {
        let written = match self {
            Self::Numbers(numbers) => numbers.get(row).map(|number| write_number(number, out)),
            Self::Texts(texts) => texts.get(row).map(|text| write_text(text, out)),
            Self::Bytes(texts) => texts.get(row).map(|bytes| write_bytes(bytes, out)),
        };
        written.unwrap_or_else(|| out.extend_from_slice(b"NULL"));
    }
}

fn write_number(number: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(if number < 0 { b"-" } else { b"" });
    let (digits, start) = decimal(number.unsigned_abs());
    out.extend_from_slice(&digits[start..]);
}

/// A literal that is on one line, and text, whatever is in it.
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
        [i64::MIN, 0, i64::MAX].iter().for_each(|number| write_number(*number, &mut out));
        assert_eq!(out, b"-922337203685477580809223372036854775807");
    }
}
