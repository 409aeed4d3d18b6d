//! The grammar of formats: directives, escapes, and find's treatment of text that is neither.

use fathom_text::quote::NameStyle;
use fathom_text::time::Zone;

use super::problem::{FormatError, FormatWarning};
use super::spec::DirectiveSpec;
use super::time::{TimeFormat, TimeKind};
use super::{FormatPiece, MetaField, PrintField, PrintFormat};

pub(super) fn parse(text: &[u8], zone: &Zone) -> Result<PrintFormat, FormatError> {
    let mut reader =
        FormatParser { rest: text, zone, literal: Vec::new(), pieces: Vec::new(), warnings: Vec::new() };
    while let Some((&first, rest)) = reader.rest.split_first() {
        match first {
            b'%' => reader.directive()?,
            b'\\' if rest.first() == Some(&b'c') => break,
            b'\\' => reader.escape(rest),
            _ => {
                reader.literal.push(first);
                reader.rest = rest;
            }
        }
    }
    reader.flush();
    Ok(PrintFormat { pieces: reader.pieces, warnings: reader.warnings, names: NameStyle::Literal })
}

struct FormatParser<'t> {
    rest: &'t [u8],
    zone: &'t Zone,
    /// Literal text that has not been pushed as a piece.
    literal: Vec<u8>,
    pieces: Vec<FormatPiece>,
    warnings: Vec<FormatWarning>,
}

impl FormatParser<'_> {
    fn flush(&mut self) {
        if !self.literal.is_empty() {
            self.pieces.push(FormatPiece::Literal(std::mem::take(&mut self.literal)));
        }
    }

    fn push(&mut self, spec: DirectiveSpec, field: PrintField, len: usize) {
        self.flush();
        self.pieces.push(FormatPiece::Directive(spec, field));
        self.rest = &self.rest[len..];
    }

    /// Takes the first `len` bytes as literal text, and returns them.
    fn verbatim(&mut self, len: usize) -> Vec<u8> {
        let (text, rest) = self.rest.split_at(len);
        self.literal.extend_from_slice(text);
        self.rest = rest;
        text.to_vec()
    }

    /// Parses an escape. `rest` is the text after the backslash.
    fn escape(&mut self, rest: &[u8]) {
        let octal = rest.iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
        let byte = match rest.first() {
            Some(b'0'..=b'7') => {
                // Three octal digits may exceed a byte: find drops the high bit.
                rest[..octal]
                    .iter()
                    .fold(0u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0'))
            }
            Some(b'a') => 0x07,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'v') => 0x0b,
            Some(b'\\') => b'\\',
            other => {
                let text = self.verbatim(if other.is_some() { 2 } else { 1 });
                return self.warnings.push(FormatWarning::Escape(text));
            }
        };
        self.literal.push(byte);
        self.rest = &self.rest[1 + octal.max(1)..];
    }

    fn directive(&mut self) -> Result<(), FormatError> {
        let (spec, at) = DirectiveSpec::parse(self.rest)?;
        let text = |len: usize| self.rest[..len].to_vec();
        match self.rest.get(at) {
            None => return Err(FormatError::Unfinished(text(at))),
            Some(b'{' | b'[' | b'(') => return Err(FormatError::Reserved(text(at + 1))),
            Some(b'%') => {
                // find prints the flags of `%%`, if there are any.
                self.verbatim(at);
                self.rest = &self.rest[1..];
            }
            Some(letter @ (b'A' | b'B' | b'C' | b'T')) => self.time(*letter, spec, at),
            Some(letter) => match self.field(*letter) {
                Some(field) => self.push(spec, field, at + 1),
                None => {
                    let text = self.verbatim(at + 1);
                    self.warnings.push(FormatWarning::Directive(text));
                }
            },
        }
        Ok(())
    }

    /// Parses a directive of two letters, the first of which is at `at`.
    fn time(&mut self, letter: u8, spec: DirectiveSpec, at: usize) {
        let which = match letter {
            b'A' => TimeKind::Atime,
            b'B' => TimeKind::Btime,
            b'C' => TimeKind::Ctime,
            _ => TimeKind::Mtime,
        };
        match self.rest.get(at + 1) {
            Some(kind) => {
                self.push(spec, PrintField::Time(which, TimeFormat::of_letter(*kind, self.zone)), at + 2)
            }
            None => {
                let text = self.verbatim(at + 1);
                self.warnings.push(FormatWarning::NoTimeLetter(text));
            }
        }
    }

    fn field(&self, letter: u8) -> Option<PrintField> {
        let ctime = |which| PrintField::Time(which, TimeFormat::ctime(self.zone));
        Some(match letter {
            b'p' => PrintField::Path,
            b'f' => PrintField::BaseName,
            b'h' => PrintField::DirName,
            b'P' => PrintField::BelowRoot,
            b'H' => PrintField::Root,
            b'd' => PrintField::Depth,
            b'y' => PrintField::Type,
            b'Y' => PrintField::TargetType,
            b'l' => PrintField::Link,
            b'F' => PrintField::Filesystem,
            b'Z' => PrintField::Context,
            b't' => ctime(TimeKind::Mtime),
            b'a' => ctime(TimeKind::Atime),
            b'c' => ctime(TimeKind::Ctime),
            _ => PrintField::Meta(meta_field(letter)?),
        })
    }
}

