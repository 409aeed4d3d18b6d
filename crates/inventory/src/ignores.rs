//! What files like `.gitignore` leave out: the rules of one file ([`Rules`]), the files of one directory ([`Level`]), and
//! all that have a say in a directory ([`Stack`]), the weightiest first.
//!
//! What a line means is the `ignore` crate's, as ripgrep and fd have it. Does not own where files are, nor reading them.

use std::ffi::OsStr;
use std::fmt::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Memory behind a rule, roughly: its text, its glob and its part of the automaton.
const RULE_BYTES: usize = 1024;
/// The same behind any file.
const FILE_BYTES: usize = 4096;

/// The rules of one file.
#[derive(Clone, Debug)]
pub struct Rules(Gitignore);

/// Characters of a cause that are shown, which quotes the line.
const CAUSE_CHARS: usize = 200;

/// Why a line, or all of them, say nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Counted from 1; `None` if it is about all lines together.
    pub line: Option<usize>,
    /// Lines after it that say nothing either.
    pub more: usize,
    cause: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A stranger may have written the line: no control character gets to a terminal.
        let shown = self.cause.chars().take(CAUSE_CHARS);
        shown.map(|each| if each.is_control() { '?' } else { each }).try_for_each(|each| f.write_char(each))
    }
}

impl Rules {
    /// Reads the text of a file; lines that cannot be understood have no effect, and the
    /// first is told.
    #[must_use]
    pub fn parse(text: &[u8]) -> (Self, Option<Malformed>) {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let mut builder = GitignoreBuilder::new("");
        let mut malformed: Option<Malformed> = None;
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            if let Err(cause) = add(&mut builder, line.strip_suffix(b"\r").unwrap_or(line)) {
                let first = Malformed { line: Some(index + 1), more: 0, cause };
                malformed =
                    Some(malformed.map_or(first, |first| Malformed { more: first.more + 1, ..first }));
            }
        }
        let rules = builder.build().unwrap_or_else(|error| {
            malformed = Some(Malformed { line: None, more: 0, cause: error.to_string() });
            Gitignore::empty()
        });
        (Self(rules), malformed)
    }

    /// Bytes of memory behind it, roughly.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        FILE_BYTES + self.0.len() * RULE_BYTES
    }

    /// Whether an entry is left out; `None` if nothing is said of it. `path` is relative to the directory of the file.
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

/// What one directory has to say of what is in it and below it.
#[derive(Clone, Debug, Default)]
pub struct Level {
    /// `.ignore`
    pub ignore: Option<Rules>,
    /// `.gitignore`
    pub gitignore: Option<Rules>,
    /// `.git/info/exclude`
    pub exclude: Option<Rules>,
    /// It is the top of a repository: no `.gitignore` above it counts.
    pub is_repository: bool,
}

impl Level {
    /// Whether it says anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules().next().is_none() && !self.is_repository
    }

    /// Bytes of memory behind it, roughly.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.rules().map(Rules::heap_bytes).sum()
    }

    fn rules(&self) -> impl Iterator<Item = &Rules> {
        [&self.ignore, &self.gitignore, &self.exclude].into_iter().flatten()
    }
}

/// All rules that hold in one directory. The first that says anything of an entry decides.
#[derive(Clone, Debug, Default)]
pub struct Stack<'a>(Vec<(usize, &'a Rules)>);

impl<'a> Stack<'a> {
    /// Of the levels from the directory upwards, each with the bytes that its own path has, the closing slash included.
    /// `global` are the user's rules for all repositories.
    ///
    /// Any `.ignore` counts more than any `.gitignore`, that more than what the repository excludes, and that more than
    /// `global`; of one kind, the lower one does. Outside repositories there is only `.ignore`.
    #[must_use]
    pub fn new(levels: &[(usize, &'a Level)], global: Option<&'a Rules>) -> Self {
        let mut rules = Vec::new();
        let mut put = |len: usize, found: Option<&'a Rules>| rules.extend(found.map(|found| (len, found)));
        levels.iter().for_each(|(len, level)| put(*len, level.ignore.as_ref()));
        if let Some(top) = levels.iter().position(|(_, level)| level.is_repository) {
            levels[..=top].iter().for_each(|(len, level)| put(*len, level.gitignore.as_ref()));
            let (len, repository) = levels[top];
            put(len, repository.exclude.as_ref());
            put(len, global);
        }
        Self(rules)
    }

    /// Whether nothing is left out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an entry is left out. Its path begins with that of every level.
    #[must_use]
    pub fn leaves_out(&self, path: &[u8], is_dir: bool) -> bool {
        self.0.iter().find_map(|(len, rules)| rules.leave_out(&path[*len..], is_dir)).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Rules {
        let (rules, malformed) = Rules::parse(text.as_bytes());
        assert_eq!(malformed, None);
        rules
    }

    #[test]
    fn what_gitignore_has_in_its_manual() {
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
        let (rules, malformed) = Rules::parse(b"a\n{b\x1b\n\xff\nc[z-a]\nd");
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
        let upper = Level {
            ignore: Some(rules("a")),
            gitignore: Some(rules("b\nd/c")),
            exclude: Some(rules("!c\nx")),
            is_repository: true,
        };
        let lower = Level { gitignore: Some(rules("!a\n!b")), ..Level::default() };
        let global = rules("g\n!x\n/d/h");
        let stack = Stack::new(&[(4, &lower), (2, &upper)], Some(&global));
        let kept = ["b", "c2"].map(|name| stack.leaves_out(format!("r/d/{name}").as_bytes(), false));
        assert_eq!(kept, [false, false]);
        let left_out =
            ["a", "c", "x", "g", "h"].map(|name| stack.leaves_out(format!("r/d/{name}").as_bytes(), false));
        assert_eq!(left_out, [true; 5]);
    }

    #[test]
    fn a_repository_knows_no_gitignore_above_it_and_nothing_else_knows_any() {
        let outer = Level { gitignore: Some(rules("a")), ignore: Some(rules("b")), ..Level::default() };
        let inner = Level { is_repository: true, ..Level::default() };
        let global = rules("g");
        let left_out =
            |stack: Stack<'_>| ["a", "b", "g"].map(|name| stack.leaves_out(name.as_bytes(), false));
        assert_eq!(left_out(Stack::new(&[(0, &inner), (0, &outer)], Some(&global))), [false, true, true]);
        assert_eq!(left_out(Stack::new(&[(0, &outer)], Some(&global))), [false, true, false]);
        assert!(Stack::new(&[(0, &Level::default())], Some(&global)).is_empty());
    }
}
