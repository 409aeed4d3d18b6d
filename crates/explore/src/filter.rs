//! The filter of a listing: words that all have to hold for an entry to be shown.

use std::sync::Arc;
use std::time::Duration;

use fathom_inventory::filter::{SizeTest, TypeSet};
use fathom_inventory::{OwnerKind, Owners};
use fathom_text::duration;
use fathom_text::glob::Glob;
use fathom_text::quote::{Charset, quote};

use crate::source::Row;

/// The facts on which a filter depends.
#[derive(Clone, Debug)]
pub struct FilterContext {
    /// The current time in seconds since 1970, for ages.
    pub now_s: i64,
    /// The names of owners.
    pub owners: Arc<Owners>,
    /// The encoding of names.
    pub charset: Charset,
}

/// A condition on entries.
///
/// A filter is a list of words, separated by spaces, and an entry has to fulfil each:
/// `size>10M`, `size<=4K`, `age>=30d`, `age<12h`, `type:f,l`, `owner:NAME`, and otherwise a part of
/// the name, or a pattern for the whole name if it has `*`, `?` or `[`. `!` before a word negates
/// it. A word, or a value behind `:`, may be in quotes. Ages are [durations](duration::parse).
///
/// ```
/// use std::sync::Arc;
/// use fathom_explore::filter::{Filter, FilterContext};
/// use fathom_inventory::Owners;
/// use fathom_text::quote::Charset;
///
/// let owners = Arc::new(Owners::default());
/// let context = FilterContext { now_s: 0, owners, charset: Charset::Utf8 };
/// assert!(Filter::parse(b"*.log age>1w !type:d", &context).is_ok());
/// assert!(Filter::parse(b"size>", &context).is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Filter {
    tests: Vec<FilterTest>,
    context: FilterContext,
}

/// A word of a filter.
#[derive(Clone, Debug)]
struct FilterTest {
    negated: bool,
    kind: FilterKind,
}

#[derive(Clone, Debug)]
enum FilterKind {
    Part(Vec<u8>),
    Pattern(Glob),
    Size(SizeTest),
    OlderThan(Duration),
    YoungerThan(Duration),
    Type(TypeSet),
    Owner(Vec<u8>),
}

impl Filter {
    /// Parses a filter.
    ///
    /// # Errors
    /// A message about the first word that has no meaning.
    pub fn parse(text: &[u8], context: &FilterContext) -> Result<Filter, Vec<u8>> {
        let words = words(text).ok_or(b"unclosed quote")?;
        let tests = words.iter().map(|word| parse_word(word, context.charset)).collect::<Result<_, _>>()?;
        Ok(Filter { tests, context: context.clone() })
    }

    /// Returns whether an entry fulfils all words. A value that is unknown fulfils none. `apparent`
    /// selects the size that is compared.
    #[must_use]
    pub fn admits(&self, row: &Row, apparent: bool) -> bool {
        self.tests.iter().all(|test| {
            // A value that is unknown fulfils no condition, nor its opposite.
            test.kind.is_known(row) && test.kind.holds(row, apparent, &self.context) != test.negated
        })
    }
}

/// Splits a text at spaces that are not in quotes. A quote begins at the beginning of a word, or
/// behind `!` or `:`. Returns `None` if one does not end.
fn words(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut words, mut word, mut quote) = (Vec::new(), Vec::new(), None);
    for byte in text.iter().chain(b" ").copied() {
        match quote {
            Some(open) if open == byte => quote = None,
            Some(_) => word.push(byte),
            None if byte.is_ascii_whitespace() => words.push(std::mem::take(&mut word)),
            None if b"'\"".contains(&byte) && matches!(word.last(), None | Some(b'!' | b':')) => {
                quote = Some(byte);
            }
            None => word.push(byte),
        }
    }
    words.retain(|word| !word.is_empty());
    quote.is_none().then_some(words)
}

fn parse_word(word: &[u8], charset: Charset) -> Result<FilterTest, Vec<u8>> {
    let (negated, text) = match word.split_first() {
        Some((b'!', rest)) => (true, rest),
        _ => (false, word),
    };
    let age = |text: &[u8]| {
        duration::parse(text).map_err(|_| {
            [b"not an age: ", &quote(text, charset)[..], b"; use 90s, 12h, 30d, 2w or 1y"].concat()
        })
    };
    let size = |sign: &[u8], text: &[u8]| {
        SizeTest::parse(&[sign, text].concat()).map_err(|error| error.message(charset))
    };
    let (kind, is_or_equal) = if let Some((is_more, is_or_equal, text)) = comparison(text, b"size") {
        (FilterKind::Size(size(if is_more { b"+" } else { b"-" }, text)?), is_or_equal)
    } else if let Some((is_more, is_or_equal, text)) = comparison(text, b"age") {
        let kind = if is_more { FilterKind::OlderThan } else { FilterKind::YoungerThan };
        (kind(age(text)?), is_or_equal)
    } else if let Some(text) = text.strip_prefix(b"type:") {
        (FilterKind::Type(TypeSet::parse(text).map_err(|error| error.message(charset))?), false)
    } else if let Some(text) = text.strip_prefix(b"owner:") {
        (FilterKind::Owner(text.to_vec()), false)
    } else if text.iter().any(|byte| b"*?[".contains(byte)) {
        (FilterKind::Pattern(Glob::new(text, charset, false)), false)
    } else {
        (FilterKind::Part(text.to_ascii_lowercase()), false)
    };
    Ok(FilterTest { negated: negated != is_or_equal, kind })
}