fn meta_field(letter: u8) -> Option<MetaField> {
    Some(match letter {
        b's' => MetaField::Size,
        b'b' => MetaField::Blocks,
        b'k' => MetaField::Kibibytes,
        b'm' => MetaField::Mode,
        b'M' => MetaField::ModeText,
        b'n' => MetaField::Links,
        b'i' => MetaField::Inode,
        b'D' => MetaField::Device,
        b'u' => MetaField::User,
        b'g' => MetaField::Group,
        b'U' => MetaField::Uid,
        b'G' => MetaField::Gid,
        b'S' => MetaField::Sparseness,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_text::quote::Charset;
    use fathom_walk::{Fields, FileTime, FileType, Meta};
    use proptest::prelude::*;

    use crate::{Entry, Owners};

    fn refused(text: &str) -> String {
        let error = parse(text.as_bytes(), &Zone::UTC).expect_err(text);
        String::from_utf8(error.message(Charset::Ascii)).unwrap()
    }

    fn warnings(text: &str) -> Vec<String> {
        let format = parse(text.as_bytes(), &Zone::UTC).unwrap();
        let messages = format.warnings().iter().map(|warning| warning.message(Charset::Ascii));
        messages.map(|message| String::from_utf8(message).unwrap()).collect()
    }

    #[test]
    fn unfinished_and_reserved_directives_are_refused() {
        for text in ["%", "%5", "%-", "%.", "%10.3"] {
            assert_eq!(
                refused(&format!("a{text}")),
                format!("'{text}' at the end of the format: no letter follows")
            );
        }
        for text in ["%{", "%[", "%(", "%-5{"] {
            assert_eq!(
                refused(&format!("{text}x")),
                format!("'{text}' in the format: reserved for later use")
            );
        }
    }

    #[test]
    fn columns_have_a_largest_width() {
        assert!(parse(b"%65535p%.65535p", &Zone::UTC).is_ok());
        for text in ["%65536", "%.65536", "%99999999999999999999999", "%5.99999999999999999999999"] {
            assert_eq!(refused(&format!("{text}p")), format!("'{text}' in the format: wider than 65535"));
        }
    }

    #[test]
    fn unknown_directives_and_escapes_are_warned_of() {
        assert_eq!(warnings("%p%%\\n%5%\\0"), Vec::<String>::new());
        assert_eq!(warnings("%q%5-d"), ["no such directive: '%q'", "no such directive: '%5-'"]);
        assert_eq!(warnings("\\q\\"), ["no such escape: '\\\\q'", "no such escape: '\\\\'"]);
        assert_eq!(warnings("%5A"), ["directive without the letter of a time: '%5A'"]);
        assert_eq!(warnings("a\\c%q%"), Vec::<String>::new(), "nothing is read after an end");
    }

    #[test]
    fn a_format_needs_the_metadata_that_it_prints() {
        let needs = |text: &str| {
            let format = parse(text.as_bytes(), &Zone::UTC).unwrap();
            (format.needs_type(), format.needs_owners(), format.fields())
        };
        assert_eq!(needs("%p %f %h %P %H %d %Z"), (false, false, None));
        assert_eq!(needs("%B@"), (false, false, Some(Fields::BIRTH)));
        assert_eq!(needs("%F"), (false, false, Some(Fields::IDENTITY)));
        assert_eq!(needs("%y"), (true, false, None));
        assert_eq!(needs("%Y%l"), (true, false, None));
        assert_eq!(needs("%u"), (false, true, Some(Fields::OWNER)));
        assert_eq!(needs("%i%m"), (false, false, Some(Fields::IDENTITY)));
        assert_eq!(needs("%S"), (false, false, Some(Fields::SIZE.union(Fields::BLOCKS))));
        assert_eq!(needs("%Td%s"), (false, false, Some(Fields::TIMES.union(Fields::SIZE))));
    }

    proptest! {
        #![proptest_config(fathom_cases::property(2000))]

        #[test]
        fn any_bytes_are_a_format_or_refused(
            text in prop_oneof![
                any::<Vec<u8>>(),
                "([%\\\\]?[-+ #0]{0,2}[0-9]{0,3}[.]?[a-zA-Z0-9@+%]){0,8}".prop_map(String::into_bytes),
            ],
            sec in any::<i64>(),
            mode in any::<u32>(),
        ) {
            let mtime = FileTime { sec, nsec: 1 };
            let meta = Meta { mode, mtime, size: sec, ..Meta::default() };
            let (dir, name) = (b"".as_slice(), text.as_slice());
            let entry = Entry { dir, name, root_len: sec as usize, depth: 0, file_type: FileType::Unknown, meta: Some(&meta) };
            if let Ok(format) = parse(&text, &Zone::UTC) {
                format.write(&entry, &Owners::default(), &mut (), &mut Vec::new());
                format.write(&Entry { meta: None, ..entry }, &Owners::default(), &mut (), &mut Vec::new());
            }
        }
    }
}
