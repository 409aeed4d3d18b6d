//! Entity tags (RFC 9110, section 8.8.3): those of files, and the lists of them that conditions have.
//!
//! Does not own: what follows from a match (`conditional`), nor looking at files.

use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderValue;

use crate::negotiate::Coding;

/// How long after its modification a file can be changed again without another modification time: no longer than the
/// coarsest clock of a filesystem ticks, which are the 2 s of FAT. Other filesystems, and the kernel's own clock of a few
/// milliseconds, are finer, but do not say how fine.
pub const SETTLING: Duration = Duration::from_secs(2);

/// Modification times before 1981 are constants that builds give to all of their files (0, 1, and
/// the first years that a zip archive can say), so that archives of the same contents are the same:
/// they tell no content from another.
const DATED_FROM_S: i64 = 347_155_200;

/// What tells one state of a file from another.
///
/// Modification time and size are the same for copies that keep times (`rsync -t`, `cp -p`, an
/// unpacked archive), so servers that share a name agree on them. The inode number tells a file
/// that was put in another's place with the same size and time, but is another one on each server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Modification time, seconds since the epoch; or of a file that is not [dated](is_dated), its
    /// change time.
    pub mtime_s: i64,
    /// And nanoseconds.
    pub mtime_ns: u32,
    /// Bytes.
    pub size: u64,
    /// Inode number, where it is to count.
    pub inode: Option<u64>,
}

/// Returns whether a modification time says when a file got its content.
#[must_use]
pub fn is_dated(mtime_s: i64) -> bool {
    mtime_s >= DATED_FROM_S
}

/// How exactly a tag names the bytes of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strength {
    /// No other bytes have the tag.
    Strong,
    /// The same content, in bytes that another version of this program may make otherwise: those of
    /// a compression while serving.
    Weak,
    /// The file may still change without another stamp. The tag is not that of the settled stamp
    /// either: a client that has what was there a moment before must not be told later that it is
    /// the same.
    New,
}

impl Stamp {
    /// Whether a change from now on would leave another stamp. `seen` is the clock before the file was looked at. A time in
    /// the future is not settled: its clock is not ours.
    #[must_use]
    pub fn settled(&self, seen: SystemTime) -> bool {
        let Ok(seen) = seen.duration_since(UNIX_EPOCH) else { return false };
        let mtime_ns = i128::from(self.mtime_s) * 1_000_000_000 + i128::from(self.mtime_ns);
        let nanos = |time: Duration| i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
        nanos(seen).saturating_sub(mtime_ns) >= nanos(SETTLING)
    }

    /// The tag of the file in a content coding.
    #[must_use]
    pub fn tag(&self, coding: Option<Coding>, strength: Strength) -> HeaderValue {
        let Self { mtime_s, mtime_ns, size, inode } = self;
        let mut tag = String::with_capacity(80);
        tag.push_str(if strength == Strength::Strong { "\"" } else { "W/\"" });
        // Each number ends at its separator, so different numbers never make the same tag.
        let _ = write!(tag, "{mtime_s:x}.{mtime_ns:x}-{size:x}");
        if let Some(inode) = inode {
            let _ = write!(tag, "-{inode:x}");
        }
        if let Some(coding) = coding {
            tag.push('-');
            tag.push_str(coding.token());
        }
        tag.push_str(if strength == Strength::New { "-new\"" } else { "\"" });
        HeaderValue::try_from(tag).expect("hexadecimal digits and separators are a header's value")
    }
}

/// An entity tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag<'a> {
    /// Whether it has `W/`.
    pub weak: bool,
    /// What is between the quotes.
    pub opaque: &'a [u8],
}

impl<'a> Tag<'a> {
    /// The tag that is all of `value`.
    #[must_use]
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        match Self::split_first(value)? {
            (tag, []) => Some(tag),
            _ => None,
        }
    }

    /// Strong comparison (section 8.8.3.2).
    #[must_use]
    pub fn is(self, other: Tag<'_>) -> bool {
        !self.weak && !other.weak && self.opaque == other.opaque
    }

    /// Weak comparison.
    #[must_use]
    pub fn is_like(self, other: Tag<'_>) -> bool {
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

/// The tags of a list (`If-Match`, `If-None-Match`). What is malformed ends it; the tags in front of that count.
#[derive(Clone, Debug)]
pub struct Tags<'a>(&'a [u8]);

