//! The callback of long computations.

use fathom_io::Errno;

/// A callback that long computations call every few microseconds with the bytes of memory they
/// hold. It may yield the processor, and its error ends the computation.
pub type Tick<'a> = &'a mut dyn FnMut(usize) -> Result<(), Errno>;
