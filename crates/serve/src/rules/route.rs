//! Redirects and rewrites: the URL or file that replaces a path.
//!
//! A redirect never leaves the host that its target names: wildcards stand after the host, are
//! encoded, and the resulting path never begins with two slashes. A rewrite is applied once, so
//! none can loop. Does not own: access to the file that a rewrite names.

use http::{HeaderValue, StatusCode};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};
use regex::bytes::{Regex, RegexBuilder};

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

/// The most bytes of a compiled regular expression.
const REGEX_BYTES_MAX: usize = 1 << 20;

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
    from: PathPattern,
    query: Option<Regex>,
    status: StatusCode,
    /// The target; `None` for [`StatusCode::GONE`].
    to: Option<RedirectTarget>,
}

/// The paths that a redirect is for.
#[derive(Clone, Debug)]
enum PathPattern {
    Glob(Glob),
    /// An expression for the part of the path behind a text.
    Regex(String, Regex),
}

#[derive(Clone, Debug)]
struct RedirectTarget {
    template: TargetTemplate,
    /// Whether the target is on the same host.
    same_host: bool,
    /// Whether the query of the request is appended.
    keeps_query: bool,
}

impl PathPattern {
    /// Returns the matches of the wildcards or groups.
    fn captures<'p>(&self, path: &'p [u8]) -> Option<Vec<&'p [u8]>> {
        match self {
            Self::Glob(glob) => glob.captures(path),
            Self::Regex(below, regex) => groups(regex, path.strip_prefix(below.as_bytes())?),
        }
    }

    /// Returns the number of wildcards or groups.
    fn wildcards(&self) -> usize {
        match self {
            Self::Glob(glob) => glob.wildcards(),
            Self::Regex(_, regex) => regex.captures_len() - 1,
        }
    }
}

/// Compiles a regular expression of a rule. Matching takes time in proportion to the text.
fn compile_regex(text: &str) -> Result<Regex, String> {
    let compiled = RegexBuilder::new(text).size_limit(REGEX_BYTES_MAX).build();
    compiled.map_err(|error| format!("invalid regular expression: {}", one_line(&error.to_string())))
}

/// Returns the last line of a message, which has the cause.
fn one_line(message: &str) -> &str {
    message.trim_end().lines().last().unwrap_or_default().trim_start_matches("error: ")
}

/// Returns the texts of the groups of an expression that is found in `text`.
fn groups<'t>(regex: &Regex, text: &'t [u8]) -> Option<Vec<&'t [u8]>> {
    let found = regex.captures(text)?;
    Some(found.iter().skip(1).map(|group| group.map_or(&b""[..], |group| group.as_bytes())).collect())
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
            let lacking = |what: &'static str| Error::incomplete(format!("{key}.redirects[{at}]"), what);
            let from = match (&redirect.from, &redirect.from_regex) {
                (Some(glob), None) => {
                    PathPattern::Glob(Glob::new(glob).map_err(|cause| refused("from", cause))?)
                }
                (None, Some(regex)) => {
                    let regex = compile_regex(regex).map_err(|cause| refused("from-regex", cause))?;
                    PathPattern::Regex(redirect.below.clone(), regex)
                }
                (None, None) => return Err(lacking("missing: 'from' or 'from-regex'")),
                (Some(_), Some(_)) => {
                    return Err(refused("from-regex", "a redirect has either this or 'from'".to_owned()));
                }
            };
            let query = redirect.query_regex.as_deref().map(compile_regex).transpose();
            let query = query.map_err(|cause| refused("query-regex", cause))?;
            let status = status(redirect.status).map_err(|cause| refused("status", cause))?;
            let groups = from.wildcards() + query.as_ref().map_or(0, |query| query.captures_len() - 1);
            let to = match (&redirect.to, status == StatusCode::GONE) {
                (Some(to), false) => {
                    Some(redirect_target(to, groups, query.is_none()).map_err(|cause| refused("to", cause))?)
                }
                (None, true) => None,
                (Some(_), true) => return Err(refused("to", "status 410 has no target".to_owned())),
                (None, false) => return Err(lacking("missing: to = \"/new\"")),
            };
            Ok(CompiledRedirect { from, query, status, to })
        };
        redirects.iter().enumerate().map(compile).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether the site has no redirects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the status and the `Location` for `path`, which is decoded and begins with `/`, by
    /// the first rule that matches; 410 has no `Location`. The request's `query` is passed on
    /// unchanged, after the query of the target if it has one, unless the rule matches a query.
    #[must_use]
    pub fn find(&self, path: &[u8], query: Option<&str>) -> Option<(StatusCode, Option<HeaderValue>)> {
        self.0.iter().find_map(|redirect| redirect.find(path, query))
    }
}

impl CompiledRedirect {
    fn find(&self, path: &[u8], query: Option<&str>) -> Option<(StatusCode, Option<HeaderValue>)> {
        let mut found = self.from.captures(path)?;
        let decoded: Vec<u8> = percent_decode_str(query.unwrap_or_default()).collect();
        if let Some(regex) = &self.query {
            found.extend(groups(regex, &decoded)?);
        }
        let Some(to) = &self.to else { return Some((self.status, None)) };
        let location = HeaderValue::from_bytes(&to.location(&found, query)).ok()?;
        Some((self.status, Some(location)))
    }
}

/// Compiles a target with so many wildcards.
fn redirect_target(to: &str, wildcards: usize, keeps_query: bool) -> Result<RedirectTarget, String> {
    let template = TargetTemplate::new(to, wildcards)?;
    let same_host = is_same_host(&template)?;
    Ok(RedirectTarget { template, same_host, keeps_query })
}

impl RedirectTarget {
    fn location(&self, found: &[&[u8]], query: Option<&str>) -> Vec<u8> {
        let filled = self.template.substitute_url(found);
        let target = match self.same_host {
            // Browsers take the text after two slashes for a host.
            true => &filled[filled.iter().take_while(|byte| **byte == b'/').count().saturating_sub(1)..],
            false => &filled[..],
        };
        let end = target.iter().position(|byte| *byte == b'#').unwrap_or(target.len());
        let (address, fragment) = target.split_at(end);
        let mut location = address.to_vec();
        if let Some(query) = query.filter(|query| self.keeps_query && !query.is_empty()) {
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
        Some(410) => Ok(StatusCode::GONE),
        Some(other) => Err(format!("{other} is not one of 301, 302, 303, 307, 308 and 410")),
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
