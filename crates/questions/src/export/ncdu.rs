//! ncdu's export format, version 1.2, as <https://dev.yorhel.nl/ncdu/jsonfmt> describes it: a
//! directory is an array of its own object and of the values of its entries. ncdu 1.9 and later
//! read it.
//!
//! Names are written as bytes, as ncdu does: a name that is not UTF-8 is not valid JSON, but ncdu
//! reads it. ncdu refuses a whole file for a number that does not fit its type, so values that some
//! of its releases cannot read are left out.

use std::ffi::c_int;

use fathom_text::number::write_decimal;
use fathom_walk::{FileType, Meta};

use super::{ReplayEntry, ReplayHeader};
use fathom_inventory::store::DirState;

/// The name of the directory around everything, where no single directory has everything.
pub const WRAPPER_NAME: &[u8] = b"(several trees)";

#[derive(Default)]
pub(super) struct NcduFormat {
    /// The devices of the directories that are open.
    devices: Vec<u64>,
    has_wrapper: bool,
}

impl NcduFormat {
    /// Appends an object without its closing brace.
    fn begin_object(&mut self, item: &ReplayEntry<'_>, is_left_out: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"name\":\"");
        write_escaped(item.entry.name, out);
        out.push(b'"');
        let Some(meta) = item.entry.meta else { return };
        let bytes =
            [("asize", u64::try_from(meta.size).unwrap_or(0)), ("dsize", meta.blocks.saturating_mul(512))];
        for (name, bytes) in bytes.into_iter().filter(|(_, bytes)| *bytes > 0 && !is_left_out) {
            number(name, bytes.min(i64::MAX.cast_unsigned()), out);
        }
        if self.devices.last().copied().unwrap_or(0) != meta.dev {
            number("dev", meta.dev, out);
        }
        // Up to ncdu 1.21 an owner is a C int.
        for (name, id) in [("uid", meta.uid), ("gid", meta.gid)] {
            if c_int::try_from(id).is_ok() {
                number(name, id.into(), out);
            }
        }
        number("mode", (meta.mode & 0xffff).into(), out);
        if let Ok(seconds) = u64::try_from(meta.mtime.sec) {
            number("mtime", seconds, out);
        }
    }
}

impl super::EntryFormat for NcduFormat {
    fn begin(&mut self, about: &ReplayHeader, out: &mut Vec<u8>) {
        out.extend_from_slice(b"[1,2,{\"progname\":\"fathom\",\"progver\":\"");
        out.extend_from_slice(env!("CARGO_PKG_VERSION").as_bytes());
        out.push(b'"');
        number("timestamp", u64::try_from(about.scanned).unwrap_or(0), out);
        out.push(b'}');
        self.has_wrapper = !about.is_one_tree;
        if self.has_wrapper {
            out.extend_from_slice(b",\n[{\"name\":\"");
            out.extend_from_slice(WRAPPER_NAME);
            out.extend_from_slice(b"\"}");
        }
    }

    fn entry(&mut self, item: &ReplayEntry<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\n");
        self.begin_object(item, false, out);
        match item.entry.meta {
            Some(meta) => write_kind(meta, item.entry.file_type(), out),
            None => out.extend_from_slice(b",\"read_error\":true"),
        }
        out.push(b'}');
    }

    fn enter(&mut self, item: &ReplayEntry<'_>, state: DirState, out: &mut Vec<u8>) {
        // The outermost directory cannot be excluded: ncdu would have nothing to show.
        let is_left_out = state == DirState::Skipped && (item.entry.depth > 0 || self.has_wrapper);
        out.extend_from_slice(b",\n[");
        self.begin_object(item, is_left_out, out);
        let device = item.entry.meta.map(|meta| meta.dev);
        let above = self.devices.last().copied();
        match state {
            DirState::Partial | DirState::Failed => out.extend_from_slice(b",\"read_error\":true"),
            DirState::Skipped if !is_left_out => {}
            DirState::Skipped if device == above => out.extend_from_slice(b",\"excluded\":\"pattern\""),
            DirState::Skipped => out.extend_from_slice(b",\"excluded\":\"otherfs\""),
            DirState::Complete => {}
        }
        out.push(b'}');
        self.devices.push(device.or(above).unwrap_or(0));
    }

    fn leave(&mut self, out: &mut Vec<u8>) {
        self.devices.pop();
        out.push(b']');
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.has_wrapper { b"]]\n" } else { b"]\n" });
    }
}

/// Appends the members that tell an entry from a regular file with one name. ncdu 2 uses the last
/// such member that it reads, which has to be the one about links.
fn write_kind(meta: &Meta, file_type: FileType, out: &mut Vec<u8>) {
    if file_type != FileType::Regular {
        out.extend_from_slice(b",\"notreg\":true");
    }
    if meta.nlink > 1 {
        number("ino", meta.ino, out);
        out.extend_from_slice(b",\"hlnkc\":true");
        number("nlink", meta.nlink.min(i32::MAX.unsigned_abs().into()), out);
    }
}

fn number(name: &str, value: u64, out: &mut Vec<u8>) {
    [",\"", name, "\":"].iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
    write_decimal(value, out);
}

/// Escapes the bytes that ncdu itself escapes, and no others.
fn write_escaped(name: &[u8], out: &mut Vec<u8>) {
    for byte in name {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            0..=0x1f | 0x7f => {
                let digit = |digit: u8| b"0123456789abcdef"[usize::from(digit)];
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
            }
            _ => out.push(*byte),
        }
    }
}
