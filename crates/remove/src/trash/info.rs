//! The names of trashed files and the text of their information.

use std::ffi::CStr;

use fathom_io::Random;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// Bytes that are not escaped in the original path (RFC 2396, section 2, and the slash).
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// The ending of the name of an information file.
const INFO_SUFFIX: &[u8] = b".trashinfo";
/// Maximum length in bytes of a name before a number and the ending are added, so that it does not
/// exceed 255 (`NAME_MAX`) then.
const NAME_BYTES: usize = 255 - INFO_SUFFIX.len() - ".4294967295".len();
/// Number of names that are tried before they get random numbers, and the number of all.
const NAMES_IN_ORDER: u32 = 16;
const NAMES_MAX: u32 = 1000;

/// The names that are tried for a file in the trash: its own, `NAME.2`, and so on.
pub(super) struct TrashNames<'n> {
    name: &'n [u8],
    tried: u32,
    random: Random,
}

impl<'n> TrashNames<'n> {
    pub(super) fn new(name: &'n CStr, seed: u64) -> Self {
        let name = name.to_bytes();
        Self { name: &name[..name.len().min(NAME_BYTES)], tried: 0, random: Random::new(seed) }
    }
}

impl Iterator for TrashNames<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        self.tried += 1;
        let number = match self.tried {
            1 => return Some(self.name.to_vec()),
            tried if tried <= NAMES_IN_ORDER => tried,
            tried if tried <= NAMES_MAX => self.random.bits() as u32,
            _ => return None,
        };
        Some([self.name, format!(".{number}").as_bytes()].concat())
    }
}

/// Returns the name of the information file of `name`.
pub(super) fn info_name(name: &[u8]) -> Vec<u8> {
    [name, INFO_SUFFIX].concat()
}

/// Returns the text of an information file.
pub(super) fn info_text(path: &[u8], date: &str) -> String {
    format!("[Trash Info]\nPath={}\nDeletionDate={date}\n", percent_encode(path, PLAIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_escaped_and_stay_on_one_line() {
        let text = info_text(b"/a b/\xff\n%/c-d_e.f~", "2026-01-02T03:04:05");
        let expected = "[Trash Info]\nPath=/a%20b/%FF%0A%25/c-d_e.f~\nDeletionDate=2026-01-02T03:04:05\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn all_names_fit_and_the_first_ones_are_in_order() {
        let long = std::ffi::CString::new(vec![b'x'; 255]).unwrap();
        let names: Vec<_> = TrashNames::new(&long, 1).collect();
        assert_eq!(names.len(), NAMES_MAX as usize);
        assert!(names.iter().all(|name| info_name(name).len() <= 255));
        let short: Vec<_> = TrashNames::new(c"a", 1).take(3).collect();
        assert_eq!(short, [&b"a"[..], b"a.2", b"a.3"]);
    }
}
