//! Writes an entry as a JSON object on a line of its own.
//!
//! Owns the members of the object, and the encoding of text that is not UTF-8. The text is written
//! directly, without a tree of values, as an inventory has millions of entries.

use fathom_text::number::{write_decimal, write_hex};
use fathom_text::quote::is_invisible;
use fathom_text::time::{TimeStyle, Zone};
use fathom_walk::{Attributes, FileTime, Meta};
use rustix::fs::{major, minor};

use crate::replay::ReplayEntry;
use fathom_inventory::store::OptionalValues;
use fathom_inventory::{Entry, type_letter};

/// Writes entries as JSON objects.
///
/// ```
/// use fathom_inventory::Entry;
/// use fathom_questions::json::JsonWriter;
/// use fathom_walk::FileType;
///
/// let file_type = FileType::Regular;
/// let entry = Entry { dir: b"a", name: b"b", root_len: 1, depth: 1, file_type, meta: None };
/// let mut out = Vec::new();
/// JsonWriter::new().write(&entry, &mut out);
/// assert_eq!(out, b"{\"path\":\"a/b\",\"type\":\"f\"}\n");
/// ```
#[derive(Clone, Debug)]
pub struct JsonWriter {
    /// RFC 3339, in UTC.
    times: TimeStyle,
}

impl Default for JsonWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl JsonWriter {
    /// Creates a writer, which may be used for any number of entries.
    #[must_use]
    pub fn new() -> Self {
        let times = TimeStyle::parse(b"+%Y-%m-%dT%H:%M:%S.%NZ", Zone::UTC).unwrap_or_default();
        Self { times }
    }

    /// Appends `entry` as an object and a line break. Members are `path`, `type` (find's letter)
    /// and, if the metadata is known, `size` (bytes), `blocks` (of 512 bytes), `mode` (permission
    /// bits, in octal, as text), `uid`, `gid`, `nlink`, `ino`, `dev` (`"major:minor"`), `mtime`,
    /// `atime`, `ctime` and `btime`, and `attributes` (letters of lsattr(1)), if it has any.
    ///
    /// A path that is not UTF-8 has replacement characters, and `path_bytes` has all its bytes in
    /// hexadecimal. A time that is unknown or beyond the calendar of 32-bit years is null.
    pub fn write(&self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        self.write_known(&ReplayEntry::new(*entry), out);
    }

    /// Appends an entry of an inventory. The object has the members of [`JsonWriter::write`] and
    /// then, where the inventory has them, `project`, `xattrs`, `acl` and `ignored`,
    /// `link_target` (and `link_target_bytes`, if that is not UTF-8) of a symbolic link, and the
    /// `state` of a directory.
    pub fn write_known(&self, item: &ReplayEntry<'_>, out: &mut Vec<u8>) {
        let entry = &item.entry;
        out.extend_from_slice(b"{\"path\":\"");
        // The path is joined in the output buffer, and moved out only if it needs escapes.
        let start = out.len();
        entry.write_path(out);
        if !out[start..].iter().copied().all(is_plain) {
            let path = out.split_off(start);
            write_escaped("path", &path, out);
        }
        out.extend_from_slice(b"\",\"type\":\"");
        out.extend_from_slice(&[type_letter(entry.file_type()), b'"']);
        if let Some(meta) = entry.meta {
            self.write_meta(meta, out);
        }
        if let Some(optional_values) = item.optional_values {
            write_optional(optional_values, out);
        }
        if let Some(link) = item.link {
            member("link_target", out);
            out.push(b'"');
            write_escaped("link_target", link, out);
            out.push(b'"');
        }
        if let Some(state) = item.state {
            member("state", out);
            [b"\"", state.word().as_bytes(), b"\""].iter().for_each(|part| out.extend_from_slice(part));
        }
        out.extend_from_slice(b"}\n");
    }

    fn write_meta(&self, meta: &Meta, out: &mut Vec<u8>) {
        member("size", out);
        write_decimal(meta.size, out);
        number("blocks", meta.blocks, out);
        member("mode", out);
        let octal = |shift: u32| b'0' + (meta.mode >> shift & 7) as u8;
        out.extend_from_slice(&[b'"', octal(9), octal(6), octal(3), octal(0), b'"']);
        let numbers =
            [("uid", meta.uid.into()), ("gid", meta.gid.into()), ("nlink", meta.nlink), ("ino", meta.ino)];
        numbers.into_iter().for_each(|(name, value)| number(name, value, out));
        member("dev", out);
        out.push(b'"');
        write_decimal(major(meta.dev), out);
        out.push(b':');
        write_decimal(minor(meta.dev), out);
        out.push(b'"');
        let times = [("mtime", meta.mtime), ("atime", meta.atime), ("ctime", meta.ctime)];
        times.into_iter().for_each(|(name, stamp)| self.write_time(name, Some(stamp), out));
        self.write_time("btime", meta.btime, out);
        if let Some(attributes) = meta.attributes {
            member("attributes", out);
            let mut text = [0; Attributes::TEXT_BYTES_MAX];
            [b"\"", attributes.text(&mut text), b"\""].iter().for_each(|part| out.extend_from_slice(part));
        }
    }

