//! Checks page headers for the memory that their pages would take, before the pages are
//! decompressed.

use parquet::errors::Result;

use super::decode::{Cursor, damaged};
use super::values::COLUMN_BYTES_MAX;

/// The page types that inventories have: data pages and dictionary pages.
const KINDS: [u64; 2] = [0, 2];
/// The last field of the headers of these pages.
const FIELD_MAX: usize = 7;
/// Most levels of nested structures.
const DEPTH_MAX: u32 = 8;

/// Checks all pages of a column, from the first byte to the last.
pub(super) fn check(mut chunk: Cursor<'_>) -> Result<()> {
    let mut unpacked = 0usize;
    while !chunk.0.is_empty() {
        let [kind, bytes, packed] = sizes(&mut chunk)?;
        if !KINDS.contains(&kind) {
            return Err(damaged("a page is of a kind that inventories do not have"));
        }
        unpacked =
            usize::try_from(bytes).ok().and_then(|bytes| unpacked.checked_add(bytes)).unwrap_or(usize::MAX);
        if unpacked > COLUMN_BYTES_MAX {
            return Err(damaged("a column of a row group is too long"));
        }
        chunk.take(usize::try_from(packed).unwrap_or(usize::MAX))?;
    }
    Ok(())
}

/// Returns the type of a page, its decompressed and its compressed size: the fields 1 to 3 of the
/// header (Thrift's compact protocol).
fn sizes(input: &mut Cursor<'_>) -> Result<[u64; 3]> {
    let mut found = [None; 3];
    let mut field = 0;
    loop {
        let head = input.byte()?;
        if head == 0 {
            break;
        }
        field += usize::from(step(head)?);
        if field > FIELD_MAX {
            return Err(damaged("a page is of a kind that inventories do not have"));
        }
        match found.get_mut(field - 1) {
            Some(place) if head & 15 == 5 => *place = u64::try_from(input.zigzag()?).ok(),
            _ => skip(input, head & 15, DEPTH_MAX)?,
        }
    }
    match found {
        [Some(kind), Some(unpacked), Some(packed)] => Ok([kind, unpacked, packed]),
        _ => Err(damaged("the header of a page is not whole")),
    }
}

/// Returns the difference between the numbers of a field and of the field before. It is never 0, so
/// no field occurs twice.
fn step(head: u8) -> Result<u8> {
    Some(head >> 4).filter(|step| *step > 0).ok_or_else(|| damaged("the fields of a header are not in order"))
}

fn skip(input: &mut Cursor<'_>, kind: u8, depth: u32) -> Result<()> {
    match kind {
        1 | 2 => {}
        3 => drop(input.byte()?),
        4..=6 => drop(input.varint()?),
        7 => drop(input.take(8)?),
        8 => {
            let bytes = input.varint()?;
            input.take(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        }
        12 if depth > 0 => loop {
            let head = input.byte()?;
            if head == 0 {
                break;
            }
            step(head)?;
            skip(input, head & 15, depth - 1)?;
        },
        _ => return Err(damaged("the header of a page has what no header has")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a header with this page type and these sizes, and nothing else.
    fn header(kind: u8, unpacked: &[u8], packed: u8) -> Vec<u8> {
        [&[0x15, kind * 2, 0x15], unpacked, &[0x15, packed * 2, 0]].concat()
    }

    #[test]
    fn pages_follow_one_another_to_the_end() {
        let page = [header(0, &[4], 2), vec![9, 9]].concat();
        assert!(check(Cursor(&[page.clone(), page.clone()].concat())).is_ok());
        assert!(check(Cursor(&page[..page.len() - 1])).is_err());
        assert!(check(Cursor(&[&page[..], &[0x15]].concat())).is_err());
    }

    #[test]
    fn pages_that_would_take_too_much_memory_are_refused() {
        assert!(check(Cursor(&header(0, &[0xfe, 0xff, 0xff, 0xff, 0x0f], 0))).is_err());
        assert!(check(Cursor(&header(0, &[1], 0))).is_err(), "less than nothing");
        assert!(check(Cursor(&header(3, &[0], 0))).is_err(), "a kind that is not ours");
        assert!(check(Cursor(&[0x15, 0, 0x05, 4, 2, 0x15, 0, 0])).is_err(), "a field by its number");
        assert!(check(Cursor(&[0x5c; 100])).is_err(), "too deep");
    }
}
