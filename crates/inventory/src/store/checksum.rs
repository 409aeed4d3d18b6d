//! The checksum of a JSON object: its last member, computed over every byte before it, by which
//! damage is detected.

use std::hash::Hasher;

use twox_hash::XxHash64;

/// The text before the digits of the checksum.
const MEMBER: &[u8] = b",\n  \"checksum\": \"xxh64:";
/// The text after the digits of the checksum.
const END: &[u8] = b"\"\n}\n";

/// Returns the xxHash64 with seed 0.
pub fn hash(bytes: &[u8]) -> u64 {
    let mut hash = XxHash64::with_seed(0);
    hash.write(bytes);
    hash.finish()
}

/// Appends the checksum to an object in the multi-line form of `serde_json`.
pub(crate) fn append_checksum(mut object: Vec<u8>) -> Vec<u8> {
    let end = object.strip_suffix(b"\n}").map_or(object.len(), <[u8]>::len);
    object.truncate(end);
    let digits = format!("{:016x}", hash(&object));
    [&object[..], MEMBER, digits.as_bytes(), END].concat()
}

/// Returns whether an object is as it was when its checksum was appended.
pub(crate) fn has_valid_checksum(text: &[u8]) -> bool {
    let Some(rest) = text.strip_suffix(END) else { return false };
    let Some((rest, digits)) = rest.split_last_chunk::<16>() else { return false };
    rest.strip_suffix(MEMBER).is_some_and(|object| format!("{:016x}", hash(object)).as_bytes() == digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_byte_shows() {
        let object = serde_json::to_vec_pretty(&serde_json::json!({"a": [1, 2], "b": "x"})).unwrap();
        let sealed = append_checksum(object.clone());
        assert!(has_valid_checksum(&sealed) && !has_valid_checksum(&object));
        let read: serde_json::Value = serde_json::from_slice(&sealed).unwrap();
        assert_eq!((&read["a"][1], &read["b"]), (&2.into(), &"x".into()));
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert!(!has_valid_checksum(&damaged) && !has_valid_checksum(&sealed[..at]), "at {at}");
        }
    }
}
