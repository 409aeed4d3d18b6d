//! The content of benchmark files (playground/README.md). Every page begins with a stamp: its
//! offset and the generation of the sample. The rest is noise derived from the seed and the
//! generation. Misplaced, stale, missing and torn data are detectable, and the data does not
//! compress.

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
/// The generation of a file that samples overwrite, before the first sample. Blocks that a mixed
/// workload reads keep it.
pub const BASE_GENERATION: u64 = 0;
/// Bytes of the stamp: a 64-bit offset and a 64-bit generation, little-endian.
const STAMP_BYTES: usize = 16;

/// The content of one file.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// A page with the generation in place. `fill` writes the offset.
    page: Box<[u8; PAGE_BYTES]>,
}

/// Splits `len` bytes at `offset` at page boundaries. Each item has the offset of the page, the
/// position of the first byte within the page, and the range of the bytes.
fn split_at_pages(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let here = offset + at as u64;
        let within = (here % PAGE_BYTES as u64) as usize;
        let end = len.min(at + PAGE_BYTES - within);
        let part = (at < len).then(|| (here - within as u64, within, at..end));
        at = end;
        part
    })
}

impl Pattern {
    /// Builds the pattern of a seed and a generation.
    #[must_use]
    pub fn new(seed: u64, generation: u64) -> Self {
        let mut page = Box::new([0; PAGE_BYTES]);
        page[8..STAMP_BYTES].copy_from_slice(&generation.to_le_bytes());
        let mut x = (seed ^ generation.wrapping_mul(0x9e37_79b9_7f4a_7c15)).max(1);
        for word in page[STAMP_BYTES..].chunks_exact_mut(8) {
            // xorshift64* (Vigna 2016, An experimental exploration of Marsaglia's xorshift
            // generators, scrambled).
            x ^= x >> 12;
            x ^= x << 25;
            x ^= x >> 27;
            word.copy_from_slice(&x.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
        }
        Self { page }
    }

    /// Fills `bytes` with the content of the file at `offset`.
    pub fn fill(&self, offset: u64, bytes: &mut [u8]) {
        for (_, within, range) in split_at_pages(offset, bytes.len()) {
            let len = range.len();
            bytes[range].copy_from_slice(&self.page[within..within + len]);
        }
        self.stamp(offset, bytes);
    }

    /// Rewrites only the page offsets. `bytes` must have been filled for an offset that is
    /// congruent to `offset` modulo the page size.
    pub fn stamp(&self, offset: u64, bytes: &mut [u8]) {
        for (page, within, range) in split_at_pages(offset, bytes.len()).filter(|(_, within, _)| *within < 8)
        {
            if let (0, Some(stamp)) = (within, bytes[range.clone()].first_chunk_mut()) {
                *stamp = page.to_le_bytes();
                continue;
            }
            let stamp = &page.to_le_bytes()[within..];
            let count = stamp.len().min(range.len());
            bytes[range.start..range.start + count].copy_from_slice(&stamp[..count]);
        }
    }

    /// Checks the stamps of `bytes`, the content of the file at `offset`, and returns the number of
    /// whole pages with a correct stamp.
    ///
    /// # Errors
    /// The offset of the first page with a wrong stamp.
    pub fn check_stamps(&self, offset: u64, bytes: &[u8]) -> Result<u64, u64> {
        let mut page = offset.next_multiple_of(PAGE_BYTES as u64);
        let skipped = (page - offset) as usize;
        let mut right = 0;
        for bytes in bytes.get(skipped..).unwrap_or_default().chunks(PAGE_BYTES) {
            let Some(stamp) = bytes.first_chunk::<STAMP_BYTES>() else { break };
            if stamp[..8] != page.to_le_bytes() || stamp[8..] != self.page[8..STAMP_BYTES] {
                return Err(page);
            }
            page += PAGE_BYTES as u64;
            right += 1;
        }
        Ok(right)
    }

    /// Returns the offset of the first wrong byte of `bytes`, the content of the file at `offset`;
    /// `None` if all bytes are correct.
    #[must_use]
    pub fn first_mismatch(&self, offset: u64, bytes: &[u8]) -> Option<u64> {
        split_at_pages(offset, bytes.len()).find_map(|(page, within, range)| {
            let mut expected = [0; PAGE_BYTES];
            let expected = &mut expected[..range.len()];
            self.fill(page + within as u64, expected);
            let found = &bytes[range];
            let wrong =
                if found == expected { None } else { found.iter().zip(expected).position(|(a, b)| a != b) };
            wrong.map(|index| page + (within + index) as u64)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        Pattern::new(1, 1).fill(offset, &mut bytes);
        bytes
    }

    #[test]
    fn the_page_is_what_the_other_languages_have() {
        let page = bytes(0, PAGE_BYTES);
        assert_eq!(page[..16], [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(page[16..24], 0x102a_ceb9_af8e_2597_u64.to_le_bytes());
        assert_eq!(page[4088..], 0x976c_79a3_d1f9_9990_u64.to_le_bytes());
    }

    #[test]
    fn any_range_equals_that_range_of_the_whole() {
        let whole = bytes(0, 5 * PAGE_BYTES);
        for (offset, len) in [(0, 0), (1, 1), (3, 9), (7, 4100), (4095, 2), (4090, 9000), (8192, 4096)] {
            let part = bytes(offset, len);
            assert_eq!(part, whole[offset as usize..][..len], "{len} from {offset}");
            assert_eq!(Pattern::new(1, 1).first_mismatch(offset, &part), None);
        }
    }

    #[test]
    fn stamping_moves_a_page_to_another_offset() {
        let pattern = Pattern::new(1, 1);
        for (from, to, len) in [(0, 1 << 40, 8192), (5, 8197, 5000), (1000, 5096, 1000)] {
            let mut part = bytes(from, len);
            pattern.stamp(to, &mut part);
            assert_eq!(part, bytes(to, len));
        }
    }

    #[test]
    fn every_wrong_byte_is_found() {
        let pattern = Pattern::new(1, 1);
        for wrong in [0, 7, 8, 15, 16, 4095, 4096, 4103, 9999] {
            let mut part = bytes(4096, 10_000);
            part[wrong] ^= 1;
            assert_eq!(pattern.first_mismatch(4096, &part), Some(4096 + wrong as u64));
            let stamped = wrong % PAGE_BYTES < STAMP_BYTES;
            assert_eq!(pattern.check_stamps(4096, &part).is_err(), stamped, "byte {wrong}");
        }
        assert_eq!(pattern.check_stamps(4096, &bytes(4096, 10_000)), Ok(3));
        assert_eq!(pattern.check_stamps(0, &bytes(4096, 4096)), Err(0));
        assert_eq!(Pattern::new(1, 2).check_stamps(0, &bytes(0, 4096)), Err(0), "an earlier generation");
        assert!(Pattern::new(2, 1).first_mismatch(0, &bytes(0, 4096)).is_some(), "another seed");
    }
}
