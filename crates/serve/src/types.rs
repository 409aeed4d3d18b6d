//! The media type of a file by its extension: the site's own table, then corrections to the common
//! table, then the common table; by its name if it has no extension. Also which types are worth
//! compressing.
//!
//! Does not own: detection by content, which would cost a read and make the type depend on uploaded
//! bytes.

mod table;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use fathom_text::glob::Glob;
use fathom_text::quote::Charset;
use http::HeaderValue;

use self::table::{COMPRESSIBLE, CORRECTIONS, TEXT_EXTENSIONS, TEXT_NAMES, TEXT_NAMES_WITH_SUFFIX};
use crate::config::SiteConfig;

const UNKNOWN: &str = "application/octet-stream";
const TEXT: &str = "text/plain";

/// A value of a site's configuration that is no media type or charset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidMediaType {
    /// The key of the field, with the extension if there is one: `types.md`.
    pub field: String,
    /// The value.
    pub value: String,
}

impl fmt::Display for InvalidMediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, value } = self;
        write!(f, "{field}: {value:?} does not name a media type such as \"text/plain\", or a charset")
    }
}

impl std::error::Error for InvalidMediaType {}

/// The media types of a site.
///
/// ```
/// use fathom_serve::config::SiteConfig;
/// use fathom_serve::types::MediaTypes;
///
/// let types = MediaTypes::new(&SiteConfig::default()).unwrap();
/// assert_eq!(types.of(b"/a.png"), "image/png");
/// assert_eq!(types.of(b"/a.unknown"), "application/octet-stream");
/// ```
#[derive(Clone, Debug)]
pub struct MediaTypes {
    /// `Content-Type` values by extension in lower case.
    known: HashMap<Vec<u8>, HeaderValue>,
    charset: String,
    compressible: Vec<Glob>,
}

impl MediaTypes {
    /// Compiles the types of `site`: its `types`, its `charset`, and the `types` of its `compress`.
    /// An extension may begin with a dot.
    ///
    /// # Errors
    /// [`InvalidMediaType`] for a value that is no media type (RFC 9110, section 8.3.1), type
    /// pattern, or charset.
    pub fn new(site: &SiteConfig) -> Result<Self, InvalidMediaType> {
        let bad =
            |field: &str, value: &str| InvalidMediaType { field: field.to_owned(), value: value.to_owned() };
        if !site.charset.is_empty() && !is_token(&site.charset) {
            return Err(bad("charset", &site.charset));
        }
        let pattern = |pattern: &String| {
            let lower = pattern.to_ascii_lowercase();
            is_media_type(&lower).then(|| Glob::new(lower.as_bytes(), Charset::Ascii, false))
        };
        let patterns = &site.compress.types;
        let compressible =
            patterns.iter().map(|text| pattern(text).ok_or_else(|| bad("compress.types", text)));
        let compressible = compressible.collect::<Result<_, _>>()?;
        let mut types = Self { known: HashMap::new(), charset: site.charset.clone(), compressible };
        let own = site.types.iter().map(|(extension, media_type)| (extension.as_str(), media_type.as_str()));
        let texts = TEXT_EXTENSIONS.iter().map(|extension| (*extension, TEXT));
        for (extension, media_type) in CORRECTIONS.iter().copied().chain(texts).chain(own) {
            types.add(extension, media_type).ok_or_else(|| bad(&format!("types.{extension}"), media_type))?;
        }
        Ok(types)
    }

    fn add(&mut self, extension: &str, media_type: &str) -> Option<()> {
        let header = is_media_type(essence(media_type)).then(|| self.header(media_type))??;
        let extension = extension.strip_prefix('.').unwrap_or(extension);
        self.known.insert(extension.to_ascii_lowercase().into_bytes(), header);
        Some(())
    }

    /// Returns the `Content-Type` of the file at `path`. An unknown extension is
    /// `application/octet-stream`, which browsers save.
    #[must_use]
    pub fn of(&self, path: &[u8]) -> HeaderValue {
        let extension = extension(path).map(lower);
        let known = extension.as_deref().and_then(|extension| self.known.get(extension).cloned());
        let guess = || {
            let extension = std::str::from_utf8(extension.as_deref()?).ok()?;
            self.header(mime_guess::from_ext(extension).first_raw()?)
        };
        let named = || is_text_name(path).then(|| self.header(TEXT))?;
        known.or_else(guess).or_else(named).unwrap_or(HeaderValue::from_static(UNKNOWN))
    }

    /// Returns whether a body of this `Content-Type` is likely to compress well.
    #[must_use]
    pub fn is_compressible(&self, content_type: &HeaderValue) -> bool {
        let Ok(content_type) = content_type.to_str() else { return false };
        let media_type = lower(essence(content_type).as_bytes());
        let structured = [&b"+json"[..], b"+xml"].iter().any(|end| media_type.ends_with(end));
        media_type.starts_with(b"text/")
            || structured
            || COMPRESSIBLE.iter().any(|known| known.as_bytes() == &*media_type)
            || self.compressible.iter().any(|glob| glob.matches(&media_type))
    }

    /// Returns the header value for a media type, with the charset if the type takes one and names
    /// none itself.
    fn header(&self, media_type: &str) -> Option<HeaderValue> {
        let lower = media_type.to_ascii_lowercase();
        if self.charset.is_empty() || !takes_charset(essence(&lower)) || lower.contains("charset=") {
            return HeaderValue::from_str(media_type).ok();
        }
        HeaderValue::from_str(&format!("{media_type}; charset={}", self.charset)).ok()
    }
}

/// Returns whether a type has a charset parameter: texts (RFC 6657), scripts under their old names
/// (RFC 9239) and XML (RFC 7303). JSON has none (RFC 8259, section 11), nor has YAML (RFC 9512) or
/// a binary type.
fn takes_charset(media_type: &str) -> bool {
    let known =
        ["application/ecmascript", "application/javascript", "application/xml", "application/xml-dtd"];
    media_type.starts_with("text/") || media_type.ends_with("+xml") || known.contains(&media_type)
}

/// Returns a media type without its parameters.
fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim_end()
}

/// Returns whether `text` is two tokens with a slash between them. `*` is a token.
fn is_media_type(text: &str) -> bool {
    text.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

/// Returns whether `text` is a token (RFC 9110, section 5.6.2).
fn is_token(text: &str) -> bool {
    let symbol = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(symbol)
}

/// Returns whether a file without an extension is text by the convention of its name.
fn is_text_name(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let is_one =
        |names: &[&str], name: &[u8]| names.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name));
    let before_dash = name.split(|byte| *byte == b'-').next().unwrap_or_default();
    is_one(TEXT_NAMES, name) || is_one(TEXT_NAMES_WITH_SUFFIX, before_dash) && !name.contains(&b'.')
}

/// Returns the text after the last dot of the file name, unless the name begins with that dot.
fn extension(path: &[u8]) -> Option<&[u8]> {
    let name = path.rsplit(|byte| *byte == b'/').next()?;
    let dot = name.iter().rposition(|byte| *byte == b'.').filter(|dot| *dot > 0)?;
    name.get(dot + 1..)
}

/// Returns `text` in lower case. Nearly all extensions and types are lower case already, and cost
/// no allocation.
fn lower(text: &[u8]) -> Cow<'_, [u8]> {
    if text.iter().any(u8::is_ascii_uppercase) { text.to_ascii_lowercase().into() } else { text.into() }
}

#[cfg(test)]
mod tests;
