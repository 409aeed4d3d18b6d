//! Exclusion by files like `.gitignore`: the rules of one file ([`IgnoreRules`]), the files of one
//! directory ([`DirRules`]), and all rules that apply in a directory ([`RuleStack`]), the rules of
//! the highest precedence first.
//!
//! The `ignore` crate parses and matches the rules, as in ripgrep and fd. This module does not own
//! where the files are, nor how they are read.

use std::ffi::OsStr;
use std::fmt::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Approximate memory of a rule in bytes: its text, its glob and its share of the automaton.
const RULE_BYTES: usize = 1024;
/// Approximate memory of a file without rules, in bytes.
const FILE_BYTES: usize = 4096;

/// The rules of one file.
#[derive(Clone, Debug)]
pub struct IgnoreRules(Gitignore);

/// Most characters of a cause that are shown. The cause quotes the line.
const CAUSE_CHARS: usize = 200;

/// The error of a line, or of all lines, of an ignore file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MalformedRule {
    /// The number of the line, counted from 1; `None` if the error is about all lines together.
    pub line: Option<usize>,
    /// The number of malformed lines after this one.
    pub more: usize,
    cause: String,
}

impl fmt::Display for MalformedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The line may come from an untrusted file: no control character may reach a terminal.
        let shown = self.cause.chars().take(CAUSE_CHARS);
        shown.map(|each| if each.is_control() { '?' } else { each }).try_for_each(|each| f.write_char(each))
    }
}

impl IgnoreRules {
    /// Parses the text of a file. Malformed lines have no effect; the first of them is returned.
    #[must_use]
    pub fn parse(text: &[u8]) -> (Self, Option<MalformedRule>) {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let mut builder = GitignoreBuilder::new("");
        let mut malformed: Option<MalformedRule> = None;
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            if let Err(cause) = add(&mut builder, line.strip_suffix(b"\r").unwrap_or(line)) {
                let first = MalformedRule { line: Some(index + 1), more: 0, cause };
                malformed =
                    Some(malformed.map_or(first, |first| MalformedRule { more: first.more + 1, ..first }));
            }
        }
        let rules = builder.build().unwrap_or_else(|error| {
            malformed = Some(MalformedRule { line: None, more: 0, cause: error.to_string() });
            Gitignore::empty()
        });
        (Self(rules), malformed)
    }

    /// Returns the approximate memory of the rules, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        FILE_BYTES + self.0.len() * RULE_BYTES
    }

    /// Returns whether an entry is excluded; `None` if no rule matches it. `path` is relative to
    /// the directory of the file.
    fn leave_out(&self, path: &[u8], is_dir: bool) -> Option<bool> {
        match self.0.matched(Path::new(OsStr::from_bytes(path)), is_dir) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        }
    }
}

fn add(builder: &mut GitignoreBuilder, line: &[u8]) -> Result<(), String> {
    let line = std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned())?;
    builder.add_line(None, line).map(drop).map_err(|error| error.to_string())
}

/// The ignore files of one directory, which apply to everything below it.
#[derive(Clone, Debug, Default)]
pub struct DirRules {
    /// `.ignore`
    pub ignore: Option<IgnoreRules>,
    /// `.gitignore`
    pub gitignore: Option<IgnoreRules>,
    /// `.git/info/exclude`
    pub exclude: Option<IgnoreRules>,
    /// Whether the directory is the top of a repository: no `.gitignore` above it applies.
    pub is_repository: bool,
}

impl DirRules {
    /// Returns whether the directory changes nothing for the entries below it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules().next().is_none() && !self.is_repository
    }

    /// Returns the approximate memory of the rules, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.rules().map(IgnoreRules::heap_bytes).sum()
    }

    fn rules(&self) -> impl Iterator<Item = &IgnoreRules> {
        [&self.ignore, &self.gitignore, &self.exclude].into_iter().flatten()
    }
}

/// All rules that apply in one directory. The first rule that matches an entry decides.
///
/// ```
/// use fathom_inventory::ignores::{DirRules, IgnoreRules, RuleStack};
///
/// let (rules, malformed) = IgnoreRules::parse(b"*.o\n!keep.o\ntarget/\n");
/// assert!(malformed.is_none());
/// let top = DirRules { gitignore: Some(rules), is_repository: true, ..DirRules::default() };
/// // The path of the top of the walk is empty.
/// let stack = RuleStack::new(&[(0, &top)], None);
/// assert!(stack.leaves_out(b"a.o", false) && stack.leaves_out(b"target", true));
/// assert!(!stack.leaves_out(b"keep.o", false));
/// ```
#[derive(Clone, Debug, Default)]
pub struct RuleStack<'a>(Vec<(usize, &'a IgnoreRules)>);

