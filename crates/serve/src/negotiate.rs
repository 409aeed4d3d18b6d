//! Content negotiation (RFC 9110, section 12): the content coding of a response, and the form of a
//! listing.
//!
//! Does not own: which codings of a file exist, compression, `Vary`.

use std::cmp::Reverse;

use serde::Deserialize;

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "lowercase")]
pub enum Coding {
    /// Brotli (RFC 7932).
    Br,
    /// Zstandard (RFC 8878).
    Zstd,
    /// gzip (RFC 1952).
    Gzip,
}

impl Coding {
    /// All codings, in the default order of preference.
    pub const ALL: [Self; 3] = [Self::Br, Self::Zstd, Self::Gzip];

    /// Returns the name of the coding in headers and in the configuration.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Br => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// Returns the suffix that a compressed file's name has after the name of the original.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Br => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }

    /// Returns the coding with this name, in any case; `x-gzip` is gzip (section 8.4.1.3).
    #[must_use]
    pub fn parse(token: &[u8]) -> Option<Self> {
        if token.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Self::Gzip);
        }
        Self::ALL.into_iter().find(|coding| token.eq_ignore_ascii_case(coding.token().as_bytes()))
    }
}

/// The weights that `Accept-Encoding` gives to the supported codings (section 12.5.3).
///
/// ```
/// use fathom_serve::negotiate::{AcceptedCodings, Coding};
///
/// let accepted = AcceptedCodings::parse(Some(b"gzip, br;q=0.5, zstd;q=0"));
/// assert_eq!(accepted.best(&[Coding::Br, Coding::Zstd, Coding::Gzip]), Some(Coding::Gzip));
/// assert_eq!(accepted.best(&[Coding::Zstd]), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AcceptedCodings {
    /// Weights in thousandths, in the order of [`Coding::ALL`].
    weights: [u16; 3],
    /// The weight of `identity`, 0 if the header does not mention it: then any accepted coding is
    /// preferred, and an unencoded body is still allowed.
    identity: u16,
}

impl AcceptedCodings {
    /// Parses the header. Without a header no coding is accepted: clients that send none may know
    /// none. A malformed element is skipped; of a repeated coding the last element counts.
    #[must_use]
    pub fn parse(header: Option<&[u8]>) -> Self {
        let (mut weights, mut identity, mut others) = ([None; 3], None, None);
        for WeightedElement { name, weight } in elements(header.unwrap_or_default()) {
            if name == b"*" {
                others = Some(weight);
            } else if name.eq_ignore_ascii_case(b"identity") {
                identity = Some(weight);
            } else if let Some(coding) = Coding::parse(name) {
                weights[coding as usize] = Some(weight);
            }
        }
        let or_others = |weight: Option<u16>| weight.or(others).unwrap_or(0);
        Self { weights: weights.map(or_others), identity: or_others(identity) }
    }

    /// Returns the coding of `available`, in order of preference, with the highest weight; `None`
    /// for an unencoded body. That is also the result if the client refuses `identity` but accepts
    /// no available coding: section 12.4.1 leaves it to the server, and a body is more useful than
    /// a 406.
    #[must_use]
    pub fn best(&self, available: &[Coding]) -> Option<Coding> {
        let weight = |coding: Coding| self.weights[coding as usize];
        let wanted = available
            .iter()
            .copied()
            .filter(|coding| weight(*coding) > 0 && weight(*coding) >= self.identity);
        wanted.min_by_key(|coding| Reverse(weight(*coding)))
    }
}

/// Returns whether `application/json` has a higher weight than `text/html` (section 12.5.1). With
/// equal weights it is false, so a browser and `*/*` get HTML.
///
/// ```
/// use fathom_serve::negotiate::{prefers_html, prefers_json};
///
/// assert!(prefers_json(Some(b"application/json")) && !prefers_json(Some(b"*/*")));
/// assert!(prefers_html(Some(b"text/html, */*;q=0.1")) && !prefers_html(None));
/// ```
#[must_use]
pub fn prefers_json(accept: Option<&[u8]>) -> bool {
    // Indexed by the specificity of the media range: `*/*`, `application/*`, `application/json`.
    let (mut json, mut html) = ([None; 3], [None; 3]);
    for WeightedElement { name, weight } in elements(accept.unwrap_or_default()) {
        let is = |text: &str| name.eq_ignore_ascii_case(text.as_bytes());
        if is("application/json") {
            json[2] = Some(weight);
        } else if is("text/html") {
            html[2] = Some(weight);
        } else if is("application/*") {
            json[1] = Some(weight);
        } else if is("text/*") {
            html[1] = Some(weight);
        } else if is("*/*") {
            (json[0], html[0]) = (Some(weight), Some(weight));
        }
    }
    let exact = |[any, part, all]: [Option<u16>; 3]| all.or(part).or(any).unwrap_or(0);
    exact(json) > exact(html)
}

/// Returns whether the header names HTML with a weight above 0, as browsers do for navigation;
/// `*/*` alone does not.
#[must_use]
pub fn prefers_html(accept: Option<&[u8]>) -> bool {
    let html = |name: &[u8]| {
        [&b"text/html"[..], b"application/xhtml+xml"].iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    elements(accept.unwrap_or_default()).any(|WeightedElement { name, weight }| weight > 0 && html(name))
}

/// An element of a list with weights.
struct WeightedElement<'a> {
    name: &'a [u8],
    /// The weight in thousandths.
    weight: u16,
}

fn elements(list: &[u8]) -> impl Iterator<Item = WeightedElement<'_>> {
    split(list, b',').filter_map(element)
}

/// Parses an element; `None` for a malformed weight, or for parameters, none of which apply here.
/// `charset` is accepted, as clients add it by habit.
fn element(text: &[u8]) -> Option<WeightedElement<'_>> {
    let mut parts = split(text, b';');
    let name = parts.next()?;
    let mut weight = 1000;
    for part in parts {
        match part.split_at_checked(2) {
            Some((b"q=" | b"Q=", text)) => weight = thousandths(text)?,
            _ if part.get(..8).is_some_and(|name| name.eq_ignore_ascii_case(b"charset=")) => {}
            _ => return None,
        }
    }
    Some(WeightedElement { name, weight })
}

/// Parses a `qvalue` (section 12.4.2), 0 to 1 with at most three decimals, into thousandths.
fn thousandths(text: &[u8]) -> Option<u16> {
    let (whole, digits) = match text {
        [whole] => (whole, &[][..]),
        [whole, b'.', digits @ ..] if digits.len() <= 3 => (whole, digits),
        _ => return None,
    };
    let digit = |digit: Option<&u8>| match digit {
        Some(digit @ b'0'..=b'9') => Some(u16::from(digit - b'0')),
        Some(_) => None,
        None => Some(0),
    };
    let mut value = digit(Some(whole))?;
    for index in 0..3 {
        value = value.checked_mul(10)?.checked_add(digit(digits.get(index))?)?;
    }
    (value <= 1000).then_some(value)
}

/// Splits `text` at `separator`, except in quoted strings, and trims the parts.
fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    let is_separator = move |byte: &u8| {
        let plain = !std::mem::take(&mut escaped);
        match byte {
            b'\\' if quoted && plain => escaped = true,
            b'"' if plain => quoted = !quoted,
            _ => {}
        }
        *byte == separator && !quoted
    };
    text.split(is_separator).map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests;
