//! The rows of a view as comma-separated values (RFC 4180), in the order in which they are shown.

use fathom_inventory::OwnerKind;
use fathom_io::FileType;
use fathom_questions::export::{write_csv_field, write_csv_text};
use fathom_text::time::{TimeStyle, Zone};

use crate::arrange::{self, Arrangement};
use crate::filter::FilterContext;
use crate::listing::{Listing, is_gone};
use crate::source::{Place, Row, RowState, SumRow};

/// The columns of rows. Sizes are bytes, times RFC 3339 in UTC; what is unknown is empty.
const ROWS: &str = "path,path_bytes,type,disk,apparent,entries,newest,owner,growth,state\r\n";
/// The columns of sums.
const SUMS: &str = "key,key_bytes,disk,apparent,files\r\n";

/// Returns the rows of a listing. `path_of` returns the path of a place. The growth is the growth
/// of the size by which `arrangement` sorts; a new entry has grown by all of it.
pub(crate) fn rows(
    listing: &Listing,
    arrangement: &Arrangement,
    context: &FilterContext,
    path_of: &dyn Fn(&Place) -> Vec<u8>,
) -> Vec<u8> {
    let mut out = ROWS.as_bytes().to_vec();
    for position in 0..listing.len() {
        let (Some(row), Some(target)) = (listing.row(position), listing.target(position)) else { continue };
        write_csv_text(&path_of(&target), true, &mut out);
        let is_known = listing.has_growth() && row.state != RowState::Walking;
        let growth =
            if is_known { arrange::growth(row, arrangement.apparent).to_string() } else { String::new() };
        let is_directory = row.file_type == FileType::Directory && !is_gone(row);
        let entries = if is_directory { row.amount.entries.to_string() } else { String::new() };
        let [disk, apparent] = sizes(row);
        let fields = [row.file_type.name().to_owned(), disk, apparent, entries, newest(row)];
        fields.iter().for_each(|field| push(field, &mut out));
        out.push(b',');
        write_csv_field(&owner(row, context), true, &mut out);
        push(&growth, &mut out);
        push(state(row), &mut out);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// Returns the rows of sums.
pub(crate) fn sums(rows: &[SumRow]) -> Vec<u8> {
    let mut out = SUMS.as_bytes().to_vec();
    for SumRow { key, amount } in rows {
        write_csv_text(key, true, &mut out);
        let numbers = [amount.allocated, amount.apparent, amount.entries];
        numbers.iter().for_each(|number| push(&number.to_string(), &mut out));
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// Appends a number, which may begin with a dash, or a word of this program.
fn push(field: &str, out: &mut Vec<u8>) {
    out.push(b',');
    write_csv_field(field, false, out);
}

fn sizes(row: &Row) -> [String; 2] {
    let is_known = row.has_meta() || row.state == RowState::Complete;
    [row.amount.allocated, row.amount.apparent]
        .map(|size| if is_known { size.to_string() } else { String::new() })
}

fn newest(row: &Row) -> String {
    let times = TimeStyle::parse(b"+%Y-%m-%dT%H:%M:%SZ", Zone::UTC).unwrap_or_default();
    let mut text = Vec::new();
    let written = row.newest_mtime_s.map(|newest| times.write(newest, 0, &mut text));
    if written.is_none_or(|written| written.is_err()) {
        text.clear();
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn owner(row: &Row, context: &FilterContext) -> String {
    let mut name = Vec::new();
    row.uid.into_iter().for_each(|uid| context.owners.write(OwnerKind::User, uid, &mut name));
    String::from_utf8_lossy(&name).into_owned()
}

fn state(row: &Row) -> &'static str {
    match row.state {
        RowState::Complete => "complete",
        RowState::Walking => "walking",
        RowState::Excluded => "excluded",
        RowState::Partial => "partial",
        RowState::Unreadable => "unreadable",
        RowState::Skipped => "left out",
        RowState::Gone => "gone",
    }
}
