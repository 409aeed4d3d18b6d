//! Comma-separated values after RFC 4180: lines end in CR LF, and fields with a comma, a quotation
//! mark or a line break are quoted. The columns are the members of the JSON objects, in their
//! order; a member that is missing or null is an empty field.

use fathom_text::number::{write_decimal, write_hex};
use fathom_text::time::{TimeStyle, Zone};
use fathom_walk::{Attributes, Meta};
use rustix::fs::{major, minor};

use super::{ReplayEntry, ReplayHeader};
use fathom_inventory::store::{DirState, OptionalColumns, OptionalValues};
use fathom_inventory::type_letter;

/// The names of the columns, before and after the optional ones.
const HEADER: [&str; 2] = [
    "path,path_bytes,type,size,blocks,mode,uid,gid,nlink,ino,dev,mtime,atime,ctime,btime,attributes",
    ",link_target,link_target_bytes,state\r\n",
];
/// The number of columns that are empty without metadata.
const OF_META: usize = 13;
/// First characters of text that spreadsheets evaluate as a formula (OWASP, "CSV Injection").
const FORMULA: [char; 8] = ['=', '+', '-', '@', '\t', '\r', '\u{ff1d}', '\u{ff20}'];

pub(super) struct CsvFormat {
    path: Vec<u8>,
    /// RFC 3339, in UTC.
    times: TimeStyle,
    guards_formulas: bool,
    /// The optional columns of the inventory.
    optional_columns: OptionalColumns,
}

impl CsvFormat {
    pub(super) fn new(guards_formulas: bool) -> Self {
        let times = TimeStyle::parse(b"+%Y-%m-%dT%H:%M:%S.%NZ", Zone::UTC).unwrap_or_default();
        Self { path: Vec::new(), times, guards_formulas, optional_columns: OptionalColumns::default() }
    }

    fn meta(&self, meta: &Meta, out: &mut Vec<u8>) {
        out.push(b',');
        write_decimal(meta.size, out);
        number(meta.blocks, out);
        let octal = |shift: u32| b'0' + (meta.mode >> shift & 7) as u8;
        out.extend_from_slice(&[b',', octal(9), octal(6), octal(3), octal(0)]);
        [meta.uid.into(), meta.gid.into(), meta.nlink, meta.ino]
            .into_iter()
            .for_each(|value| number(value, out));
        number(major(meta.dev).into(), out);
        out.push(b':');
        write_decimal(minor(meta.dev), out);
        for stamp in [Some(meta.mtime), Some(meta.atime), Some(meta.ctime), meta.btime] {
            out.push(b',');
            let start = out.len();
            if stamp.is_none_or(|stamp| self.times.write(stamp.sec, stamp.nsec, out).is_err()) {
                out.truncate(start);
            }
        }
        out.push(b',');
        let mut text = [0; Attributes::TEXT_BYTES_MAX];
        out.extend_from_slice(meta.attributes.map_or(b"", |attributes| attributes.text(&mut text)));
    }
}

impl CsvFormat {
    /// Appends the optional columns.
    fn optional_values(&self, optional_values: Option<&OptionalValues<'_>>, out: &mut Vec<u8>) {
        if self.optional_columns.project {
            out.push(b',');
            optional_values
                .and_then(|optional_values| optional_values.project)
                .iter()
                .for_each(|number| write_decimal(*number, out));
        }
        if self.optional_columns.xattrs {
            out.push(b',');
            let xattrs = optional_values.and_then(|optional_values| optional_values.xattrs.as_deref());
            write_csv_field(xattrs.unwrap_or_default(), self.guards_formulas, out);
        }
        if self.optional_columns.acl {
            boolean(optional_values.and_then(|optional_values| optional_values.acl), out);
        }
        if self.optional_columns.ignored {
            boolean(optional_values.and_then(|optional_values| optional_values.ignored), out);
        }
    }
}

impl super::EntryFormat for CsvFormat {
    fn begin(&mut self, about: &ReplayHeader, out: &mut Vec<u8>) {
        self.optional_columns = about.optional_columns;
        let [before, behind] = HEADER;
        out.extend_from_slice(before.as_bytes());
        for name in OptionalColumns::NAMES.into_iter().filter(|name| self.optional_columns.has_column(name)) {
            out.extend_from_slice(format!(",{name}").as_bytes());
        }
        out.extend_from_slice(behind.as_bytes());
    }

