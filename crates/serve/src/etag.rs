//! Entity tags (RFC 9110, section 8.8.3): the tags of files, and the lists of tags in
//! preconditions.
//!
//! Does not own: the consequences of a match (`conditional`), reading file metadata.

use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fathom_files::SETTLING;
use http::HeaderValue;

use crate::negotiate::Coding;

/// Modification times before 1981 are constants that reproducible builds give to all of their files
/// (0, 1, and the first years that a zip archive can express). They do not distinguish contents.
const DATED_FROM_S: i64 = 347_155_200;

/// The attributes that distinguish one state of a file from another.
///
/// Modification time and size are the same for copies that keep times (`rsync -t`, `cp -p`, an
/// unpacked archive), so servers that share a name agree on them. The inode number distinguishes a
/// file that has replaced another with the same size and time, but differs between servers.
///
/// ```
/// use fathom_serve::etag::{FileStamp, TagStrength};
/// use fathom_serve::negotiate::Coding;
///
/// let stamp = FileStamp { mtime_s: 0x6000_0000, mtime_ns: 0, size: 16, inode: None };
/// assert_eq!(stamp.tag(None, TagStrength::Strong), "\"60000000.0-10\"");
/// assert_eq!(stamp.tag(Some(Coding::Gzip), TagStrength::Weak), "W/\"60000000.0-10-gzip\"");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileStamp {
    /// Modification time, in seconds since the epoch; the change time for a file that is not
    /// [dated](is_dated).
    pub mtime_s: i64,
    /// The nanoseconds of that time.
    pub mtime_ns: u32,
    /// Size in bytes.
    pub size: u64,
    /// Inode number, if it is part of the tag.
    pub inode: Option<u64>,
}

/// Returns whether a modification time tells when a file got its content.
#[must_use]
pub fn is_dated(mtime_s: i64) -> bool {
    mtime_s >= DATED_FROM_S
}

/// How exactly a tag identifies the bytes of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TagStrength {
    /// No other bytes have the tag.
    Strong,
    /// Equivalent content, whose bytes another version of this program may encode differently: a
    /// body compressed while serving.
    Weak,
    /// The file may still change without a change of its stamp. The tag also differs from the tag
    /// of the settled stamp: a client with an earlier state must not be told later that its copy is
    /// current.
    Unsettled,
}

impl FileStamp {
    /// Returns whether every later change of the file changes the stamp. `seen` is the time before
    /// the file's metadata was read. A time in the future is not settled: it comes from another
    /// clock.
    #[must_use]
    pub fn settled(&self, seen: SystemTime) -> bool {
        let Ok(seen) = seen.duration_since(UNIX_EPOCH) else { return false };
        let mtime_ns = i128::from(self.mtime_s) * 1_000_000_000 + i128::from(self.mtime_ns);
        let nanos = |time: Duration| i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
        nanos(seen).saturating_sub(mtime_ns) >= nanos(SETTLING)
    }

    /// Returns the entity tag of the file in a content coding.
    #[must_use]
    pub fn tag(&self, coding: Option<Coding>, strength: TagStrength) -> HeaderValue {
        let Self { mtime_s, mtime_ns, size, inode } = self;
        let mut tag = String::with_capacity(80);
        tag.push_str(if strength == TagStrength::Strong { "\"" } else { "W/\"" });
        // Each number ends at its separator, so different numbers never form the same tag.
        let _ = write!(tag, "{mtime_s:x}.{mtime_ns:x}-{size:x}");
        if let Some(inode) = inode {
            let _ = write!(tag, "-{inode:x}");
        }
        if let Some(coding) = coding {
            tag.push('-');
            tag.push_str(coding.token());
        }
        tag.push_str(if strength == TagStrength::Unsettled { "-new\"" } else { "\"" });
        HeaderValue::try_from(tag).expect("hexadecimal digits and separators are a header's value")
    }
}

/// An entity tag.
///
/// ```
/// use fathom_serve::etag::EntityTag;
///
/// let [strong, weak] = [&b"\"a\""[..], b"W/\"a\""].map(|text| EntityTag::parse(text).unwrap());
/// assert!(strong.matches_weakly(weak) && !strong.matches_strongly(weak));
/// assert_eq!(EntityTag::parse(b"a"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityTag<'a> {
    /// Whether the tag is weak (`W/`).
    pub weak: bool,
    /// The bytes between the quotes.
    pub opaque: &'a [u8],
}

