//! The content of a small file, in memory.

use std::sync::Arc;

use bytes::Bytes;
use fathom_io::sys::SealedMemory;

use crate::conn::chunk::SENDFILE_BYTES_MIN;

/// The content of a small file. Clones share the memory.
#[derive(Clone, Debug)]
pub(crate) struct SmallBody {
    pub(crate) bytes: Bytes,
    /// The same bytes in a sealed memory file, from which a socket takes them without a copy.
    pub(crate) sealed: Option<Arc<SealedMemory>>,
}

impl SmallBody {
    /// Creates a body that is sent repeatedly: bodies of [`SENDFILE_BYTES_MIN`] or more go to a
    /// sealed memory file.
    pub(crate) fn for_caching(bytes: Bytes) -> Self {
        if bytes.len() as u64 >= SENDFILE_BYTES_MIN { Self::sealed(bytes) } else { bytes.into() }
    }

    /// Creates a body in a sealed memory file. Without memory or a descriptor for that, the body is
    /// `bytes` alone.
    pub(crate) fn sealed(bytes: Bytes) -> Self {
        let Ok(sealed) = SealedMemory::new(&bytes) else { return bytes.into() };
        let sealed = Arc::new(sealed);
        Self { bytes: Bytes::from_owner(SealedBytes(Arc::clone(&sealed))), sealed: Some(sealed) }
    }
}

impl From<Bytes> for SmallBody {
    fn from(bytes: Bytes) -> Self {
        Self { bytes, sealed: None }
    }
}

/// An owner for [`Bytes`]: the mapping lives as long as the bytes.
struct SealedBytes(Arc<SealedMemory>);

impl AsRef<[u8]> for SealedBytes {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}
