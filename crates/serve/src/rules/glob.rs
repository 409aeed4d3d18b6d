//! Globs of request paths. A glob is compiled to a regular expression, so matching takes linear
//! time for every pattern.
//!
//! | | matches |
//! |---|---|
//! | `*` | any bytes but `/` |
//! | `**` | any bytes; `**/` after a `/` also nothing |
//! | `?` | one character but `/` |
//! | `[a-z]`, `[!a-z]` | one character of these, or none of these; never `/` |
//! | `{a,b}` | one of these |
//! | `\x` | x itself |
//!
//! A pattern without `/` is matched against the text after the last `/` of the path, any other
//! against the whole path. Each form above except the last is a wildcard, numbered in the order in
//! which they begin. Does not own: the use of a match.

use std::iter::Peekable;
use std::str::Chars;

use regex::bytes::Regex;

/// `*`: any bytes but a slash.
const WITHIN: &str = "((?-u:[^/])*)";
/// `**`: any bytes.
const ACROSS: &str = "((?s-u:.)*)";
/// `**/`: any bytes up to a slash, or nothing.
const DIRECTORIES: &str = "(?:((?s-u:.)*)/)?";

/// A compiled pattern.
///
/// ```
/// use fathom_serve::rules::glob::Glob;
///
/// let name = Glob::new("*.{jpg,png}").unwrap();
/// assert!(name.matches(b"/a/b.png") && !name.matches(b"/a/b.gif"));
/// let path = Glob::new("/old/**").unwrap();
/// assert_eq!(path.captures(b"/old/a/b"), Some(vec![&b"a/b"[..]]));
/// assert!(Glob::new("[a").is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Glob {
    regex: Regex,
    /// The literal prefix of each match, which is compared before the expression is evaluated.
    prefix: String,
    is_name: bool,
}

impl Glob {
    /// Compiles `pattern`. A pattern with a `/` is anchored at the root, with or without a leading
    /// `/`.
    ///
    /// # Errors
    /// A sentence, if a bracket or brace is not closed, a range is backwards, or the pattern is
    /// empty or too large.
    pub fn new(pattern: &str) -> Result<Self, String> {
        if pattern.is_empty() {
            return Err("the pattern is empty".to_owned());
        }
        let is_name = !pattern.contains('/');
        let rooted = is_name || pattern.starts_with('/') || pattern.starts_with("{/");
        let mut translation = Translation::default();
        translation.translate(&if rooted { pattern.to_owned() } else { format!("/{pattern}") })?;
        let Translation { expression, prefix, .. } = translation;
        let regex = Regex::new(&format!(r"\A(?:{expression})\z")).map_err(|_| "the pattern is too large")?;
        Ok(Self { regex, prefix, is_name })
    }

    /// Returns whether the glob matches `path`, which is decoded and begins with `/`.
    #[must_use]
    pub fn matches(&self, path: &[u8]) -> bool {
        let subject = self.subject(path);
        subject.starts_with(self.prefix.as_bytes()) && self.regex.is_match(subject)
    }

    /// Returns the text of each wildcard if the glob matches `path`; empty for a wildcard in an
    /// alternative that was not taken.
    #[must_use]
    pub fn captures<'p>(&self, path: &'p [u8]) -> Option<Vec<&'p [u8]>> {
        let subject = self.subject(path);
        if !subject.starts_with(self.prefix.as_bytes()) {
            return None;
        }
        let captures = self.regex.captures(subject)?;
        Some(captures.iter().skip(1).map(|group| group.map_or(&b""[..], |group| group.as_bytes())).collect())
    }

    /// Returns the number of wildcards.
    #[must_use]
    pub fn wildcards(&self) -> usize {
        self.regex.captures_len() - 1
    }

    fn subject<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        match self.is_name {
            true => path.rsplit(|byte| *byte == b'/').next().unwrap_or_default(),
            false => path,
        }
    }
}

/// A compiled pattern that also matches all paths below a match: `/private`, `/private/` and
/// `/private/**` are equivalent.
///
/// ```
/// use fathom_serve::rules::glob::SubtreeGlob;
///
/// let private = SubtreeGlob::new("/private").unwrap();
/// assert!(private.matches(b"/private/a/b") && !private.matches(b"/private2"));
/// ```
#[derive(Clone, Debug)]
pub struct SubtreeGlob(Regex);