impl<'a> Tags<'a> {
    /// Of a header's value that is not `*`.
    #[must_use]
    pub fn new(value: &'a [u8]) -> Self {
        Self(value)
    }
}

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        let list = std::mem::take(&mut self.0);
        // Elements may be empty (section 5.6.1.2).
        let start = list.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b','))?;
        let (tag, rest) = Tag::split_first(list.get(start..)?)?;
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
    use proptest::test_runner::RngSeed;

    use super::*;

    fn stamps() -> impl Strategy<Value = Stamp> {
        let few = || prop_oneof![any::<u64>(), 0..40u64];
        let seconds = prop_oneof![any::<i64>(), -3..40i64];
        (seconds, prop_oneof![0..1_000_000_000u32, 0..40u32], few(), prop::option::of(few()))
            .prop_map(|(mtime_s, mtime_ns, size, inode)| Stamp { mtime_s, mtime_ns, size, inode })
    }

    fn codings() -> impl Strategy<Value = Option<Coding>> {
        prop::option::of(prop::sample::select(Coding::ALL.to_vec()))
    }

    fn strengths() -> impl Strategy<Value = Strength> {
        prop::sample::select(vec![Strength::Strong, Strength::Weak, Strength::New])
    }

    fn tags(list: &str) -> Vec<(bool, String)> {
        let text = |tag: Tag<'_>| (tag.weak, String::from_utf8_lossy(tag.opaque).into_owned());
        Tags::new(list.as_bytes()).map(text).collect()
    }

    const FILE: Stamp = Stamp { mtime_s: 0x68a1_b2c3, mtime_ns: 0x1f, size: 716, inode: None };
    const INODE: Stamp = Stamp { inode: Some(10), ..FILE };

    #[test]
    fn a_tag_has_a_separator_between_any_two_numbers() {
        assert_eq!(FILE.tag(None, Strength::Strong), "\"68a1b2c3.1f-2cc\"");
        assert_eq!(INODE.tag(None, Strength::Strong), "\"68a1b2c3.1f-2cc-a\"");
        assert_eq!(INODE.tag(Some(Coding::Zstd), Strength::Weak), "W/\"68a1b2c3.1f-2cc-a-zstd\"");
        assert_eq!(INODE.tag(Some(Coding::Br), Strength::New), "W/\"68a1b2c3.1f-2cc-a-br-new\"");
    }

    #[test]
    fn a_file_settles_when_no_clock_can_give_its_time_again() {
        let modified = UNIX_EPOCH + Duration::new(FILE.mtime_s.unsigned_abs(), FILE.mtime_ns);
        assert!(!FILE.settled(modified));
        assert!(!FILE.settled(modified + SETTLING - Duration::from_nanos(1)));
        assert!(FILE.settled(modified + SETTLING));
        assert!(!FILE.settled(modified - Duration::from_secs(60)));
        assert!(!FILE.settled(UNIX_EPOCH - Duration::from_secs(1)));
        assert!(Stamp { mtime_s: i64::MIN, ..FILE }.settled(UNIX_EPOCH));
        assert!(!Stamp { mtime_s: i64::MAX, ..FILE }.settled(modified));
    }

    #[test]
    fn only_strong_tags_are_the_same() {
        let [strong, weak, other] =
            ["\"a\"", "W/\"a\"", "\"b\""].map(|text| Tag::parse(text.as_bytes()).unwrap());
        assert!(
            strong.is(strong) && !strong.is(weak) && !weak.is(strong) && !weak.is(weak) && !strong.is(other)
        );
        assert!(strong.is_like(weak) && weak.is_like(strong) && weak.is_like(weak) && !weak.is_like(other));
    }

    #[test]
    fn what_is_no_tag_is_none() {
        for text in [
            "", "a", "\"", "\"a", "a\"", "\"a b\"", "\"a\tb\"", "\"\x7f\"", "w/\"a\"", "W/a", "W/",
            "W/ \"a\"", "\"a\"b", "*",
        ] {
            assert_eq!(Tag::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Tag::parse(b"\"\""), Some(Tag { weak: false, opaque: b"" }));
        assert_eq!(Tag::parse(b"\"\xff\\,!\""), Some(Tag { weak: false, opaque: b"\xff\\,!" }));
    }

    #[test]
    fn a_list_ends_at_what_is_malformed() {
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
        #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(5), ..ProptestConfig::with_cases(4000) })]

        #[test]
        fn different_states_have_different_tags(
            a in (stamps(), codings(), strengths()), b in (stamps(), codings(), strengths()),
        ) {
            let [first, second] = [a, b].map(|(stamp, coding, strength)| stamp.tag(coding, strength));
            let [first, second] = [&first, &second].map(|value| Tag::parse(value.as_bytes()).unwrap());
            let is_new = |strength| strength == Strength::New;
            prop_assert_eq!(first.is_like(second), (a.0, a.1, is_new(a.2)) == (b.0, b.1, is_new(b.2)));
            prop_assert_eq!(first.is(first), a.2 == Strength::Strong);
        }

        #[test]
        fn moving_a_digit_to_the_next_number_is_another_tag(digits in prop::collection::vec(0..16u8, 4..24), a: u8, b: u8) {
            let split = |cut: u8| {
                let at = 1 + usize::from(cut) % (digits.len() - 2);
                let number = |digits: &[u8]| digits.iter().fold(0u64, |number, digit| number << 4 | u64::from(*digit));
                Stamp { size: number(&digits[..at]), inode: Some(number(&digits[at..])), ..FILE }
            };
            let (first, second) = (split(a), split(b));
            prop_assert_eq!(first.tag(None, Strength::Strong) == second.tag(None, Strength::Strong), first == second);
        }

        #[test]
        fn a_list_is_what_was_written(tags in prop::collection::vec((any::<bool>(), "[!#-~]{0,5}"), 0..6), gap in "[ \t]{0,2},[ \t,]{0,3}") {
            let texts: Vec<String> = tags.iter().map(|(weak, text)| format!("{}\"{text}\"", if *weak { "W/" } else { "" })).collect();
            prop_assert_eq!(self::tags(&texts.join(&gap)), tags);
        }

        #[test]
        fn any_bytes_are_a_list(list in any::<Vec<u8>>()) {
            for tag in Tags::new(&list) {
                prop_assert!(!tag.opaque.contains(&b'"'));
            }
        }
    }
}