    fn needs_links(&self) -> bool {
        true
    }

    fn entry(&mut self, item: &ReplayEntry<'_>, out: &mut Vec<u8>) {
        self.path.clear();
        item.entry.write_path(&mut self.path);
        write_csv_text(&self.path, self.guards_formulas, out);
        out.extend_from_slice(&[b',', type_letter(item.entry.file_type())]);
        match item.entry.meta {
            Some(meta) => self.meta(meta, out),
            None => out.extend_from_slice(&[b','; OF_META]),
        }
        self.optional_values(item.optional_values, out);
        out.push(b',');
        match item.link {
            Some(link) => write_csv_text(link, self.guards_formulas, out),
            None => out.push(b','),
        }
        out.push(b',');
        out.extend_from_slice(item.state.map_or("", DirState::word).as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

fn boolean(value: Option<bool>, out: &mut Vec<u8>) {
    let words = [&b","[..], b",false", b",true"];
    out.extend_from_slice(words[value.map_or(0, |value| 1 + usize::from(value))]);
}

fn number(value: u64, out: &mut Vec<u8>) {
    out.push(b',');
    write_decimal(value, out);
}

/// Appends two columns: the text, and its bytes in hexadecimal if it is not UTF-8. With
/// `guards_formulas`, an apostrophe is before what a spreadsheet would evaluate.
pub fn write_csv_text(bytes: &[u8], guards_formulas: bool, out: &mut Vec<u8>) {
    write_csv_field(&String::from_utf8_lossy(bytes), guards_formulas, out);
    out.push(b',');
    if std::str::from_utf8(bytes).is_err() {
        write_hex(bytes, out);
    }
}

/// Appends a field, quoted if it has to be (RFC 4180, section 2).
///
/// ```
/// use fathom_questions::export::write_csv_field;
///
/// let mut line = Vec::new();
/// write_csv_field("1,5\" of \"rain\"", false, &mut line);
/// assert_eq!(line, b"\"1,5\"\" of \"\"rain\"\"\"");
/// ```
pub fn write_csv_field(text: &str, guards_formulas: bool, out: &mut Vec<u8>) {
    let guard = if guards_formulas && text.starts_with(FORMULA) { "'" } else { "" };
    if text.contains([',', '"', '\r', '\n']) {
        out.push(b'"');
        out.extend_from_slice(guard.as_bytes());
        out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
        out.push(b'"');
    } else {
        out.extend_from_slice(guard.as_bytes());
        out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_all_columns() {
        let columns = |line: &[u8]| line.iter().filter(|byte| **byte == b',').count();
        let mut out = Vec::new();
        let meta = Meta { size: -1, mode: 0o104_755, ..Meta::default() };
        CsvFormat::new(false).meta(&meta, &mut out);
        assert_eq!((columns(&out), columns(HEADER.concat().as_bytes())), (OF_META, OF_META + 5));
        assert!(out.starts_with(b",-1,0,4755,0,0,0,0,0:0,1970-01-01T00:00:00.000000000Z,"));
    }

    #[test]
    fn fields_with_separators_are_quoted() {
        let written = |path: &[u8]| {
            let mut out = Vec::new();
            write_csv_text(path, false, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(b"a b'\\\t"), "a b'\\\t,");
        assert_eq!(written(b"a,\"\n"), "\"a,\"\"\n\",");
        assert_eq!(written(b"\r\xff"), "\"\r\u{fffd}\",0dff");
    }

    #[test]
    fn an_apostrophe_guards_formulas_of_spreadsheets() {
        let written = |path: &str| {
            let mut out = Vec::new();
            write_csv_text(path.as_bytes(), true, &mut out);
            String::from_utf8(out).unwrap()
        };
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\u{ff1d}1"] {
            assert_eq!(written(formula), format!("'{formula},"));
        }
        assert_eq!(written("=HYPERLINK(\"x\",1)"), "\"'=HYPERLINK(\"\"x\"\",1)\",");
        assert_eq!([written("a=1"), written("./-x")], ["a=1,", "./-x,"]);
    }
}