impl<'a> EntityTag<'a> {
    /// Parses `value` as exactly one tag.
    #[must_use]
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        match Self::split_first(value)? {
            (tag, []) => Some(tag),
            _ => None,
        }
    }

    /// Compares strongly (section 8.8.3.2).
    #[must_use]
    pub fn matches_strongly(self, other: EntityTag<'_>) -> bool {
        !self.weak && !other.weak && self.opaque == other.opaque
    }

    /// Compares weakly (section 8.8.3.2).
    #[must_use]
    pub fn matches_weakly(self, other: EntityTag<'_>) -> bool {
        self.opaque == other.opaque
    }

    fn split_first(value: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let quoted = value.strip_prefix(b"W/");
        let text = quoted.unwrap_or(value).strip_prefix(b"\"")?;
        let end = text.iter().position(|byte| *byte == b'"')?;
        let (opaque, rest) = text.split_at(end);
        let tag = Self { weak: quoted.is_some(), opaque };
        let is_etagc = |byte: &u8| *byte > b' ' && *byte != 0x7f;
        opaque.iter().all(is_etagc).then_some((tag, rest.strip_prefix(b"\"")?))
    }
}

/// The tags of a list (`If-Match`, `If-None-Match`). A malformed element ends the list; the tags
/// before it count.
#[derive(Clone, Debug)]
pub struct EntityTags<'a>(&'a [u8]);

impl<'a> EntityTags<'a> {
    /// Iterates over a header value that is not `*`.
    #[must_use]
    pub fn new(value: &'a [u8]) -> Self {
        Self(value)
    }
}

impl<'a> Iterator for EntityTags<'a> {
    type Item = EntityTag<'a>;