    fn write_time(&self, name: &str, stamp: Option<FileTime>, out: &mut Vec<u8>) {
        member(name, out);
        let start = out.len();
        out.push(b'"');
        let written = stamp.is_some_and(|stamp| self.times.write(stamp.sec, stamp.nsec, out).is_ok());
        out.push(b'"');
        if !written {
            out.truncate(start);
            out.extend_from_slice(b"null");
        }
    }
}

fn write_optional(optional_values: &OptionalValues<'_>, out: &mut Vec<u8>) {
    if let Some(project) = optional_values.project {
        number("project", project.into(), out);
    }
    if let Some(xattrs) = &optional_values.xattrs {
        member("xattrs", out);
        out.push(b'"');
        write_escaped("xattrs", xattrs.as_bytes(), out);
        out.push(b'"');
    }
    for (name, value) in [("acl", optional_values.acl), ("ignored", optional_values.ignored)] {
        if let Some(value) = value {
            member(name, out);
            out.extend_from_slice(if value { b"true" } else { b"false" });
        }
    }
}

fn member(name: &str, out: &mut Vec<u8>) {
    for part in [",\"", name, "\":"] {
        out.extend_from_slice(part.as_bytes());
    }
}

fn number(name: &str, value: u64, out: &mut Vec<u8>) {
    member(name, out);
    write_decimal(value, out);
}

/// Returns whether a byte needs no escape, whatever the bytes around it.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