impl SubtreeGlob {
    /// Compiles `pattern`, which has the syntax of a [`Glob`].
    ///
    /// # Errors
    /// As [`Glob::new`].
    pub fn new(pattern: &str) -> Result<Self, String> {
        Glob::new(pattern)?;
        let is_name = !pattern.contains('/');
        let pattern = pattern.strip_suffix("/**").unwrap_or(pattern);
        let pattern = pattern.strip_suffix('/').unwrap_or(pattern);
        let rooted = is_name || pattern.is_empty() || pattern.starts_with('/') || pattern.starts_with("{/");
        let mut translation = Translation::default();
        translation.translate(&if rooted { pattern.to_owned() } else { format!("/{pattern}") })?;
        let above = if is_name { r"(?s-u:.)*/" } else { "" };
        let expression = format!(r"\A{above}(?:{})(?:/(?s-u:.)*)?\z", translation.expression);
        Regex::new(&expression).map(Self).map_err(|_| "the pattern is too large".to_owned())
    }

    /// Returns whether the pattern matches `path`, which is decoded, begins with `/` and does not
    /// end with one, or a directory above it.
    #[must_use]
    pub fn matches(&self, path: &[u8]) -> bool {
        self.0.is_match(path)
    }
}

/// The state of translating a pattern to a regular expression.
#[derive(Default)]
struct Translation {
    expression: String,
    /// The characters before the first wildcard.
    prefix: String,
    wild: bool,
    /// The number of open braces.
    depth: usize,
    /// Whether the last translated character is a slash.
    after_slash: bool,
}

impl Translation {
    fn translate(&mut self, pattern: &str) -> Result<(), String> {
        let mut rest = pattern.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '*' => self.stars(&mut rest),
                '?' => self.push_wildcard("([^/])"),
                '[' => {
                    let class = class(&mut rest)?;
                    self.push_wildcard(&class);
                }
                '{' => {
                    self.push_wildcard("(");
                    self.depth += 1;
                }
                ',' if self.depth > 0 => self.push_wildcard("|"),
                '}' => {
                    self.depth = self.depth.checked_sub(1).ok_or("unmatched '}'")?;
                    self.push_wildcard(")");
                }
                '\\' => self.literal(rest.next().ok_or("nothing follows the last '\\'")?),
                c => self.literal(c),
            }
        }
        if self.depth > 0 { Err("unclosed '{'".to_owned()) } else { Ok(()) }
    }

    fn stars(&mut self, rest: &mut Peekable<Chars<'_>>) {
        if rest.next_if_eq(&'*').is_none() {
            return self.push_wildcard(WITHIN);
        }
        while rest.next_if_eq(&'*').is_some() {}
        let directories = self.after_slash && rest.next_if_eq(&'/').is_some();
        self.push_wildcard(if directories { DIRECTORIES } else { ACROSS });
        self.after_slash = directories;
    }

    fn push_wildcard(&mut self, expression: &str) {
        self.wild = true;
        self.after_slash = false;
        self.expression.push_str(expression);
    }

    fn literal(&mut self, c: char) {
        self.expression.push_str(&escaped(c));
        self.after_slash = c == '/';
        if !self.wild {
            self.prefix.push(c);
        }
    }
}

fn escaped(c: char) -> String {
    format!("\\x{{{:x}}}", u32::from(c))
}

/// Translates the class after a `[`, up to its `]`, which is a member if it comes first.
fn class(rest: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    let not = rest.next_if(|c| matches!(c, '!' | '^')).is_some();
    let mut members = String::new();
    loop {
        let first = match rest.next() {
            Some(']') if !members.is_empty() => break,
            Some(first) => member(first, rest)?,
            None => return Err("unclosed '['".to_owned()),
        };
        members.push_str(&escaped(first));
        if let Some(last) = range_end(rest)? {
            if last < first {
                return Err(format!("the range {first}-{last} is backwards"));
            }
            members.push('-');
            members.push_str(&escaped(last));
        }
    }
    Ok(if not { format!("([^{members}/])") } else { format!("([[{members}]&&[^/]])") })
}

fn member(c: char, rest: &mut Peekable<Chars<'_>>) -> Result<char, String> {
    if c == '\\' { rest.next().ok_or_else(|| "unclosed '['".to_owned()) } else { Ok(c) }
}

/// Returns the end of a range, if one follows; a `-` before the `]` is a member.
fn range_end(rest: &mut Peekable<Chars<'_>>) -> Result<Option<char>, String> {
    let mut ahead = rest.clone();
    match (ahead.next(), ahead.next()) {
        (Some('-'), Some(last)) if last != ']' => {
            *rest = ahead;
            member(last, rest).map(Some)
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests;
