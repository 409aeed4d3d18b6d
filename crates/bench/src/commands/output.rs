//! The standard output of a command: counted, or summed so that two can be compared.

use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};

/// Size and hash of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputSum {
    /// Its bytes.
    pub bytes: u64,
    /// A hash of them; 0 if they were only counted.
    pub hash: u64,
    /// The sum of the hashes of its lines, the same in any order of the lines.
    pub lines_hash: u64,
}

impl OutputSum {
    /// Sums `output`.
    #[must_use]
    pub fn of(output: &[u8]) -> Self {
        // A slice can always be read.
        Self::read(output, true).unwrap_or_default()
    }

    /// Reads `output` to its end. Its hashes stay 0 unless `hashes`.
    ///
    /// # Errors
    /// As read(2).
    pub(super) fn read(mut output: impl Read, hashes: bool) -> io::Result<Self> {
        let (mut sum, mut whole, mut line) = (Self::default(), DefaultHasher::new(), DefaultHasher::new());
        let (mut buffer, mut is_in_line) = (vec![0; 64 << 10], false);
        loop {
            let piece = match output.read(&mut buffer) {
                Ok(0) => break,
                Ok(len) => &buffer[..len],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            sum.bytes += piece.len() as u64;
            if !hashes {
                continue;
            }
            whole.write(piece);
            for part in piece.split_inclusive(|byte| *byte == b'\n') {
                line.write(part);
                is_in_line = !part.ends_with(b"\n");
                if !is_in_line {
                    sum.lines_hash = sum.lines_hash.wrapping_add(line.finish());
                    line = DefaultHasher::new();
                }
            }
        }
        if is_in_line {
            sum.lines_hash = sum.lines_hash.wrapping_add(line.finish());
        }
        sum.hash = if hashes { whole.finish() } else { 0 };
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Yields a byte at a time.
    struct Bytewise<'a>(&'a [u8]);

    impl Read for Bytewise<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut buffer[..1])
        }
    }

    #[test]
    fn lines_in_another_order_have_the_same_sum_of_lines() {
        let (one, other) = (OutputSum::of(b"a\nbc\n"), OutputSum::of(b"bc\na\n"));
        assert!(one.lines_hash == other.lines_hash && one.hash != other.hash && one.bytes == other.bytes);
        for different in [&b"a\nb\nc\n"[..], b"a\nbc", b"a\nbd\n", b"a\na\nbc\n"] {
            assert_ne!(OutputSum::of(different).lines_hash, one.lines_hash, "{different:?}");
        }
    }

    #[test]
    fn pieces_do_not_matter() {
        for text in [&b""[..], b"\n", b"a\nbc\n", b"a\n\nlast"] {
            assert_eq!(OutputSum::read(Bytewise(text), true).unwrap(), OutputSum::of(text));
        }
        let counted = OutputSum::read(&b"abc"[..], false).unwrap();
        assert_eq!(counted, OutputSum { bytes: 3, ..OutputSum::default() });
    }
}
