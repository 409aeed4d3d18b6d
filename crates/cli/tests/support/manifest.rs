//! Manifests of inventories that are damaged with care: changed, and sealed again as `fathom scan`
//! seals them.

use twox_hash::XxHash64;

/// The text before the digits of the checksum, which is the last member.
const MEMBER: &str = ",\n  \"checksum\": \"xxh64:";

/// A manifest with the checksum that it should have, whatever it says.
pub(crate) fn resealed(text: &str) -> String {
    let body = &text[..text.rfind(MEMBER).expect("every manifest has a checksum")];
    let hash = XxHash64::oneshot(0, body.as_bytes());
    format!("{body}{MEMBER}{hash:016x}\"\n}}\n")
}
