//! A request's target as a path below the root, and paths as parts of a URL again.
//!
//! What is accepted here has one meaning only: nothing is normalised, merged or decoded twice, so the path that rules are
//! matched against is the path that is opened. Does not own: what is at the path, whether links lead out of the root (the
//! open call's flags see to that), how a name is shown in a log or a page (it may hold any byte but NUL and `/`).

use std::borrow::Cow;

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_encode};

/// Longest name of a file on Linux (`NAME_MAX`).
pub const NAME_BYTES: usize = 255;
/// Longest path that the kernel takes (`PATH_MAX`, less the NUL).
pub const PATH_BYTES: usize = 4095;

/// All but what RFC 3986 calls unreserved. That `:` is among them keeps a link to `a:b` from being one to the scheme `a`.
pub(crate) const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const PATH: &AsciiSet = &NAME.remove(b'/');
/// A query is passed on as it came; only what would end it, or a header, is encoded.
const QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>');

/// What a request's target names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// Decoded path below the root, without a slash at either end; empty for the root itself. Its components are names of
    /// 1 to [`NAME_BYTES`] bytes, none of them `.` or `..`; it has no NUL and at most [`PATH_BYTES`] bytes.
    pub path: Cow<'a, [u8]>,
    /// Whether the target ends in a slash.
    pub is_dir: bool,
}

/// Why a target names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is no path of a URL: 400.
    BadRequest,
    /// It is one, but there can be no such file: 404.
    NotFound,
}

impl<'a> Target<'a> {
    /// Reads the path of a target (origin-form or absolute-form, RFC 9112 section 3.2), without its query. Allocates only when
    /// something is percent-encoded.
    ///
    /// An empty component (`//x`) is not found, as it would be in no directory: a redirect to the path without it could be
    /// made to lead to another host.
    ///
    /// # Errors
    /// [`Refusal::BadRequest`] for `%` without two hexadecimal digits, NUL, a bare `?` or `#`, and what does not begin with a
    /// slash, as `*` does not; [`Refusal::NotFound`] for an encoded slash, empty components, `.`, `..`, and what is too long.
    pub fn parse(path: &'a [u8]) -> Result<Self, Refusal> {
        let below = origin_form(path).and_then(|path| path.strip_prefix(b"/")).ok_or(Refusal::BadRequest)?;
        if below.is_empty() {
            return Ok(Self { path: Cow::Borrowed(below), is_dir: true });
        }
        let file = below.strip_suffix(b"/");
        let path = decode(file.unwrap_or(below))?;
        if path.len() > PATH_BYTES || !path.split(|byte| *byte == b'/').all(is_name) {
            return Err(Refusal::NotFound);
        }
        Ok(Self { path, is_dir: file.is_some() })
    }

    /// Returns the same without the first `bytes` of the path.
    pub(crate) fn skip(self, bytes: usize) -> Self {
        let path = match self.path {
            path if bytes == 0 => path,
            Cow::Borrowed(path) => Cow::Borrowed(path.get(bytes..).unwrap_or_default()),
            Cow::Owned(path) => Cow::Owned(path.get(bytes..).unwrap_or_default().to_vec()),
        };
        Self { path, ..self }
    }
}

/// The path of an absolute-form target; an origin-form target as it is.
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

/// Decodes once. An encoded slash is refused here, so that each slash of the result was one of the target.
fn decode(path: &[u8]) -> Result<Cow<'_, [u8]>, Refusal> {
    if !path.iter().any(|byte| matches!(byte, b'%' | b'?' | b'#' | 0)) {
        return Ok(Cow::Borrowed(path));
    }
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.iter();
    while let Some(&byte) = bytes.next() {
        let byte = match byte {
            b'%' => match (hex(bytes.next()), hex(bytes.next())) {
                (Some(high), Some(low)) => high << 4 | low,
                _ => return Err(Refusal::BadRequest),
            },
            b'/' => {
                decoded.push(byte);
                continue;
            }
            b'?' | b'#' => return Err(Refusal::BadRequest),
            byte => byte,
        };
        match byte {
            0 => return Err(Refusal::BadRequest),
            b'/' => return Err(Refusal::NotFound),
            byte => decoded.push(byte),
        }
    }
    Ok(Cow::Owned(decoded))
}

fn hex(digit: Option<&u8>) -> Option<u8> {
    let value = char::from(*digit?).to_digit(16)?;
    u8::try_from(value).ok()
}

/// Whether a decoded path can be that of a file below the root: names of files with one slash between them, or nothing.
#[must_use]
pub fn is_below(path: &[u8]) -> bool {
    let names = |path: &[u8]| path.split(|byte| *byte == b'/').all(is_name) && !path.contains(&0);
    path.is_empty() || (path.len() <= PATH_BYTES && names(path))
}

fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && name.len() <= NAME_BYTES
}

/// Whether the dotfile policy covers a decoded path: a component begins with a dot, but for a first one that is `.well-known`
/// (RFC 8615), which is there to be asked for.
#[must_use]
pub fn hidden(path: &[u8]) -> bool {
    let mut names = path.split(|byte| *byte == b'/');
    let first = names.next().is_some_and(|name| name.starts_with(b".") && name != b".well-known");
    first || names.any(|name| name.starts_with(b"."))
}

/// A decoded path as the path of a URL. It begins with one slash whatever it is given: `//host` would be another host, and so
/// would `/\host` to browsers.
#[must_use]
pub fn encode(path: &[u8]) -> String {
    let start = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
    let path = path.get(start..).unwrap_or_default();
    let mut url = String::with_capacity(path.len() + 1);
    url.push('/');
    url.extend(percent_encode(path, PATH));
    url
}

/// A name as a relative link. It needs no further escaping in an attribute of HTML.
#[must_use]
pub fn encode_name(name: &[u8]) -> String {
    percent_encode(name, NAME).to_string()
}

/// The value of `Location` that leads from the decoded path `from` to `to`, with the request's
/// query. Both are below the root, with a slash at the end of a directory's.
///
/// The reference is relative (RFC 3986, section 4.2), so that a prefix stays that a proxy in front
/// took away. It begins with an encoded name, `./` or `../`: it names neither a host nor a scheme.
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

/// The directory of `path`, without its last slash, and the name in it.
fn parent(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (path.get(..slash).unwrap_or_default(), path.get(slash + 1..).unwrap_or_default()),
        None => (b"", path),
    }
}

/// The way from the directory `from` to the directory `to`: empty, or with a slash at its end.
fn relative(from: &[u8], to: &[u8]) -> String {
    let names = |path: &[u8]| -> Vec<Vec<u8>> {
        path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
    };
    let (from, to) = (names(from), names(to));
    let shared = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let up = std::iter::repeat_n("../".to_owned(), from.len() - shared);
    up.chain(to.iter().skip(shared).map(|name| encode_name(name) + "/")).collect()
}

#[cfg(test)]
mod tests;
