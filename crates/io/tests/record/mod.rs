//! `linux_dirent64` records for tests, and a simple reference parser.

use fathom_io::{FileType, Names, parse_dirents};

/// Length of the header in bytes, and alignment of a record.
const HEADER: usize = 19;
const ALIGN: usize = 8;

/// Returns a record with the layout of getdents64(2).
pub(crate) fn record(ino: u64, cookie: u64, d_type: u8, name: &[u8]) -> Vec<u8> {
    let len = (HEADER + name.len() + 1).next_multiple_of(ALIGN);
    let mut bytes = Vec::with_capacity(len);
    bytes.extend(ino.to_ne_bytes());
    bytes.extend(cookie.to_ne_bytes());
    bytes.extend(u16::try_from(len).expect("names in tests are short").to_ne_bytes());
    bytes.push(d_type);
    bytes.extend(name);
    bytes.resize(len, 0);
    bytes
}

/// The result of a parse: the entries, the cookie, and whether the whole buffer was parsed. `all`
/// is `None` for a malformed record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parsed {
    pub(crate) entries: Vec<(Vec<u8>, u64, FileType)>,
    pub(crate) cookie: u64,
    pub(crate) all: Option<bool>,
}

/// Parses `buffer` with the parser of the crate.
pub(crate) fn parse(buffer: &[u8], limit: usize) -> Parsed {
    let mut names = Names::new();
    let all = parse_dirents(buffer, &mut names, limit).ok();
    let entries = names.iter().map(|name| (name.name.to_bytes().to_vec(), name.ino, name.file_type));
    Parsed { entries: entries.collect(), cookie: names.cookie(), all }
}

/// Parses `buffer` byte by byte with the reference parser.
fn reference(buffer: &[u8], limit: usize) -> Parsed {
    let mut parsed = Parsed { entries: Vec::new(), cookie: 0, all: Some(true) };
    let mut at = 0;
    while at < buffer.len() {
        if parsed.entries.len() == limit {
            return Parsed { all: Some(false), ..parsed };
        }
        let rest = &buffer[at..];
        let word = |from: usize| u64::from_ne_bytes(rest[from..from + 8].try_into().expect("8 bytes"));
        let has_header = rest.len() >= HEADER;
        let len = if has_header { usize::from(u16::from_ne_bytes([rest[16], rest[17]])) } else { 0 };
        let end = rest.iter().take(len).skip(HEADER).position(|byte| *byte == 0);
        let name = end.map_or(&rest[..0], |end| &rest[HEADER..HEADER + end]);
        if !has_header || len > rest.len() || name.is_empty() || name.contains(&b'/') {
            return Parsed { all: None, ..parsed };
        }
        if name != b"." && name != b".." {
            parsed.entries.push((name.to_vec(), word(0), FileType::from_dirent(rest[18])));
        }
        parsed.cookie = word(8);
        at += len;
    }
    parsed
}

/// Checks that both parsers agree on `buffer`, also with the first few limits.
pub(crate) fn check(buffer: &[u8]) {
    let whole = parse(buffer, usize::MAX);
    assert_eq!(whole, reference(buffer, usize::MAX));
    for limit in 1..whole.entries.len().min(8) {
        let cut = parse(buffer, limit);
        assert_eq!(cut, reference(buffer, limit));
        assert_eq!(cut.entries, whole.entries[..limit]);
    }
}
