//! Redirects and rewrites: which other address or file a path stands for.
//!
//! A redirect never leaves the host that its target names: wildcards stand behind the host, are encoded, and a path never begins with two
//! slashes. A rewrite is applied once, so none can loop. Does not own: whether the file that a rewrite names may be served.

use http::{HeaderValue, StatusCode};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

use super::glob::Glob;
use crate::config;
use crate::error::Error;

/// What no URL has as it is; `%` begins an escape that its author wrote (RFC 3986, section 2).
const TEXT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');
/// Characters that are percent-encoded in every part of a decoded path.
const PATH: &AsciiSet = &TEXT.add(b'#').add(b'%').add(b'?').add(b'[').add(b']');
/// Characters that are percent-encoded in every name and value of a query
/// (application/x-www-form-urlencoded: URL standard, section 5.1).
const VALUE: &AsciiSet = &PATH.add(b'&').add(b'+').add(b';').add(b'=');
/// Characters that are percent-encoded in every query.
const QUERY: &AsciiSet = &TEXT.add(b'#');

/// A text with places for what wildcards stand for.
#[derive(Clone, Debug)]
struct Template(Vec<Piece>);

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    /// The number of a wildcard, from 0.
    Wildcard(usize),
}

impl Template {
    /// Reads `text`, in which `$1` is the first of `wildcards`, and `$$` a dollar sign.
    fn new(text: &str, wildcards: usize) -> Result<Self, String> {
        if text.chars().any(char::is_control) {
            return Err("a target has no control characters".to_owned());
        }
        let mut pieces = Vec::new();
        let mut parts = text.split('$');
        pieces.push(Piece::Text(parts.next().unwrap_or_default().to_owned()));
        while let Some(part) = parts.next() {
            let mut rest = part.chars();
            match rest.next().and_then(|digit| digit.to_digit(10)) {
                Some(number @ 1..) => {
                    let at = (number - 1) as usize;
                    if at >= wildcards {
                        return Err(format!("${number} is asked for, of {wildcards} wildcards"));
                    }
                    pieces.push(Piece::Wildcard(at));
                    pieces.push(Piece::Text(rest.as_str().to_owned()));
                }
                None if part.is_empty() => {
                    let after = parts.next().ok_or("'$' stands for itself only as '$$'")?;
                    pieces.push(Piece::Text(format!("${after}")));
                }
                _ => return Err("'$' stands for itself only as '$$'".to_owned()),
            }
        }
        Ok(Self(pieces))
    }

    fn has_wildcards(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Wildcard(_)))
    }

    /// The text before the first wildcard.
    fn start(&self) -> String {
        let texts = self.0.iter().map_while(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            Piece::Wildcard(_) => None,
        });
        texts.collect()
    }

    /// The text as bytes, with `found` in its places.
    fn fill(&self, found: &[&[u8]]) -> Vec<u8> {
        let pieces = self.0.iter().map(|piece| match piece {
            Piece::Text(part) => part.as_bytes(),
            Piece::Wildcard(at) => found.get(*at).copied().unwrap_or_default(),
        });
        pieces.collect::<Vec<_>>().concat()
    }

    /// The text as a URL, with `found` in its places, encoded so that none of it ends the part that
    /// it stands in.
    fn fill_url(&self, found: &[&[u8]]) -> Vec<u8> {
        let (mut url, mut is_query) = (Vec::new(), false);
        for piece in &self.0 {
            match piece {
                Piece::Text(part) => {
                    is_query |= part.contains('?');
                    encode(part.as_bytes(), TEXT, &mut url);
                }
                Piece::Wildcard(at) => {
                    let set = if is_query { VALUE } else { PATH };
                    encode(found.get(*at).copied().unwrap_or_default(), set, &mut url);
                }
            }
        }
        url
    }
}

/// The redirects of a site.
#[derive(Clone, Debug, Default)]
pub struct Redirects(Vec<Redirect>);

#[derive(Clone, Debug)]
struct Redirect {
    from: Glob,
    to: Template,
    /// Whether the target is on the same host.
    local: bool,
    status: StatusCode,
}

