//! Redirects and rewrites: the URL or file that replaces a path.
//!
//! A redirect never leaves the host that its target names: wildcards stand after the host, are
//! encoded, and the resulting path never begins with two slashes. A rewrite is applied once, so
//! none can loop. Does not own: access to the file that a rewrite names.

use http::{HeaderValue, StatusCode};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

use super::glob::Glob;
use crate::config;
use crate::error::Error;

/// Characters that are percent-encoded in the text of a target. `%` is not: it begins an escape
/// that the author wrote (RFC 3986, section 2).
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

/// A text with placeholders for the matches of wildcards.
#[derive(Clone, Debug)]
struct TargetTemplate(Vec<TemplatePart>);

#[derive(Clone, Debug)]
enum TemplatePart {
    Text(String),
    /// The number of a wildcard, from 0.
    Wildcard(usize),
}

impl TargetTemplate {
    /// Parses `text`, in which `$1` is the first of `wildcards` wildcards, and `$$` a dollar sign.
    fn new(text: &str, wildcards: usize) -> Result<Self, String> {
        if text.chars().any(char::is_control) {
            return Err("a target has no control characters".to_owned());
        }
        let mut pieces = Vec::new();
        let mut parts = text.split('$');
        pieces.push(TemplatePart::Text(parts.next().unwrap_or_default().to_owned()));
        while let Some(part) = parts.next() {
            let mut rest = part.chars();
            match rest.next().and_then(|digit| digit.to_digit(10)) {
                Some(number @ 1..) => {
                    let at = (number - 1) as usize;
                    if at >= wildcards {
                        return Err(format!("${number} is asked for, of {wildcards} wildcards"));
                    }
                    pieces.push(TemplatePart::Wildcard(at));
                    pieces.push(TemplatePart::Text(rest.as_str().to_owned()));
                }
                None if part.is_empty() => {
                    let after = parts.next().ok_or("'$' stands for itself only as '$$'")?;
                    pieces.push(TemplatePart::Text(format!("${after}")));
                }
                _ => return Err("'$' stands for itself only as '$$'".to_owned()),
            }
        }
        Ok(Self(pieces))
    }

    fn has_wildcards(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, TemplatePart::Wildcard(_)))
    }

    /// Returns the text before the first wildcard.
    fn literal_prefix(&self) -> String {
        let texts = self.0.iter().map_while(|piece| match piece {
            TemplatePart::Text(text) => Some(text.as_str()),
            TemplatePart::Wildcard(_) => None,
        });
        texts.collect()
    }

    /// Returns the text as bytes, with `found` for the wildcards.
    fn substitute(&self, found: &[&[u8]]) -> Vec<u8> {
        let pieces = self.0.iter().map(|piece| match piece {
            TemplatePart::Text(part) => part.as_bytes(),
            TemplatePart::Wildcard(at) => found.get(*at).copied().unwrap_or_default(),
        });
        pieces.collect::<Vec<_>>().concat()
    }

    /// Returns the text as a URL, with `found` for the wildcards, encoded so that no match ends the
    /// URL component that it stands in.
    fn substitute_url(&self, found: &[&[u8]]) -> Vec<u8> {
        let (mut url, mut is_query) = (Vec::new(), false);
        for piece in &self.0 {
            match piece {
                TemplatePart::Text(part) => {
                    is_query |= part.contains('?');
                    encode(part.as_bytes(), TEXT, &mut url);
                }
                TemplatePart::Wildcard(at) => {
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
pub struct Redirects(Vec<CompiledRedirect>);

#[derive(Clone, Debug)]
struct CompiledRedirect {
    from: Glob,
    to: TargetTemplate,
    /// Whether the target is on the same host.
    same_host: bool,
    status: StatusCode,
}

impl Redirects {
    /// Compiles the redirects of a site whose key is `key`.
    ///
    /// # Errors
    /// If a glob, a target or a status is invalid, or a wildcard could choose the host.
    pub fn new(redirects: &[config::RedirectRule], key: &str) -> Result<Self, Error> {
        let compile = |(at, redirect): (usize, &config::RedirectRule)| {
            let refused =
                |field: &str, cause| Error::configure(format!("{key}.redirects[{at}].{field}"), cause);
            let from = Glob::new(&redirect.from).map_err(|cause| refused("from", cause))?;
            let to =
                TargetTemplate::new(&redirect.to, from.wildcards()).map_err(|cause| refused("to", cause))?;
            let same_host = is_same_host(&to).map_err(|cause| refused("to", cause))?;
            let status = status(redirect.status).map_err(|cause| refused("status", cause))?;
            Ok(CompiledRedirect { from, to, same_host, status })
        };
        redirects.iter().enumerate().map(compile).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether the site has no redirects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the status and the `Location` for `path`, which is decoded and begins with `/`, by
    /// the first rule that matches. The request's `query` is passed on unchanged, after the query
    /// of the target if it has one.
    #[must_use]
    pub fn find(&self, path: &[u8], query: Option<&str>) -> Option<(StatusCode, HeaderValue)> {
        self.0.iter().find_map(|redirect| {
            let found = redirect.from.captures(path)?;
            let location = redirect.location(&found, query);
            Some((redirect.status, HeaderValue::from_bytes(&location).ok()?))
        })
    }
}

impl CompiledRedirect {
    fn location(&self, found: &[&[u8]], query: Option<&str>) -> Vec<u8> {
        let filled = self.to.substitute_url(found);
        let target = match self.same_host {
            // Browsers take the text after two slashes for a host.
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

/// Returns whether the target is a path; false for a URL with a fixed host.
fn is_same_host(to: &TargetTemplate) -> Result<bool, String> {
    let start = to.literal_prefix();
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
        Some(other) => Err(format!("{other} is not one of 301, 302, 303, 307 and 308")),
    }
}

/// The rewrites of a site.
#[derive(Clone, Debug, Default)]
pub struct Rewrites(Vec<(Glob, TargetTemplate)>);

impl Rewrites {
    /// Compiles the rewrites of a site whose key is `key`.
    ///
    /// # Errors
    /// If a glob or a target is invalid.
    pub fn new(rewrites: &[config::RewriteRule], key: &str) -> Result<Self, Error> {
        let compile = |(at, rewrite): (usize, &config::RewriteRule)| {
            let refused =
                |field: &str, cause| Error::configure(format!("{key}.rewrites[{at}].{field}"), cause);
            let from = Glob::new(&rewrite.from).map_err(|cause| refused("from", cause))?;
            let to =
                TargetTemplate::new(&rewrite.to, from.wildcards()).map_err(|cause| refused("to", cause))?;
            let start = to.literal_prefix();
            if !start.starts_with('/') || rewrite.to.contains('?') {
                return Err(refused("to", "a file's path begins with '/' and has no '?'".to_owned()));
            }
            Ok((from, to))
        };
        rewrites.iter().enumerate().map(compile).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether the site has no rewrites.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the path that replaces `path`, which is decoded and begins with `/`, by the first
    /// rule that matches. The result may have any bytes, and two slashes at its beginning: check it
    /// like a request path.
    #[must_use]
    pub fn find(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.0.iter().find_map(|(from, to)| Some(to.substitute(&from.captures(path)?)))
    }
}

#[cfg(test)]
mod tests;
