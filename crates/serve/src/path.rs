//! Parses request targets into paths below the root, and formats paths as parts of URLs.
//!
//! An accepted target has one meaning only: no path is normalised, merged or decoded twice, so the
//! path that rules match is the path that is opened. Does not own: the file at the path, links that
//! lead out of the root (the flags of the open call refuse them), and the display of names, which
//! may hold any byte but NUL and `/`.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_encode};

/// The longest file name on Linux (`NAME_MAX`), in bytes.
pub const NAME_BYTES: usize = 255;
/// The longest path that the kernel accepts (`PATH_MAX` without the NUL), in bytes.
pub const PATH_BYTES: usize = 4095;

/// All characters but the unreserved ones of RFC 3986. `:` is encoded, so that a link to `a:b` is
/// not read as a URL with the scheme `a`.
pub(crate) const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const PATH: &AsciiSet = &NAME.remove(b'/');
/// The characters that are encoded in a query, which otherwise passes unchanged: those that would
/// end the query or the header.
const QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>');

/// The path of a request target.
///
/// ```
/// use fathom_serve::path::{PathError, RequestTarget};
///
/// let target = RequestTarget::parse(b"/a%20b/").unwrap();
/// assert_eq!((&target.path[..], target.is_dir), (&b"a b"[..], true));
/// assert_eq!(RequestTarget::parse(b"/a/../b"), Err(PathError::NotFound));
/// assert_eq!(RequestTarget::parse(b"/%zz"), Err(PathError::BadRequest));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTarget<'a> {
    /// The decoded path below the root, without a slash at either end; empty for the root itself.
    /// Its components are names of 1 to [`NAME_BYTES`] bytes, none of them `.` or `..`. It has no
    /// NUL and at most [`PATH_BYTES`] bytes.
    pub path: Cow<'a, [u8]>,
    /// Whether the target ends in a slash.
    pub is_dir: bool,
}

/// The reason why a target is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathError {
    /// 400: the target is malformed.
    BadRequest,
    /// 404: no file can have this path.
    NotFound,
}

impl<'a> RequestTarget<'a> {
    /// Parses the path of a target (origin-form or absolute-form, RFC 9112 section 3.2) without its
    /// query. Allocates only if a byte is percent-encoded.
    ///
    /// An empty component (`//x`) is not found: no directory has an entry with an empty name. A
    /// redirect to the path without it could be abused to lead to another host.
    ///
    /// # Errors
    /// [`PathError::BadRequest`] for `%` without two hexadecimal digits, NUL, a bare `?` or `#`,
    /// and a target that does not begin with a slash, such as `*`. [`PathError::NotFound`] for an
    /// encoded slash, empty components, `.`, `..`, and a name or path that is too long.
    pub fn parse(path: &'a [u8]) -> Result<Self, PathError> {
        let below =
            origin_form(path).and_then(|path| path.strip_prefix(b"/")).ok_or(PathError::BadRequest)?;
        if below.is_empty() {
            return Ok(Self { path: Cow::Borrowed(below), is_dir: true });
        }
        let file = below.strip_suffix(b"/");
        let path = decode(file.unwrap_or(below))?;
        if path.len() > PATH_BYTES || !path.split(|byte| *byte == b'/').all(is_name) {
            return Err(PathError::NotFound);
        }
        Ok(Self { path, is_dir: file.is_some() })
    }

    /// Returns the target without the first `bytes` bytes of its path.
    pub(crate) fn skip(self, bytes: usize) -> Self {
        let path = match self.path {
            path if bytes == 0 => path,
            Cow::Borrowed(path) => Cow::Borrowed(path.get(bytes..).unwrap_or_default()),
            Cow::Owned(path) => Cow::Owned(path.get(bytes..).unwrap_or_default().to_vec()),
        };
        Self { path, ..self }
    }
}

/// Returns the path of an absolute-form target; an origin-form target unchanged.
fn origin_form(target: &[u8]) -> Option<&[u8]> {
    if target.starts_with(b"/") {
        return Some(target);
    }
    let colon = target.iter().position(|byte| *byte == b':')?;
    let (scheme, rest) = target.split_at(colon);
    if !scheme.eq_ignore_ascii_case(b"http") && !scheme.eq_ignore_ascii_case(b"https") {
        return None;
    }
    let rest = rest.strip_prefix(b"://")?;
    match rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')) {
        Some(end) => rest.get(end..),
        None => Some(b"/"),
    }
}

