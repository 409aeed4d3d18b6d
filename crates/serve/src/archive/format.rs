//! The archive formats.

use serde::Deserialize;

/// An archive format.
///
/// ```
/// use fathom_serve::archive::ArchiveFormat;
///
/// let format = ArchiveFormat::parse("tar.gz").unwrap();
/// assert_eq!((format.extension(), format.media_type()), ("tar.gz", "application/gzip"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub enum ArchiveFormat {
    /// tar (GNU), in one frame of Zstandard.
    #[serde(rename = "tar.zst")]
    TarZst,
    /// tar (GNU), in gzip.
    #[serde(rename = "tar.gz")]
    TarGz,
    /// zip with deflate, and data descriptors.
    #[serde(rename = "zip")]
    Zip,
}

impl ArchiveFormat {
    /// All formats, in the order in which pages offer them.
    pub const ALL: [Self; 3] = [Self::TarZst, Self::TarGz, Self::Zip];

    /// Returns the file name extension, which is also the value in queries and in the
    /// configuration.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::TarZst => "tar.zst",
            Self::TarGz => "tar.gz",
            Self::Zip => "zip",
        }
    }

    /// Returns the format with this extension.
    #[must_use]
    pub fn parse(extension: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.extension() == extension)
    }

    /// Returns the media type.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::TarZst => "application/zstd",
            Self::TarGz => "application/gzip",
            Self::Zip => "application/zip",
        }
    }
}
