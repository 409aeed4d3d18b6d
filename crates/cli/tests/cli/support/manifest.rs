//! Edits manifests of inventories and recomputes their checksum, to test checks other than the
//! checksum.

use twox_hash::XxHash64;

/// The text before the digits of the checksum, which is the last member of the object.
const MEMBER: &str = ",\n  \"checksum\": \"xxh64:";

/// Returns the manifest `text` with its checksum recomputed.
pub(crate) fn with_checksum(text: &str) -> String {
    let body = &text[..text.rfind(MEMBER).expect("every manifest has a checksum")];
    let hash = XxHash64::oneshot(0, body.as_bytes());
    format!("{body}{MEMBER}{hash:016x}\"\n}}\n")
}