impl Redirects {
    /// Compiles those of a site whose key is `key`.
    ///
    /// # Errors
    /// If a glob, a target or a status is none, or a wildcard could choose the host.
    pub fn new(redirects: &[config::Redirect], key: &str) -> Result<Self, Error> {
        let compile = |(at, redirect): (usize, &config::Redirect)| {
            let refused =
                |field: &str, cause| Error::configure(format!("{key}.redirects[{at}].{field}"), cause);
            let from = Glob::new(&redirect.from).map_err(|cause| refused("from", cause))?;
            let to = Template::new(&redirect.to, from.wildcards()).map_err(|cause| refused("to", cause))?;
            let local = is_local(&to).map_err(|cause| refused("to", cause))?;
            let status = status(redirect.status).map_err(|cause| refused("status", cause))?;
            Ok(Redirect { from, to, local, status })
        };
        redirects.iter().enumerate().map(compile).collect::<Result<_, _>>().map(Self)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The status and the `Location` for `path`, decoded and with a `/` at its beginning, by the first rule that fits it. The
    /// request's `query`, as it came, goes on; behind that of the target if it has one.
    #[must_use]
    pub fn find(&self, path: &[u8], query: Option<&str>) -> Option<(StatusCode, HeaderValue)> {
        self.0.iter().find_map(|redirect| {
            let found = redirect.from.captures(path)?;
            let location = redirect.location(&found, query);
            Some((redirect.status, HeaderValue::from_bytes(&location).ok()?))
        })
    }
}

impl Redirect {
    fn location(&self, found: &[&[u8]], query: Option<&str>) -> Vec<u8> {
        let filled = self.to.fill_url(found);
        let target = match self.local {
            // Browsers take what follows two slashes for a host.
            true => &filled[filled.iter().take_while(|byte| **byte == b'/').count().saturating_sub(1)..],
            false => &filled[..],
        };
        let end = target.iter().position(|byte| *byte == b'#').unwrap_or(target.len());
        let (address, fragment) = target.split_at(end);
        let mut location = address.to_vec();
        if let Some(query) = query.filter(|query| !query.is_empty()) {
            location.push(if address.contains(&b'?') { b'&' } else { b'?' });
            encode(query.as_bytes(), QUERY, &mut location);
        }
        location.extend_from_slice(fragment);
        location
    }
}

fn encode(bytes: &[u8], set: &'static AsciiSet, out: &mut Vec<u8>) {
    out.extend(percent_encode(bytes, set).flat_map(str::bytes));
}

/// Whether the target is a path, and not an address whose host is settled.
fn is_local(to: &Template) -> Result<bool, String> {
    let start = to.start();
    let rest = ["https://", "http://", "//"].iter().find_map(|scheme| start.strip_prefix(scheme));
    let Some(rest) = rest else {
        return if start.starts_with('/') {
            Ok(true)
        } else {
            Err("a target begins with '/', 'http://' or 'https://'".to_owned())
        };
    };
    match rest.find(['/', '?', '#']) {
        Some(0) => Err("the target has no host".to_owned()),
        None if rest.is_empty() || to.has_wildcards() => {
            Err("a wildcard must not choose the host".to_owned())
        }
        _ => Ok(false),
    }
}

fn status(number: Option<u16>) -> Result<StatusCode, String> {
    match number {
        None | Some(308) => Ok(StatusCode::PERMANENT_REDIRECT),
        Some(301) => Ok(StatusCode::MOVED_PERMANENTLY),
        Some(302) => Ok(StatusCode::FOUND),
        Some(303) => Ok(StatusCode::SEE_OTHER),
        Some(307) => Ok(StatusCode::TEMPORARY_REDIRECT),
        Some(other) => Err(format!("{other} is none of 301, 302, 303, 307 and 308")),
    }
}

/// The rewrites of a site.
#[derive(Clone, Debug, Default)]
pub struct Rewrites(Vec<(Glob, Template)>);

impl Rewrites {
    /// Compiles those of a site whose key is `key`.
    ///
    /// # Errors
    /// If a glob or a target is none.
    pub fn new(rewrites: &[config::Rewrite], key: &str) -> Result<Self, Error> {
        let compile = |(at, rewrite): (usize, &config::Rewrite)| {
            let refused =
                |field: &str, cause| Error::configure(format!("{key}.rewrites[{at}].{field}"), cause);
            let from = Glob::new(&rewrite.from).map_err(|cause| refused("from", cause))?;
            let to = Template::new(&rewrite.to, from.wildcards()).map_err(|cause| refused("to", cause))?;
            let start = to.start();
            if !start.starts_with('/') || rewrite.to.contains('?') {
                return Err(refused("to", "a file's path begins with '/' and has no '?'".to_owned()));
            }
            Ok((from, to))
        };
        rewrites.iter().enumerate().map(compile).collect::<Result<_, _>>().map(Self)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The decoded path that the first rule which fits `path`, decoded and with a `/` at its beginning, puts in its place. It may
    /// have any bytes, and two slashes at its beginning: it has to be checked like one that came with a request.
    #[must_use]
    pub fn find(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.0.iter().find_map(|(from, to)| Some(to.fill(&from.captures(path)?)))
    }
}

#[cfg(test)]
mod tests;
