//! The text conventions of GNU's tools, for every command: numbers, sizes and durations as they are
//! typed and printed, time stamps, wildcard patterns, names quoted in messages, and the words of
//! errors.
//!
//! The crate knows neither files nor options, and prints nothing.

pub mod counts;
pub mod duration;
pub mod glob;
pub mod human;
pub mod keyword;
pub mod nearest;
pub mod number;
pub mod owners;
pub mod quote;
pub mod time;

/// Returns the C library's message for an error (strerror(3)), without the number that Rust
/// appends.
///
/// ```
/// let error = std::io::Error::from_raw_os_error(2);
/// assert_eq!(fathom_text::strerror(error), b"No such file or directory");
/// ```
#[must_use]
pub fn strerror(error: impl Into<std::io::Error>) -> Vec<u8> {
    let text = error.into().to_string();
    let end = text.rfind(" (os error ").unwrap_or(text.len());
    text.as_bytes()[..end].to_vec()
}

/// Runs the program of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeProgram;
