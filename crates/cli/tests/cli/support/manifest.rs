//! Edits manifests of inventories and recomputes their checksum, to test checks other than the
//! checksum.

use std::path::Path;

use twox_hash::XxHash64;

/// The text before the digits of the checksum, which is the last member of the object.
const MEMBER: &str = ",\n  \"checksum\": \"xxh64:";

/// Returns the manifest `text` with its checksum recomputed.
pub(crate) fn with_checksum(text: &str) -> String {
    let body = &text[..text.rfind(MEMBER).expect("every manifest has a checksum")];
    let hash = XxHash64::oneshot(0, body.as_bytes());
    format!("{body}{MEMBER}{hash:016x}\"\n}}\n")
}

/// Moves the start of the scan of an inventory back.
pub(crate) fn start_earlier(inventory: &Path, seconds: i64) {
    let path = inventory.join("manifest.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let start = serde_json::from_str::<serde_json::Value>(&text).unwrap()["start"].as_i64().unwrap();
    let member = |start: i64| format!("\"start\": {start},");
    assert!(text.contains(&member(start)), "{text}");
    std::fs::write(&path, with_checksum(&text.replace(&member(start), &member(start - seconds)))).unwrap();
}
