//! Exclusion of names: the patterns of `--exclude` and `--exclude-from`. A pattern is matched
//! against the whole displayed path and against each suffix of it that starts behind a slash. The
//! caller decides which entries are tested.

use std::collections::HashSet;

use fathom_text::glob::{self, Glob};
use fathom_text::quote::Charset;

/// A set of patterns. Testing a path takes one hash lookup for all patterns without wildcards, and
/// for each other pattern time proportional to the product of the lengths of pattern and path.
///
/// ```
/// use fathom_du::exclude::Exclude;
/// use fathom_text::quote::Charset;
///
/// let mut exclude = Exclude::new(Charset::Utf8, false);
/// exclude.add(b"*.o");
/// exclude.add_file(b"target  \n\ndocs/man\n");
/// for path in [&b"src/a.o"[..], b"target", b"x/docs/man"] {
///     assert!(exclude.matches(path));
/// }
/// assert!(!exclude.matches(b"man"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Exclude {
    charset: Charset,
    posixly_correct: bool,
    /// Patterns without wildcards and slashes, which can match a whole name only.
    names: HashSet<Vec<u8>>,
    /// Patterns without wildcards, which can match a suffix of a path.
    paths: HashSet<Vec<u8>>,
    /// Patterns that depend only on the entry's name, given that its directory is not excluded.
    name_globs: Vec<Glob>,
    path_globs: Vec<Glob>,
}

impl Exclude {
    /// Returns an empty set for names in `charset`. `posixly_correct` tells whether POSIXLY_CORRECT
    /// is set; `[^a]` does not negate then.
    pub fn new(charset: Charset, posixly_correct: bool) -> Exclude {
        Exclude { charset, posixly_correct, ..Exclude::default() }
    }

    /// Adds a pattern: `*`, `?`, brackets and backslashes as in a shell, except that `*` and `?`
    /// also match slashes and leading dots.
    pub fn add(&mut self, pattern: &[u8]) {
        if !has_wildcards(pattern) {
            let literal = unescape(pattern);
            let set = if literal.contains(&b'/') { &mut self.paths } else { &mut self.names };
            set.insert(literal);
            return;
        }
        let glob = Glob::new(pattern, self.charset, self.posixly_correct);
        if glob.depends_on_name_only() { self.name_globs.push(glob) } else { self.path_globs.push(glob) }
    }

    /// Adds the pattern of each line of a file. Trailing white space and empty lines are ignored.
    /// There are no comments. A NUL byte ends a pattern.
    pub fn add_file(&mut self, bytes: &[u8]) {
        patterns(bytes).for_each(|pattern| self.add(pattern));
    }

    /// Returns whether the set has no patterns.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && !self.needs_path() && self.name_globs.is_empty()
    }

    /// Returns whether [`Exclude::matches_below`] examines more than the name.
    pub fn needs_path(&self) -> bool {
        !self.paths.is_empty() || !self.path_globs.is_empty()
    }

    /// Returns whether an entry displayed as `path` is excluded.
    pub fn matches(&self, path: &[u8]) -> bool {
        let mut starts = suffixes(path);
        starts.any(|suffix| {
            // Like GNU du: a literal pattern may start with the second of two slashes, a glob may
            // not.
            let after_slash = suffix.len() < path.len();
            self.names.contains(suffix)
                || self.paths.contains(suffix)
                || !(after_slash && suffix.starts_with(b"/")) && self.globs().any(|glob| glob.matches(suffix))
        })
    }

    /// Returns whether the entry `name` of the directory displayed as `dir` is excluded, given that
    /// the directory is not. `dir` is used only if [`Exclude::needs_path`]. `scratch` is a buffer
    /// for the joined path.
    pub fn matches_below(&self, dir: &[u8], name: &[u8], scratch: &mut Vec<u8>) -> bool {
        if self.names.contains(name) || self.name_globs.iter().any(|glob| glob.matches(name)) {
            return true;
        }
        if !self.needs_path() {
            return false;
        }
        scratch.clear();
        scratch.extend_from_slice(dir);
        if !dir.ends_with(b"/") {
            scratch.push(b'/');
        }
        scratch.extend_from_slice(name);
        self.matches(scratch)
    }

    fn globs(&self) -> impl Iterator<Item = &Glob> {
        self.name_globs.iter().chain(&self.path_globs)
    }
}

