//! Globs of request paths. Becomes a regular expression, so that matching takes time linear in the path whatever the pattern.
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
//! A pattern without `/` is matched with what follows the last `/` of the path, any other with all of it. Each of the above except
//! the last is a wildcard, numbered in the order in which they begin. Does not own: what is done with a match.

use std::iter::Peekable;
use std::str::Chars;

use regex::bytes::Regex;

/// Bytes but a slash.
const WITHIN: &str = "((?-u:[^/])*)";
/// Any bytes.
const ACROSS: &str = "((?s-u:.)*)";
/// Any bytes up to a slash, or nothing.
const FOLDERS: &str = "(?:((?s-u:.)*)/)?";

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Glob {
    regex: Regex,
    /// What a match begins with; saves the expression for most paths.
    prefix: String,
    is_name: bool,
}

impl Glob {
    /// Compiles `pattern`. Unless it is of a name, it begins at the root, with or without a `/` there.
    ///
    /// # Errors
    /// In words, if a bracket or brace is not closed, a range is backwards, or it is empty or too large.
    pub fn new(pattern: &str) -> Result<Self, String> {
        if pattern.is_empty() {
            return Err("an empty pattern fits no path".to_owned());
        }
        let is_name = !pattern.contains('/');
        let rooted = is_name || pattern.starts_with('/') || pattern.starts_with("{/");
        let mut translation = Translation::default();
        translation.translate(&if rooted { pattern.to_owned() } else { format!("/{pattern}") })?;
        let Translation { expression, prefix, .. } = translation;
        let regex = Regex::new(&format!(r"\A(?:{expression})\z")).map_err(|_| "it is too large")?;
        Ok(Self { regex, prefix, is_name })
    }

    /// Whether it fits `path`, decoded and with a `/` at its beginning.
    #[must_use]
    pub fn matches(&self, path: &[u8]) -> bool {
        let subject = self.subject(path);
        subject.starts_with(self.prefix.as_bytes()) && self.regex.is_match(subject)
    }

    /// What each wildcard stands for if it fits `path`; nothing for one in an alternative that was not taken.
    #[must_use]
    pub fn captures<'p>(&self, path: &'p [u8]) -> Option<Vec<&'p [u8]>> {
        let subject = self.subject(path);
        if !subject.starts_with(self.prefix.as_bytes()) {
            return None;
        }
        let captures = self.regex.captures(subject)?;
        Some(captures.iter().skip(1).map(|group| group.map_or(&b""[..], |group| group.as_bytes())).collect())
    }

    /// How many wildcards there are.
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

/// A compiled pattern that also fits what is below the paths that it fits: `/private`, `/private/`
/// and `/private/**` are the same.
#[derive(Clone, Debug)]
pub struct Covers(Regex);

impl Covers {
    /// Compiles `pattern`, which is that of a [`Glob`].
    ///
    /// # Errors
    /// As for a glob.
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
        Regex::new(&expression).map(Self).map_err(|_| "it is too large".to_owned())
    }

    /// Whether it fits `path`, decoded and with a `/` at its beginning and none at its end, or a
    /// directory that it is in.
    #[must_use]
    pub fn matches(&self, path: &[u8]) -> bool {
        self.0.is_match(path)
    }
}

/// A pattern on its way to an expression.
#[derive(Default)]
struct Translation {
    expression: String,
    /// The characters before the first wildcard.
    prefix: String,
    wild: bool,
    /// Braces that are open.
    depth: usize,
    /// Whether a slash is the last that was translated.
    after_slash: bool,
}

impl Translation {
    fn translate(&mut self, pattern: &str) -> Result<(), String> {
        let mut rest = pattern.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '*' => self.stars(&mut rest),
                '?' => self.part("([^/])"),
                '[' => {
                    let class = class(&mut rest)?;
                    self.part(&class);
                }
                '{' => {
                    self.part("(");
                    self.depth += 1;
                }
                ',' if self.depth > 0 => self.part("|"),
                '}' => {
                    self.depth = self.depth.checked_sub(1).ok_or("a '}' closes nothing")?;
                    self.part(")");
                }
                '\\' => self.literal(rest.next().ok_or("nothing follows the last '\\'")?),
                c => self.literal(c),
            }
        }
        if self.depth > 0 { Err("a '{' is not closed".to_owned()) } else { Ok(()) }
    }

    fn stars(&mut self, rest: &mut Peekable<Chars<'_>>) {
        if rest.next_if_eq(&'*').is_none() {
            return self.part(WITHIN);
        }
        while rest.next_if_eq(&'*').is_some() {}
        let folders = self.after_slash && rest.next_if_eq(&'/').is_some();
        self.part(if folders { FOLDERS } else { ACROSS });
        self.after_slash = folders;
    }

    fn part(&mut self, expression: &str) {
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

/// What follows a `[`, up to its `]`, which counts as a member if it comes first.
fn class(rest: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    let not = rest.next_if(|c| matches!(c, '!' | '^')).is_some();
    let mut members = String::new();
    loop {
        let first = match rest.next() {
            Some(']') if !members.is_empty() => break,
            Some(first) => member(first, rest)?,
            None => return Err("a '[' is not closed".to_owned()),
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
    if c == '\\' { rest.next().ok_or_else(|| "a '[' is not closed".to_owned()) } else { Ok(c) }
}

/// The end of a range, if one follows; a `-` before the `]` is a member.
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
