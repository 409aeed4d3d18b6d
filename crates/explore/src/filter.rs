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
/// `size>10M`, `size<4K`, `age>30d`, `age<12h`, `type:f,l`, `owner:NAME`, and otherwise a part of
/// the name, or a pattern for the whole name if it has `*`, `?` or `[`. `!` before a word negates
/// it. Ages are [durations](duration::parse).
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
        let words = text.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
        let tests = words.map(|word| parse_word(word, context.charset)).collect::<Result<_, _>>()?;
        Ok(Filter { tests, context: context.clone() })
    }

    /// Returns whether an entry fulfils all words; without metadata, it fulfils none about size, age
    /// and owner. `apparent` selects the size that is compared.
    #[must_use]
    pub fn admits(&self, row: &Row, apparent: bool) -> bool {
        self.tests.iter().all(|test| {
            // What is unknown fulfils no condition, nor its opposite.
            (row.has_meta() || !test.kind.needs_meta())
                && test.kind.holds(row, apparent, &self.context) != test.negated
        })
    }
}

fn parse_word(word: &[u8], charset: Charset) -> Result<FilterTest, Vec<u8>> {
    let (negated, text) = match word.split_first() {
        Some((b'!', rest)) => (true, rest),
        _ => (false, word),
    };
    let age = |text: &[u8]| {
        duration::parse(text)
            .map_err(|_| [b"no age: ", &quote(text, charset)[..], b", as 90s, 12h, 30d or 1y"].concat())
    };
    let size = |sign: &[u8], text: &[u8]| {
        SizeTest::parse(&[sign, text].concat()).map_err(|error| error.message(charset))
    };
    let kind = if let Some(text) = text.strip_prefix(b"size>") {
        FilterKind::Size(size(b"+", text)?)
    } else if let Some(text) = text.strip_prefix(b"size<") {
        FilterKind::Size(size(b"-", text)?)
    } else if let Some(text) = text.strip_prefix(b"age>") {
        FilterKind::OlderThan(age(text)?)
    } else if let Some(text) = text.strip_prefix(b"age<") {
        FilterKind::YoungerThan(age(text)?)
    } else if let Some(text) = text.strip_prefix(b"type:") {
        FilterKind::Type(TypeSet::parse(text).map_err(|error| error.message(charset))?)
    } else if let Some(text) = text.strip_prefix(b"owner:") {
        FilterKind::Owner(text.to_vec())
    } else if text.iter().any(|byte| b"*?[".contains(byte)) {
        FilterKind::Pattern(Glob::new(text, charset, false))
    } else {
        FilterKind::Part(text.to_ascii_lowercase())
    };
    Ok(FilterTest { negated, kind })
}

impl FilterKind {
    fn needs_meta(&self) -> bool {
        !matches!(self, Self::Part(_) | Self::Pattern(_) | Self::Type(_))
    }

    fn holds(&self, row: &Row, apparent: bool, context: &FilterContext) -> bool {
        let age = || {
            let seconds = context.now_s.saturating_sub(row.newest_mtime_s);
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
                let known = context.owners.name(OwnerKind::User, row.uid);
                known.is_some_and(|known| *known == **name) || row.uid.to_string().as_bytes() == name
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
        rows[2].uid = 7;
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
        let unknown =
            Row { links: 0, identity: fathom_remove::Identity { dev: 0, ino: 5 }, ..file("a.log", 0, 0) };
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
        for (filter, word) in
            [("size>x", "x"), ("x age>1z", "1z"), ("type:q", "q"), ("size<", "invalid size")]
        {
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