/// Returns the patterns in a file, with the syntax of [`Exclude::add_file`].
pub fn patterns(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&b| b == b'\n').filter_map(|line| {
        let len = line.iter().rposition(|&b| !glob::is_ascii_space(b)).map_or(0, |last| last + 1);
        line[..len].split(|&b| b == 0).next().filter(|_| len > 0)
    })
}

/// Returns `path`, and the suffix behind each of its slashes.
fn suffixes(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().filter(|&(_, &b)| b == b'/');
    std::iter::once(path).chain(slashes.map(|(at, _)| &path[at + 1..]))
}

fn has_wildcards(pattern: &[u8]) -> bool {
    let mut bytes = pattern.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'*' | b'?' | b'[' => return true,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
    false
}

/// Removes the backslashes that quote a character. A backslash at the end is kept.
fn unescape(pattern: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(pattern.len());
    let mut bytes = pattern.iter();
    while let Some(&byte) = bytes.next() {
        out.push(if byte == b'\\' { bytes.next().copied().unwrap_or(b'\\') } else { byte });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::process::Command;

    fn excluded(patterns: &[&str], path: &str) -> bool {
        let mut exclude = Exclude::new(Charset::Utf8, false);
        patterns.iter().for_each(|pattern| exclude.add(pattern.as_bytes()));
        exclude.matches(path.as_bytes())
    }

    #[test]
    fn a_pattern_matches_the_path_or_what_follows_a_slash() {
        for (pattern, path) in
            [("b", "a/b"), ("a/b", "x/a/b"), ("*.o", "x/.o"), ("a*b", "a/x/b"), ("?x", "/x")]
        {
            assert!(excluded(&[pattern], path), "{pattern} {path}");
        }
        for (pattern, path) in
            [("b", "ab"), ("a/", "x/a"), ("b", "b/a"), ("a?", "a"), ("A", "a"), ("*/", "a/b")]
        {
            assert!(!excluded(&[pattern], path), "{pattern} {path}");
        }
    }

    #[test]
    fn literals_are_unescaped_and_may_start_with_a_second_slash() {
        assert!(excluded(&["a\\*\\b"], "a*b"));
        assert!(excluded(&["a\\"], "a\\"));
        assert!(excluded(&["/b"], "a//b") && !excluded(&["/[b]"], "a//b"));
        assert!(excluded(&[""], "a/") && excluded(&["a/"], "a/") && !excluded(&[""], "a"));
    }

    #[test]
    fn lines_of_a_file_lose_white_space_at_the_end_only() {
        let mut exclude = Exclude::default();
        exclude.add_file(b"a b \t\n\n \x0b\n# c\nd\0e\n  f\r\nlast");
        let names = ["a b", "# c", "d", "  f", "last"];
        assert_eq!(exclude.names, names.iter().map(|name| name.as_bytes().to_vec()).collect());
        assert!(exclude.name_globs.is_empty() && !exclude.needs_path());
    }

    #[test]
    fn usual_patterns_need_no_path() {
        for pattern in ["a", "*.o", "*.[ch]", "core*", "*~", "*cache*", "\\*", "é*", "**a**"] {
            let mut exclude = Exclude::new(Charset::Utf8, false);
            exclude.add(pattern.as_bytes());
            assert!(!exclude.needs_path() && !exclude.is_empty(), "{pattern}");
        }
        for pattern in ["a/b", "a*b", "?", ".??*", "[!a]", "[^a]", "*[+-9]", "[a", "*\\/", "[\\/]"] {
            let mut exclude = Exclude::new(Charset::Utf8, false);
            exclude.add(pattern.as_bytes());
            assert!(exclude.needs_path() && !exclude.is_empty(), "{pattern}");
        }
        assert!(Exclude::default().is_empty() && !Exclude::default().needs_path());
    }

    #[test]
    fn hostile_patterns_terminate() {
        let name = "a".repeat(250);
        let mut exclude = Exclude::default();
        exclude.add("*a".repeat(60).as_bytes());
        exclude.add("*[a-z]?".repeat(40).as_bytes());
        assert!(exclude.matches(name.as_bytes()) && !exclude.matches(format!("{}b", &name[..50]).as_bytes()));
    }

    const PARTS: [&[u8]; 24] = [
        b"*",
        b"*",
        b"?",
        b"[",
        b"]",
        b"!",
        b"^",
        b"-",
        b"\\",
        b"a",
        b"b",
        b"/",
        b".",
        b"[:alpha:]",
        b"[:b",
        b"[=a=]",
        b"[.b.]",
        b"[a-b]",
        b"[!a]",
        b"[b.]",
        "é".as_bytes(),
        b"\xc3",
        b"\xa9",
        b"aa",
    ];

    fn pattern() -> impl Strategy<Value = Vec<u8>> {
        let parts = proptest::collection::vec(proptest::sample::select(PARTS.to_vec()), 1..7);
        parts.prop_map(|parts| parts.concat())
    }

    /// The paths that a walk of `dir` shows, given that `dir` itself is shown.
    fn shown(exclude: &Exclude, root: &Path, dir: &[u8], out: &mut BTreeSet<Vec<u8>>) {
        out.insert(dir.to_vec());
        for entry in fs::read_dir(root.join(OsStr::from_bytes(dir))).unwrap() {
            let entry = entry.unwrap();
            let path = [dir, b"/", entry.file_name().as_bytes()].concat();
            let below = exclude.matches_below(dir, entry.file_name().as_bytes(), &mut Vec::new());
            assert_eq!(below, exclude.matches(&path), "{} {exclude:?}", path.escape_ascii());
            match (below, entry.file_type().unwrap().is_dir()) {
                (true, _) => {}
                (false, true) => shown(exclude, root, &path, out),
                (false, false) => drop(out.insert(path)),
            }
        }
    }

    fn shown_by_du(du: &mut Command) -> BTreeSet<Vec<u8>> {
        let output = du.output().expect("du was found by the caller");
        let lines = output.stdout.split(|&b| b == 0).filter(|line| !line.is_empty());
        lines.map(|line| line.splitn(2, |&b| b == b'\t').nth(1).unwrap().to_vec()).collect()
    }

    fn small_tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let names: Vec<Vec<u8>> = (0..12 * 12)
            .map(|n| (n / 12, n % 12))
            .map(|(a, b)| {
                let parts: [&[u8]; 12] =
                    [b"a", b"b", b"]", b"[", b"-", b"\\", b".", b"!", b":", "é".as_bytes(), b"\xc3", b"\xff"];
                [parts[a], parts[b]].concat()
            })
            .filter(|name| name != b"..")
            .collect();
        for (n, name) in names.iter().enumerate() {
            let dir = root.path().join(if n % 3 == 0 { "." } else { "a" });
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join(OsStr::from_bytes(name)), "").unwrap();
        }
        for dir in ["b/a/b", "a/é/a", "b/b"] {
            fs::create_dir_all(root.path().join(dir)).unwrap();
        }
        root
    }

    proptest! {
        #![proptest_config(fathom_cases::property(300))]

        #[test]
        fn the_same_is_shown_as_by_gnu_du(patterns in proptest::collection::vec(pattern(), 1..3), utf8: bool, posix: bool) {
            if !Path::new("/usr/bin/du").exists() {
                println!("skipped: no /usr/bin/du");
                return Ok(());
            }
            thread_local!(static TREE: tempfile::TempDir = small_tree());
            let mut exclude = Exclude::new(if utf8 { Charset::Utf8 } else { Charset::Ascii }, posix);
            let mut du = Command::new("/usr/bin/du");
            du.env_clear().env("LC_ALL", if utf8 { "C.UTF-8" } else { "C" }).arg("-a0");
            if posix {
                du.env("POSIXLY_CORRECT", "1");
            }
            for pattern in &patterns {
                exclude.add(pattern);
                du.arg(OsStr::from_bytes(&[b"--exclude=", &pattern[..]].concat()));
            }
            let mut ours = BTreeSet::new();
            let theirs = TREE.with(|tree| {
                ["a", "b"].iter().for_each(|dir| {
                    if !exclude.matches(dir.as_bytes()) {
                        shown(&exclude, tree.path(), dir.as_bytes(), &mut ours);
                    }
                });
                shown_by_du(du.current_dir(tree.path()).args(["a", "b"]))
            });
            prop_assert_eq!(ours, theirs);
        }
    }
}
