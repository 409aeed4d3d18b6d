//! The clean URLs of a site: which suffixes of file names addresses leave out.

/// The clean URLs of a site.
#[derive(Clone, Debug, Default)]
pub(crate) struct CleanUrls {
    /// Suffixes that are appended, in this order, to a path that names no file.
    pub(crate) suffixes: Vec<Vec<u8>>,
    /// Whether other addresses of a file redirect to its clean one.
    pub(crate) redirects: bool,
}