impl<'a> RuleStack<'a> {
    /// Collects the rules of the `levels` from the directory upwards, each with the length of its
    /// path in bytes, the closing slash included. `global` are the user's rules for all
    /// repositories.
    ///
    /// Any `.ignore` has precedence over any `.gitignore`, that over the excludes of the
    /// repository, and those over `global`. Of one kind, the file of the lower directory has
    /// precedence. Outside repositories only `.ignore` applies.
    #[must_use]
    pub fn new(levels: &[(usize, &'a DirRules)], global: Option<&'a IgnoreRules>) -> Self {
        let mut rules = Vec::new();
        let mut put =
            |len: usize, found: Option<&'a IgnoreRules>| rules.extend(found.map(|found| (len, found)));
        levels.iter().for_each(|(len, level)| put(*len, level.ignore.as_ref()));
        if let Some(top) = levels.iter().position(|(_, level)| level.is_repository) {
            levels[..=top].iter().for_each(|(len, level)| put(*len, level.gitignore.as_ref()));
            let (len, repository) = levels[top];
            put(len, repository.exclude.as_ref());
            put(len, global);
        }
        Self(rules)
    }

    /// Returns whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether an entry is excluded. Its path begins with the path of every level.
    #[must_use]
    pub fn leaves_out(&self, path: &[u8], is_dir: bool) -> bool {
        self.0.iter().find_map(|(len, rules)| rules.leave_out(&path[*len..], is_dir)).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> IgnoreRules {
        let (rules, malformed) = IgnoreRules::parse(text.as_bytes());
        assert_eq!(malformed, None);
        rules
    }

    #[test]
    fn patterns_match_as_in_the_gitignore_manual() {
        for (line, path, is_dir, expected) in [
            ("foo", "a/foo", false, Some(true)),
            ("/foo", "a/foo", false, None),
            ("a/foo", "b/a/foo", false, None),
            ("foo/", "foo", false, None),
            ("foo/", "a/foo", true, Some(true)),
            ("**/foo", "a/b/foo", false, Some(true)),
            ("a/**/b", "a/x/y/b", false, Some(true)),
            ("a/**", "a", true, None),
            ("a/**", "a/b/c", false, Some(true)),
            ("*.[oa]", "a/b.o", false, Some(true)),
            ("*.[!oa]", "b.o", false, None),
            ("a*b", "a/b", false, None),
            ("!foo", "foo", false, Some(false)),
            ("\\!foo", "!foo", false, Some(true)),
            ("\\#foo", "#foo", false, Some(true)),
            ("# foo", "# foo", false, None),
            ("foo  ", "foo", false, Some(true)),
        ] {
            assert_eq!(rules(line).leave_out(path.as_bytes(), is_dir), expected, "{line} {path}");
        }
    }

    #[test]
    fn the_last_line_that_matches_decides() {
        let rules = rules("\u{feff}*.o\r\n!keep.o\n\nkeep.o/");
        assert_eq!(rules.leave_out(b"a.o", false), Some(true));
        assert_eq!(rules.leave_out(b"keep.o", false), Some(false));
        assert_eq!(rules.leave_out(b"keep.o", true), Some(true));
    }

    #[test]
    fn a_line_that_cannot_be_understood_is_told_and_the_others_count() {
        let (rules, malformed) = IgnoreRules::parse(b"a\n{b\x1b\n\xff\nc[z-a]\nd");
        let malformed = malformed.unwrap();
        assert_eq!((malformed.line, malformed.more), (Some(2), 2));
        let said = malformed.to_string();
        assert!(said.contains("{b?") && said.len() < 2 * CAUSE_CHARS, "{said}");
        assert_eq!(
            [b"a", b"d", b"e"].map(|name| rules.leave_out(name, false)),
            [Some(true), Some(true), None]
        );
    }

    #[test]
    fn kinds_and_then_depths_are_weighed() {
        let upper = DirRules {
            ignore: Some(rules("a")),
            gitignore: Some(rules("b\nd/c")),
            exclude: Some(rules("!c\nx")),
            is_repository: true,
        };
        let lower = DirRules { gitignore: Some(rules("!a\n!b")), ..DirRules::default() };
        let global = rules("g\n!x\n/d/h");
        let stack = RuleStack::new(&[(4, &lower), (2, &upper)], Some(&global));
        let kept = ["b", "c2"].map(|name| stack.leaves_out(format!("r/d/{name}").as_bytes(), false));
        assert_eq!(kept, [false, false]);
        let left_out =
            ["a", "c", "x", "g", "h"].map(|name| stack.leaves_out(format!("r/d/{name}").as_bytes(), false));
        assert_eq!(left_out, [true; 5]);
    }

    #[test]
    fn gitignore_files_apply_within_their_repository_only() {
        let outer = DirRules { gitignore: Some(rules("a")), ignore: Some(rules("b")), ..DirRules::default() };
        let inner = DirRules { is_repository: true, ..DirRules::default() };
        let global = rules("g");
        let left_out =
            |stack: RuleStack<'_>| ["a", "b", "g"].map(|name| stack.leaves_out(name.as_bytes(), false));
        assert_eq!(left_out(RuleStack::new(&[(0, &inner), (0, &outer)], Some(&global))), [false, true, true]);
        assert_eq!(left_out(RuleStack::new(&[(0, &outer)], Some(&global))), [false, true, false]);
        assert!(RuleStack::new(&[(0, &DirRules::default())], Some(&global)).is_empty());
    }
}