/// Parses a comparison of `key`: whether the value has to be more or less, whether the word is the
/// opposite of that (`>=` is not less, `<=` is not more), and the limit.
fn comparison<'t>(text: &'t [u8], key: &[u8]) -> Option<(bool, bool, &'t [u8])> {
    let (sign, limit) = text.strip_prefix(key)?.split_first()?;
    let is_more = match sign {
        b'>' => true,
        b'<' => false,
        _ => return None,
    };
    Some(match limit.strip_prefix(b"=") {
        Some(limit) => (!is_more, true, limit),
        None => (is_more, false, limit),
    })
}

impl FilterKind {
    /// Returns whether the value that it is about is known.
    fn is_known(&self, row: &Row) -> bool {
        match self {
            Self::Part(_) | Self::Pattern(_) | Self::Type(_) => true,
            Self::Size(_) => row.has_meta(),
            Self::OlderThan(_) | Self::YoungerThan(_) => row.newest_mtime_s.is_some(),
            Self::Owner(_) => row.uid.is_some(),
        }
    }

    fn holds(&self, row: &Row, apparent: bool, context: &FilterContext) -> bool {
        let age = || {
            let seconds = context.now_s.saturating_sub(row.newest_mtime_s.unwrap_or_default());
            Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
        };
        match self {
            Self::Part(part) => contains(&row.name, part),
            Self::Pattern(glob) => glob.matches(&row.name),
            Self::Size(test) => {
                let size = if apparent { row.amount.apparent } else { row.amount.allocated };
                test.admits(i64::try_from(size).unwrap_or(i64::MAX))
            }
            Self::OlderThan(limit) => age() > *limit,
            Self::YoungerThan(limit) => age() < *limit,
            Self::Type(types) => types.contains(row.file_type),
            Self::Owner(name) => {
                let is_it = |uid: u32| {
                    let known = context.owners.name(OwnerKind::User, uid);
                    known.is_some_and(|known| *known == **name) || uid.to_string().as_bytes() == name
                };
                row.uid.is_some_and(is_it)
            }
        }
    }
}

/// Returns whether `name` contains `part`, which is in lower case; ASCII letters compare without
/// case.
fn contains(name: &[u8], part: &[u8]) -> bool {
    part.is_empty() || name.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::file;
    use proptest::prelude::*;

    fn context() -> FilterContext {
        FilterContext { now_s: 100 * 86400, owners: Arc::new(Owners::default()), charset: Charset::Utf8 }
    }

    fn admitted(filter: &str) -> Vec<String> {
        let filter = Filter::parse(filter.as_bytes(), &context()).unwrap();
        let day = 86400;
        let mut rows =
            vec![file("a.log", 10_000, 99 * day), file("B.LOG", 10, 10 * day), file("old", 5000, 0)];
        rows[2].uid = Some(7);
        rows[2].file_type = fathom_io::FileType::Directory;
        let shown = rows.into_iter().filter(|row| filter.admits(row, true));
        shown.map(|row| String::from_utf8(row.name.into_vec()).unwrap()).collect()
    }

    #[test]
    fn every_word_must_hold() {
        for (filter, expected) in [
            ("", &["a.log", "B.LOG", "old"][..]),
            ("log", &["a.log", "B.LOG"]),
            ("*.log", &["a.log"]),
            ("!*.log", &["B.LOG", "old"]),
            ("size>4K", &["a.log", "old"]),
            ("size<4K", &["B.LOG"]),
            ("age>30d", &["B.LOG", "old"]),
            ("age<2d", &["a.log"]),
            ("age>2w", &["B.LOG", "old"]),
            ("age<1y", &["a.log", "B.LOG", "old"]),
            ("size>=10000", &["a.log"]),
            ("size<=10", &["B.LOG"]),
            ("!size<=10", &["a.log", "old"]),
            ("age>=90d", &["B.LOG", "old"]),
            ("age<=1d", &["a.log"]),
            ("'a.log'", &["a.log"]),
            ("!\"a log\"", &["a.log", "B.LOG", "old"]),
            ("owner:'7' \"\"", &["old"]),
            ("type:f", &["a.log", "B.LOG"]),
            ("owner:7", &["old"]),
            ("  log   age>30d ", &["B.LOG"]),
        ] {
            assert_eq!(admitted(filter), expected, "{filter}");
        }
    }

    /// Once, an entry that could not be examined was from 1970, so a rule for old files marked it.
    #[test]
    fn what_is_unknown_is_neither_old_nor_young() {
        let identity = fathom_remove::Identity { dev: 0, ino: 5 };
        let unknown = Row { links: 0, identity, uid: None, newest_mtime_s: None, ..file("a.log", 0, 0) };
        for (filter, expected) in [
            ("*.log", true),
            ("type:f", true),
            ("*.log age>1y", false),
            ("!age<1y", false),
            ("size<1K", false),
            ("!owner:root", false),
        ] {
            let filter = Filter::parse(filter.as_bytes(), &context()).unwrap();
            assert_eq!(filter.admits(&unknown, true), expected, "{filter:?}");
        }
    }

    #[test]
    fn a_word_without_a_meaning_is_named() {
        for (filter, word) in [
            ("size>x", "x"),
            ("x age>1z", "1z"),
            ("type:q", "q"),
            ("size<", "invalid size"),
            ("'a b", "quote"),
        ] {
            let message = Filter::parse(filter.as_bytes(), &context()).unwrap_err();
            assert!(String::from_utf8(message).unwrap().contains(word), "{filter}");
        }
    }

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        #[test]
        fn any_bytes_are_a_filter_or_refused(text: Vec<u8>, name: Vec<u8>) {
            if let Ok(filter) = Filter::parse(&text, &context()) {
                let mut row = file("x", 1, 1);
                row.name = name.into();
                let _ = filter.admits(&row, false);
            }
        }
    }
}
