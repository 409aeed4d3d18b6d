//! The archive formats.

/// An archive format.
///
/// ```
/// use fathom_serve::archive::ArchiveFormat;
///
/// let format = ArchiveFormat::parse("tar.gz").unwrap();
/// assert_eq!((format.extension(), format.media_type()), ("tar.gz", "application/gzip"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArchiveFormat {
    /// tar (GNU), in one frame of Zstandard.
    TarZst,
    /// tar (GNU), in gzip.
    TarGz,
    /// zip with deflate, and data descriptors.
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
