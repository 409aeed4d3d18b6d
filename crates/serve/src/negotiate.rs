//! What a client would rather have (RFC 9110, section 12): a content coding, and a listing for programs or for people.
//!
//! Does not own: which codings there are of a file, compression, `Vary`.

use std::cmp::Reverse;

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Coding {
    /// Brotli (RFC 7932).
    Br,
    /// Zstandard (RFC 8878).
    Zstd,
    /// gzip (RFC 1952).
    Gzip,
}

impl Coding {
    /// All of them, in the order they are preferred unless a server is told otherwise.
    pub const ALL: [Self; 3] = [Self::Br, Self::Zstd, Self::Gzip];

    /// Its name in headers and in the configuration.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Br => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// What a compressed file's name has behind that of the file it stands for.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Br => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }

    /// By its name, in any case; `x-gzip` is gzip (section 8.4.1.3).
    #[must_use]
    pub fn parse(token: &[u8]) -> Option<Self> {
        if token.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Self::Gzip);
        }
        Self::ALL.into_iter().find(|coding| token.eq_ignore_ascii_case(coding.token().as_bytes()))
    }
}

/// What `Accept-Encoding` says of the codings that there are (section 12.5.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Accepted {
    /// Thousandths, in the order of [`Coding::ALL`].
    weights: [u16; 3],
    /// Of a body as it is. 0 also where it is not mentioned: it may be sent then, but after any coding that is.
    identity: u16,
}

impl Accepted {
    /// Of a header; without one no coding is accepted, as old clients that send none know none. An element that is malformed
    /// is skipped; of a coding that is there twice the last one counts.
    #[must_use]
    pub fn parse(header: Option<&[u8]>) -> Self {
        let (mut weights, mut identity, mut others) = ([None; 3], None, None);
        for Element { name, weight } in elements(header.unwrap_or_default()) {
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

    /// The one of `available`, the best first, that the client likes most; `None` for the body as it is. That is also the
    /// answer when the client refuses it (`identity;q=0`) but nothing else is there: section 12.4.1 leaves it to the server,
    /// and a body is more use than 406.
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

/// Whether a client likes `application/json` more than `text/html` (section 12.5.1): as much is not enough, so a browser and
/// `*/*` get HTML.
#[must_use]
pub fn prefers_json(accept: Option<&[u8]>) -> bool {
    // By how exactly a range names the type: `*/*`, `application/*`, `application/json`.
    let (mut json, mut html) = ([None; 3], [None; 3]);
    for Element { name, weight } in elements(accept.unwrap_or_default()) {
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

/// Whether a client names HTML among what it likes, as browsers do that go to an address; `*/*` alone names nothing.
#[must_use]
pub fn prefers_html(accept: Option<&[u8]>) -> bool {
    let html = |name: &[u8]| {
        [&b"text/html"[..], b"application/xhtml+xml"].iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    elements(accept.unwrap_or_default()).any(|Element { name, weight }| weight > 0 && html(name))
}

/// An element of a list with weights.
struct Element<'a> {
    name: &'a [u8],
    /// Thousandths.
    weight: u16,
}

fn elements(list: &[u8]) -> impl Iterator<Item = Element<'_>> {
    split(list, b',').filter_map(element)
}

/// `None` for a malformed weight, and for parameters: we have nothing with them. `charset` is what clients add by habit.
fn element(text: &[u8]) -> Option<Element<'_>> {
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
    Some(Element { name, weight })
}

/// A `qvalue` (section 12.4.2): 0 to 1 with at most three digits.
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

/// The parts of a text, without the space around them; a separator in a quoted string is none.
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