    fn next(&mut self) -> Option<EntityTag<'a>> {
        let list = std::mem::take(&mut self.0);
        // Elements may be empty (section 5.6.1.2).
        let start = list.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b','))?;
        let (tag, rest) = EntityTag::split_first(list.get(start..)?)?;
        match rest.trim_ascii_start() {
            [] => {}
            [b',', rest @ ..] => self.0 = rest,
            _ => return None,
        }
        Some(tag)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stamps() -> impl Strategy<Value = FileStamp> {
        let few = || prop_oneof![any::<u64>(), 0..40u64];
        let seconds = prop_oneof![any::<i64>(), -3..40i64];
        (seconds, prop_oneof![0..1_000_000_000u32, 0..40u32], few(), prop::option::of(few()))
            .prop_map(|(mtime_s, mtime_ns, size, inode)| FileStamp { mtime_s, mtime_ns, size, inode })
    }

    fn codings() -> impl Strategy<Value = Option<Coding>> {
        prop::option::of(prop::sample::select(Coding::ALL.to_vec()))
    }

    fn strengths() -> impl Strategy<Value = TagStrength> {
        prop::sample::select(vec![TagStrength::Strong, TagStrength::Weak, TagStrength::Unsettled])
    }

    fn tags(list: &str) -> Vec<(bool, String)> {
        let text = |tag: EntityTag<'_>| (tag.weak, String::from_utf8_lossy(tag.opaque).into_owned());
        EntityTags::new(list.as_bytes()).map(text).collect()
    }

    const FILE: FileStamp = FileStamp { mtime_s: 0x68a1_b2c3, mtime_ns: 0x1f, size: 716, inode: None };
    const INODE: FileStamp = FileStamp { inode: Some(10), ..FILE };

    #[test]
    fn a_tag_has_a_separator_between_any_two_numbers() {
        assert_eq!(FILE.tag(None, TagStrength::Strong), "\"68a1b2c3.1f-2cc\"");
        assert_eq!(INODE.tag(None, TagStrength::Strong), "\"68a1b2c3.1f-2cc-a\"");
        assert_eq!(INODE.tag(Some(Coding::Zstd), TagStrength::Weak), "W/\"68a1b2c3.1f-2cc-a-zstd\"");
        assert_eq!(INODE.tag(Some(Coding::Br), TagStrength::Unsettled), "W/\"68a1b2c3.1f-2cc-a-br-new\"");
    }

    #[test]
    fn a_file_settles_when_no_clock_can_give_its_time_again() {
        let modified = UNIX_EPOCH + Duration::new(FILE.mtime_s.unsigned_abs(), FILE.mtime_ns);
        assert!(!FILE.settled(modified));
        assert!(!FILE.settled(modified + SETTLING - Duration::from_nanos(1)));
        assert!(FILE.settled(modified + SETTLING));
        assert!(!FILE.settled(modified - Duration::from_secs(60)));
        assert!(!FILE.settled(UNIX_EPOCH - Duration::from_secs(1)));
        assert!(FileStamp { mtime_s: i64::MIN, ..FILE }.settled(UNIX_EPOCH));
        assert!(!FileStamp { mtime_s: i64::MAX, ..FILE }.settled(modified));
    }

    #[test]
    fn only_strong_tags_are_the_same() {
        let [strong, weak, other] =
            ["\"a\"", "W/\"a\"", "\"b\""].map(|text| EntityTag::parse(text.as_bytes()).unwrap());
        assert!(
            strong.matches_strongly(strong)
                && !strong.matches_strongly(weak)
                && !weak.matches_strongly(strong)
                && !weak.matches_strongly(weak)
                && !strong.matches_strongly(other)
        );
        assert!(
            strong.matches_weakly(weak)
                && weak.matches_weakly(strong)
                && weak.matches_weakly(weak)
                && !weak.matches_weakly(other)
        );
    }

    #[test]
    fn malformed_tags_are_none() {
        for text in [
            "", "a", "\"", "\"a", "a\"", "\"a b\"", "\"a\tb\"", "\"\x7f\"", "w/\"a\"", "W/a", "W/",
            "W/ \"a\"", "\"a\"b", "*",
        ] {
            assert_eq!(EntityTag::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(EntityTag::parse(b"\"\""), Some(EntityTag { weak: false, opaque: b"" }));
        assert_eq!(EntityTag::parse(b"\"\xff\\,!\""), Some(EntityTag { weak: false, opaque: b"\xff\\,!" }));
    }

    #[test]
    fn a_list_ends_at_a_malformed_element() {
        let strong = |text: &str| (false, text.to_owned());
        assert_eq!(tags(r#" "a,b" ,, W/"c","" "#), [strong("a,b"), (true, "c".to_owned()), strong("")]);
        assert_eq!(tags(r#""a", b, "c""#), [strong("a")]);
        assert_eq!(tags(r#""a" "b""#), []);
        assert_eq!(tags(r#""a", *"#), [strong("a")]);
        for empty in ["", " , ,", "*", "\"", "a"] {
            assert_eq!(tags(empty), [], "{empty}");
        }
    }

    proptest! {
        #![proptest_config(fathom_cases::property(4000))]

        #[test]
        fn different_states_have_different_tags(
            a in (stamps(), codings(), strengths()), b in (stamps(), codings(), strengths()),
        ) {
            let [first, second] = [a, b].map(|(stamp, coding, strength)| stamp.tag(coding, strength));
            let [first, second] = [&first, &second].map(|value| EntityTag::parse(value.as_bytes()).unwrap());
            let is_new = |strength| strength == TagStrength::Unsettled;
            prop_assert_eq!(first.matches_weakly(second), (a.0, a.1, is_new(a.2)) == (b.0, b.1, is_new(b.2)));
            prop_assert_eq!(first.matches_strongly(first), a.2 == TagStrength::Strong);
        }

        #[test]
        fn moving_a_digit_to_the_next_number_is_another_tag(digits in prop::collection::vec(0..16u8, 4..24), a: u8, b: u8) {
            let split = |cut: u8| {
                let at = 1 + usize::from(cut) % (digits.len() - 2);
                let number = |digits: &[u8]| digits.iter().fold(0u64, |number, digit| number << 4 | u64::from(*digit));
                FileStamp { size: number(&digits[..at]), inode: Some(number(&digits[at..])), ..FILE }
            };
            let (first, second) = (split(a), split(b));
            prop_assert_eq!(first.tag(None, TagStrength::Strong) == second.tag(None, TagStrength::Strong), first == second);
        }

        #[test]
        fn a_formatted_list_parses_again(tags in prop::collection::vec((any::<bool>(), "[!#-~]{0,5}"), 0..6), gap in "[ \t]{0,2},[ \t,]{0,3}") {
            let texts: Vec<String> = tags.iter().map(|(weak, text)| format!("{}\"{text}\"", if *weak { "W/" } else { "" })).collect();
            prop_assert_eq!(self::tags(&texts.join(&gap)), tags);
        }

        #[test]
        fn any_bytes_are_a_list(list in any::<Vec<u8>>()) {
            for tag in EntityTags::new(&list) {
                prop_assert!(!tag.opaque.contains(&b'"'));
            }
        }
    }
}
