//! All bytes of a short file, in memory.

use std::sync::Arc;

use bytes::Bytes;
use fathom_io::sys::Sealed;

use super::read::SEND_BYTES;

/// All bytes of a short file. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Short {
    pub(crate) bytes: Bytes,
    /// The same bytes, where a socket takes them without a copy.
    pub(crate) sealed: Option<Arc<Sealed>>,
}

impl Short {
    /// `bytes` to be sent again and again: those that are worth it where a socket takes them without a copy.
    pub(crate) fn kept(bytes: Bytes) -> Self {
        if bytes.len() as u64 >= SEND_BYTES { Self::sealed(bytes) } else { bytes.into() }
    }

    /// `bytes` put where a socket takes them without a copy; where there is no memory or descriptor for that, as they are.
    pub(crate) fn sealed(bytes: Bytes) -> Self {
        let Ok(sealed) = Sealed::new(&bytes) else { return bytes.into() };
        let sealed = Arc::new(sealed);
        Self { bytes: Bytes::from_owner(Shared(Arc::clone(&sealed))), sealed: Some(sealed) }
    }
}

impl From<Bytes> for Short {
    fn from(bytes: Bytes) -> Self {
        Self { bytes, sealed: None }
    }
}

/// What [`Bytes`] can own.
struct Shared(Arc<Sealed>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}
