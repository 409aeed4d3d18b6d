//! Values of the configuration that are one of some words, which files, the command line and the
//! help spell the same.
//!
//! Does not own: the types of I/O models, codings and archive formats, which others use as well.

use fathom_io::{Model, Use};
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use crate::archive::format::ArchiveFormat;
use crate::negotiate::Coding;

/// A value that is one of some words.
///
/// ```
/// use fathom_serve::config::words::{Etag, Word};
///
/// assert_eq!(Etag::from_word("inode"), Some(Etag::Inode));
/// assert_eq!(Etag::WORDS, ["mtime", "inode"]);
/// ```
pub trait Word: Copy + 'static {
    /// The words, in the order of help texts and messages.
    const WORDS: &'static [&'static str];

    /// Returns the value of `word`.
    #[must_use]
    fn from_word(word: &str) -> Option<Self>;
}

impl Word for Model {
    const WORDS: &'static [&'static str] = &Self::names_with::<{ Self::count_with(Use::Serve) }>(Use::Serve);

    fn from_word(word: &str) -> Option<Self> {
        Self::parse(word, Use::Serve).ok()
    }
}

impl Word for ArchiveFormat {
    const WORDS: &'static [&'static str] = &["tar.zst", "tar.gz", "zip"];

    fn from_word(word: &str) -> Option<Self> {
        Self::parse(word)
    }
}

impl Word for Coding {
    const WORDS: &'static [&'static str] = &["br", "zstd", "gzip"];

    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|coding| coding.token() == word)
    }
}

/// Defines a type with a value for each word.
macro_rules! words {
    ($($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $value:ident = $word:literal,)* })*) => {
        $($(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
        pub enum $name {
            $($(#[$what])* #[serde(rename = $word)] $value,)*
        }

        impl Word for $name {
            const WORDS: &'static [&'static str] = &[$($word),*];

            fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$value),)*
                    _ => None,
                }
            }
        })*
    };
}

words! {
    /// The clients to which large files are sent with sendfile(2).
    SendfilePolicy {
        /// Clients on other machines.
        Remote = "remote",
        /// All clients.
        Always = "always",
        /// No client.
        Never = "never",
    }

    /// The symbolic links that are followed below a root.
    Symlinks {
        /// Links that stay below the root.
        Within = "within",
        /// No link.
        Never = "never",
        /// All links.
        Follow = "follow",
    }

    /// The addresses of files without the end of their names.
    CleanUrlMode {
        /// There are none.
        No = "no",
        /// `.html` and the index files are tried.
        Yes = "yes",
        /// The same, and other addresses of a file are redirected to its clean one.
        Redirect = "redirect",
    }

    /// Whether clients must present a certificate.
    ClientAuth {
        /// They must.
        Require = "require",
        /// They may.
        Optional = "optional",
    }

    /// The input of entity tags.
    Etag {
        /// Modification time and size.
        Mtime = "mtime",
        /// The inode number as well.
        Inode = "inode",
    }

    /// The format of the access log.
    AccessLogFormat {
        /// The combined format of Apache.
        Combined = "combined",
        /// An object of JSON a line.
        Json = "json",
        /// No access log.
        Off = "off",
    }

    /// The form in which proxies name their client.
    AddressSource {
        /// The header `X-Forwarded-For`.
        XForwardedFor = "x-forwarded-for",
        /// The header `Forwarded` (RFC 7239).
        Forwarded = "forwarded",
        /// A header of the PROXY protocol before the first request.
        Protocol = "proxy-protocol",
    }
}

/// Parses the value of `io`.
pub(super) fn model<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Model>, D::Error> {
    let word = String::deserialize(value)?;
    let model = Model::from_word(&word);
    model.map(Some).ok_or_else(|| D::Error::unknown_variant(&word, Model::WORDS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    /// Checks that a key takes exactly the words of `T`, and that the message about another word
    /// lists them.
    fn takes<T: Word>(key: &str) {
        let parse = |word: &str| Config::from_toml(&key.replace('X', &format!("'{word}'")));
        for word in T::WORDS {
            assert!(T::from_word(word).is_some(), "{word}");
            parse(word).unwrap_or_else(|error| panic!("{key} {word}: {error}"));
        }
        let message = parse("other").unwrap_err().to_string();
        let valid = T::WORDS.join(", ");
        assert!(
            message.contains("line 1") && message.contains(&format!("'other' is not one of {valid}")),
            "{message}"
        );
        assert!(T::from_word("other").is_none());
    }

    #[test]
    fn files_take_the_words_of_the_command_line() {
        takes::<Model>("io = X");
        takes::<SendfilePolicy>("sendfile = X");
        takes::<AccessLogFormat>("access-log.format = X");
        takes::<AddressSource>("proxies.source = X");
        takes::<ClientAuth>("tls.client-auth = X");
        takes::<Symlinks>("site.symlinks = X");
        takes::<CleanUrlMode>("site.clean-urls = X");
        takes::<Etag>("site.etag = X");
        takes::<Etag>("host = [{ mounts = [{ path = '/a', root = '.', etag = X }] }]");
        takes::<ArchiveFormat>("site.archives = [X]");
        takes::<Coding>("site.compress.codings = [X]");
    }
}