/// Writes `path` as the rest of the string of the member `name`. If it is not UTF-8, a member for
/// its bytes follows. Either way the caller has to close the last string.
fn write_escaped(name: &str, path: &[u8], out: &mut Vec<u8>) {
    let mut is_text = true;
    for chunk in path.utf8_chunks() {
        chunk.valid().chars().for_each(|c| write_char(c, out));
        if !chunk.invalid().is_empty() {
            is_text = false;
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
    if !is_text {
        ["\",\"", name, "_bytes\":\""].iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
        write_hex(path, out);
    }
}

/// Escapes the characters for which JSON requires it, DEL and the C1 controls, which some terminals
/// obey, and characters that show nothing or turn the text after them.
fn write_char(c: char, out: &mut Vec<u8>) {
    match c {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\r' => out.extend_from_slice(b"\\r"),
        ' '..='~' => out.push(c as u8),
        '\0'..='\u{9f}' => write_units(c, out),
        _ if is_invisible(c) => write_units(c, out),
        _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// Escapes a character by its UTF-16.
fn write_units(c: char, out: &mut Vec<u8>) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        let digit = |shift: u32| b"0123456789abcdef"[usize::from(*unit >> shift & 15)];
        out.extend_from_slice(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_walk::{Fields, FileType};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn written(dir: &[u8], name: &[u8], meta: Option<&Meta>) -> String {
        let entry = Entry { dir, name, root_len: 0, depth: 1, file_type: FileType::Unknown, meta };
        let mut out = b"before".to_vec();
        JsonWriter::new().write(&entry, &mut out);
        String::from_utf8(out).unwrap().strip_prefix("before").unwrap().to_owned()
    }

    #[test]
    fn all_members_in_their_order() {
        let stamp = |sec| FileTime { sec, nsec: 5 };
        let meta = Meta {
            dev: rustix::fs::makedev(259, 3),
            ino: 7,
            size: -1,
            blocks: 8,
            mode: 0o104_755,
            nlink: 2,
            uid: 1000,
            gid: u32::MAX,
            atime: stamp(-1),
            mtime: stamp(0),
            ctime: stamp(i64::MAX),
            btime: None,
            mount_root: None,
            attributes: None,
            fields: Fields::ALL,
        };
        let expected = "{\"path\":\"a/b\",\"type\":\"f\",\"size\":-1,\"blocks\":8,\"mode\":\"4755\",\"uid\":1000,\
            \"gid\":4294967295,\"nlink\":2,\"ino\":7,\"dev\":\"259:3\",\"mtime\":\"1970-01-01T00:00:00.000000005Z\",\
            \"atime\":\"1969-12-31T23:59:59.000000005Z\",\"ctime\":null,\"btime\":null}\n";
        assert_eq!(written(b"a", b"b", Some(&meta)), expected);
        let btime = written(b"a", b"b", Some(&Meta { btime: Some(stamp(1)), ..meta }));
        assert!(btime.contains("\"btime\":\"1970-01-01T00:00:01.000000005Z\"}"), "{btime}");
    }

    #[test]
    fn an_entry_without_metadata_has_path_and_type() {
        assert_eq!(written(b"", b".", None), "{\"path\":\".\",\"type\":\"U\"}\n");
    }

    #[test]
    fn bytes_that_are_no_text_are_in_a_member_of_their_own() {
        let expected =
            "{\"path\":\"a/\u{fffd}\\u0000\\u009b\",\"path_bytes\":\"612fff00c29b\",\"type\":\"U\"}\n";
        assert_eq!(written(b"a", b"\xff\0\xc2\x9b", None), expected);
        let expected = "{\"path\":\"a\\u202e\\udb40\\udc41\u{e9}\",\"type\":\"U\"}\n";
        assert_eq!(written(b"", "a\u{202e}\u{e0041}\u{e9}".as_bytes(), None), expected);
    }

    #[test]
    fn links_and_directories_say_more() {
        let meta = Meta { attributes: Some(Attributes::APPEND), ..Meta::default() };
        let item = |link, state| {
            let entry = Entry {
                dir: b"",
                name: b"a",
                root_len: 1,
                depth: 0,
                file_type: FileType::Symlink,
                meta: Some(&meta),
            };
            let mut out = Vec::new();
            let optional_values = OptionalValues {
                project: Some(3),
                xattrs: Some("user.\"".into()),
                acl: Some(true),
                ignored: Some(false),
                ..OptionalValues::default()
            };
            let item = ReplayEntry {
                optional_values: Some(&optional_values),
                link,
                state,
                ..ReplayEntry::new(entry)
            };
            JsonWriter::new().write_known(&item, &mut out);
            String::from_utf8(out).unwrap()
        };
        let link = item(Some(&b"x\"\xff"[..]), None);
        assert!(
            link.ends_with(
                ",\"attributes\":\"a\",\"project\":3,\"xattrs\":\"user.\\\"\",\"acl\":true,\"ignored\":false,\"link_target\":\"x\\\"\u{fffd}\",\"link_target_bytes\":\"7822ff\"}\n"
            ),
            "{link}"
        );
        assert!(
            item(None, Some(fathom_inventory::store::DirState::Partial))
                .ends_with(",\"state\":\"partial\"}\n")
        );
    }

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        #[test]
        fn objects_are_read_back_as_written(
            name in prop_oneof![any::<Vec<u8>>(), any::<String>().prop_map(String::into_bytes)],
            numbers in any::<[u64; 4]>(),
            size in any::<i64>(),
            (mode, uid, gid) in any::<(u32, u32, u32)>(),
            sec in -10_000_000_000i64..100_000_000_000,
            nsec in 0u32..1_000_000_000,
        ) {
            let [dev, ino, blocks, nlink] = numbers;
            let mtime = FileTime { sec, nsec };
            let meta = Meta { dev, ino, size, blocks, mode, nlink, uid, gid, mtime, ..Meta::default() };
            let text = written(b"", &name, Some(&meta));
            prop_assert!(text.ends_with('\n') && !text.trim_end_matches('\n').contains(char::is_control), "{}", text);
            let object: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&object["path"], &json!(String::from_utf8_lossy(&name)));
            let hex: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
            let bytes = if std::str::from_utf8(&name).is_ok() { Value::Null } else { json!(hex) };
            prop_assert_eq!(&object["path_bytes"], &bytes);
            for (name, value) in [("ino", ino), ("blocks", blocks), ("nlink", nlink)] {
                prop_assert_eq!(&object[name], &json!(value));
            }
            prop_assert_eq!(&object["size"], &json!(size));
            prop_assert_eq!(&object["mode"], &json!(format!("{:04o}", mode & 0o7777)));
            let time: jiff::Timestamp = object["mtime"].as_str().unwrap().parse().unwrap();
            prop_assert_eq!((time.as_second(), time.subsec_nanosecond()), split(sec, nsec));
        }
    }

    /// Splits a time as jiff does: both parts have the sign of the whole.
    fn split(sec: i64, nsec: u32) -> (i64, i32) {
        let nsec = i32::try_from(nsec).unwrap();
        if sec < 0 && nsec > 0 { (sec + 1, nsec - 1_000_000_000) } else { (sec, nsec) }
    }
}
