//! The operations of a scan that failed.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;

use fathom_inventory::store::Span;
use fathom_inventory::store::{Error, Inventory, Table};

use crate::json::JsonText;

/// The most failures that are listed.
const ROWS_MAX: usize = 100;
/// The most groups of failures that are counted apart.
const GROUPS_MAX: usize = 50;
/// The most bytes of a path, and of a word.
const PATH_BYTES_MAX: usize = 600;
const WORD_BYTES_MAX: usize = 100;

/// The operation that failed, and the error number.
type FailureKind = (Vec<u8>, i64);

/// The failed operations of a scan.
#[derive(Debug, Default)]
pub(crate) struct ErrorSummary {
    count: usize,
    groups: BTreeMap<FailureKind, usize>,
    /// The first ones: the path and the kind.
    rows: Vec<(Vec<u8>, FailureKind)>,
}

impl ErrorSummary {
    pub(crate) fn read(inventory: &Inventory) -> Result<Self, Error> {
        let mut summary = Self::default();
        let columns = ["op", "errno", "path_raw", "path", "name_raw", "name"];
        inventory.each_rows(Table::Errors, Span::ALL, &columns, &mut |rows| {
            for row in 0..rows.count() {
                let text = |column| rows.text(column, row);
                let kind = (text(0).unwrap_or_default().to_vec(), rows.number(1, row).unwrap_or(0));
                // A path that is too long for the table is shown as its last name.
                let path = (2..6).find_map(text);
                summary.add(path.unwrap_or_default(), kind);
            }
            ControlFlow::Continue(())
        })?;
        Ok(summary)
    }

    fn add(&mut self, path: &[u8], kind: FailureKind) {
        self.count += 1;
        if self.rows.len() < ROWS_MAX {
            self.rows.push((path.to_vec(), kind.clone()));
        }
        if self.groups.len() < GROUPS_MAX || self.groups.contains_key(&kind) {
            *self.groups.entry(kind).or_default() += 1;
        }
    }

    pub(crate) fn write(&self, json: &mut JsonText) {
        let mut groups: Vec<_> = self.groups.iter().collect();
        groups.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        json.object(|json| {
            json.key("count").number(self.count);
            json.key("groups").array(groups, |json, (kind, count)| {
                json.array([()], |json, ()| {
                    write_kind(kind, json);
                    json.number(count);
                });
            });
            json.key("rows").array(&self.rows, |json, (path, kind)| {
                json.array([()], |json, ()| {
                    json.short_text(path, PATH_BYTES_MAX);
                    write_kind(kind, json);
                });
            });
        });
    }
}

fn write_kind((op, errno): &FailureKind, json: &mut JsonText) {
    json.short_text(op, WORD_BYTES_MAX);
    let cause = i32::try_from(*errno).map(|errno| io::Error::from_raw_os_error(errno).to_string());
    let cause = cause.unwrap_or_else(|_| format!("error {errno}"));
    json.short_text(cause.as_bytes(), WORD_BYTES_MAX);
}
