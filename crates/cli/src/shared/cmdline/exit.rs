//! Exit statuses. The commands use these numbers, and fathom(1) describes them; `fathom du` has GNU
//! du's (0 and 1), and `fathom diff` has diff(1)'s.

/// Everything that was requested is done.
pub(crate) const DONE: u8 = 0;
/// Something failed. Everything else is done.
pub(crate) const FAILED: u8 = 1;
/// The command line is invalid, or nothing could be done.
pub(crate) const MISUSED: u8 = 2;
/// A thread of the program panicked, which is a bug.
pub(crate) const PANICKED: u8 = 2;
/// SIGINT ended the command, by the convention of shells (128 + the number of the signal).
pub(crate) const INTERRUPTED: u8 = 130;
/// `fathom grew`: a limit of growth is reached.
pub(crate) const LIMIT_REACHED: u8 = 3;
/// `fathom diff`: nothing differs.
pub(crate) const SAME: u8 = 0;
/// `fathom diff`: something differs.
pub(crate) const DIFFERENT: u8 = 1;