/// Percent-decodes once. An encoded slash is refused, so that each slash of the result was a slash
/// of the target.
fn decode(path: &[u8]) -> Result<Cow<'_, [u8]>, PathError> {
    if !path.iter().any(|byte| matches!(byte, b'%' | b'?' | b'#' | 0)) {
        return Ok(Cow::Borrowed(path));
    }
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.iter();
    while let Some(&byte) = bytes.next() {
        let byte = match byte {
            b'%' => match (hex(bytes.next()), hex(bytes.next())) {
                (Some(high), Some(low)) => high << 4 | low,
                _ => return Err(PathError::BadRequest),
            },
            b'/' => {
                decoded.push(byte);
                continue;
            }
            b'?' | b'#' => return Err(PathError::BadRequest),
            byte => byte,
        };
        match byte {
            0 => return Err(PathError::BadRequest),
            b'/' => return Err(PathError::NotFound),
            byte => decoded.push(byte),
        }
    }
    Ok(Cow::Owned(decoded))
}

fn hex(digit: Option<&u8>) -> Option<u8> {
    let value = char::from(*digit?).to_digit(16)?;
    u8::try_from(value).ok()
}

/// Returns whether a decoded path can name a file below the root: names with one slash between
/// them, or the empty path.
#[must_use]
pub fn is_below(path: &[u8]) -> bool {
    let names = |path: &[u8]| path.split(|byte| *byte == b'/').all(is_name) && !path.contains(&0);
    path.is_empty() || (path.len() <= PATH_BYTES && names(path))
}

fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && name.len() <= NAME_BYTES
}

/// Returns whether the dotfile policy covers a decoded path: a component begins with a dot. A first
/// component `.well-known` (RFC 8615) is exempt, as it is meant to be requested.
///
/// ```
/// use fathom_serve::path::is_hidden;
///
/// assert!(is_hidden(b".git/config") && is_hidden(b"a/.b"));
/// assert!(!is_hidden(b".well-known/security.txt"));
/// ```
#[must_use]
pub fn is_hidden(path: &[u8]) -> bool {
    let mut names = path.split(|byte| *byte == b'/');
    let first = names.next().is_some_and(|name| name.starts_with(b".") && name != b".well-known");
    first || names.any(|name| name.starts_with(b"."))
}

/// Formats a decoded path as the path of a URL. The result begins with exactly one slash: `//host`
/// would name another host, and so would `/\host` to browsers.
///
/// ```
/// use fathom_serve::path::{encode, encode_name};
///
/// assert_eq!(encode(b"//a b/c"), "/a%20b/c");
/// assert_eq!(encode_name(b"a:b"), "a%3Ab");
/// ```
#[must_use]
pub fn encode(path: &[u8]) -> String {
    let start = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
    let path = path.get(start..).unwrap_or_default();
    let mut url = String::with_capacity(path.len() + 1);
    url.push('/');
    url.extend(percent_encode(path, PATH));
    url
}

/// Formats a name as a relative link. The result needs no escaping in an HTML attribute.
#[must_use]
pub fn encode_name(name: &[u8]) -> String {
    percent_encode(name, NAME).to_string()
}

/// Returns the value of `Location` for a redirect from the decoded path `from` to `to`, with the
/// request's query. Both paths are below the root; a directory's ends in a slash.
///
/// The reference is relative (RFC 3986, section 4.2), so that a prefix that a proxy has removed is
/// kept. It begins with an encoded name, `./` or `../`: it names neither a host nor a scheme.
///
/// ```
/// use fathom_serve::path::location;
///
/// assert_eq!(location(b"docs", b"docs/", Some(b"x=1")), "docs/?x=1");
/// assert_eq!(location(b"a/b", b"c", None), "../c");
/// ```
#[must_use]
pub fn location(from: &[u8], to: &[u8], query: Option<&[u8]>) -> String {
    let ((from, _), (dir, name)) = (parent(from), parent(to));
    let mut url = relative(from, dir) + &encode_name(name);
    if url.is_empty() {
        url.push_str("./");
    }
    if let Some(query) = query {
        url.push('?');
        url.extend(percent_encode(query, QUERY));
    }
    url
}

/// Splits `path` into its directory, without the last slash, and the name in it.
fn parent(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (path.get(..slash).unwrap_or_default(), path.get(slash + 1..).unwrap_or_default()),
        None => (b"", path),
    }
}

/// Returns the relative path from the directory `from` to the directory `to`: empty, or with a
/// slash at its end.
fn relative(from: &[u8], to: &[u8]) -> String {
    let names = |path: &[u8]| -> Vec<Vec<u8>> {
        path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
    };
    let (from, to) = (names(from), names(to));
    let shared = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let up = std::iter::repeat_n("../".to_owned(), from.len() - shared);
    up.chain(to.iter().skip(shared).map(|name| encode_name(name) + "/")).collect()
}

/// Joins `name` to the directory `path`, which is empty for the root.
pub(crate) fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    if path.is_empty() { name.to_vec() } else { [path, b"/", name].concat() }
}

#[cfg(test)]
mod tests;
