//! What stands in the files of a benchmark, byte by byte (playground/README.md): every page begins with its offset and the sample's
//! generation, and is noise of the seed and the generation otherwise. Misplaced, stale, missing or torn data shows, and nothing compresses.

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
/// Offset and generation.
const STAMP_BYTES: usize = 16;

/// The contents of one file.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// A page with the generation, and room for the offset.
    page: Box<[u8; PAGE_BYTES]>,
}

/// The parts of pages that `len` bytes from `offset` are: the page's offset, the first byte in it, and where that is in the bytes.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
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
    /// That of a seed and a generation.
    #[must_use]
    pub fn new(seed: u64, generation: u64) -> Self {
        let mut page = Box::new([0; PAGE_BYTES]);
        page[8..STAMP_BYTES].copy_from_slice(&generation.to_le_bytes());
        let mut x = (seed ^ generation.wrapping_mul(0x9e37_79b9_7f4a_7c15)).max(1);
        for word in page[STAMP_BYTES..].chunks_exact_mut(8) {
            // xorshift64* (Vigna 2016, An experimental exploration of Marsaglia's xorshift generators, scrambled).
            x ^= x >> 12;
            x ^= x << 25;
            x ^= x >> 27;
            word.copy_from_slice(&x.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
        }
        Self { page }
    }

    /// Writes what stands from `offset` on.
    pub fn fill(&self, offset: u64, bytes: &mut [u8]) {
        for (_, within, range) in parts(offset, bytes.len()) {
            let len = range.len();
            bytes[range].copy_from_slice(&self.page[within..within + len]);
        }
        self.stamp(offset, bytes);
    }

    /// The same where `bytes` were filled for another offset that is as far from a page's beginning: only the stamps change.
    pub fn stamp(&self, offset: u64, bytes: &mut [u8]) {
        for (page, within, range) in parts(offset, bytes.len()).filter(|(_, within, _)| *within < 8) {
            if let (0, Some(stamp)) = (within, bytes[range.clone()].first_chunk_mut()) {
                *stamp = page.to_le_bytes();
                continue;
            }
            let stamp = &page.to_le_bytes()[within..];
            let count = stamp.len().min(range.len());
            bytes[range.start..range.start + count].copy_from_slice(&stamp[..count]);
        }
    }

    /// How many whole pages among `bytes` from `offset` have the right stamp; or the offset of the first that has not.
    ///
    /// # Errors
    /// That offset.
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

    /// The first byte of `bytes`, which stand from `offset` on, that is wrong.
    #[must_use]
    pub fn first_wrong(&self, offset: u64, bytes: &[u8]) -> Option<u64> {
        parts(offset, bytes.len()).find_map(|(page, within, range)| {
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
    fn any_part_is_that_part_of_the_whole() {
        let whole = bytes(0, 5 * PAGE_BYTES);
        for (offset, len) in [(0, 0), (1, 1), (3, 9), (7, 4100), (4095, 2), (4090, 9000), (8192, 4096)] {
            let part = bytes(offset, len);
            assert_eq!(part, whole[offset as usize..][..len], "{len} from {offset}");
            assert_eq!(Pattern::new(1, 1).first_wrong(offset, &part), None);
        }
    }

    #[test]
    fn a_stamp_makes_it_that_of_another_page() {
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
            assert_eq!(pattern.first_wrong(4096, &part), Some(4096 + wrong as u64));
            let stamped = wrong % PAGE_BYTES < STAMP_BYTES;
            assert_eq!(pattern.check_stamps(4096, &part).is_err(), stamped, "byte {wrong}");
        }
        assert_eq!(pattern.check_stamps(4096, &bytes(4096, 10_000)), Ok(3));
        assert_eq!(pattern.check_stamps(0, &bytes(4096, 4096)), Err(0));
        assert_eq!(Pattern::new(1, 2).check_stamps(0, &bytes(0, 4096)), Err(0), "an earlier generation");
        assert!(Pattern::new(2, 1).first_wrong(0, &bytes(0, 4096)).is_some(), "another seed");
    }
}
