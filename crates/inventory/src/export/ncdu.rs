//! ncdu's export format, version 1.2, as <https://dev.yorhel.nl/ncdu/jsonfmt> describes it: a directory is an array of an object about
//! itself and of what is in it. ncdu 1.9 and later read it.
//!
//! Names are bytes, as ncdu writes them itself: what is not UTF-8 is not JSON either, but it comes through. ncdu refuses a whole file for
//! a number beyond what it has room for, so what its releases do not read is left out.

use std::ffi::c_int;

use fathom_walk::{FileType, Meta};

use super::out::write_number;
use super::{About, Item};
use crate::store::State;

/// The name of a directory around everything, where there is not one that has everything.
const AROUND: &[u8] = b"(several trees)";

#[derive(Default)]
pub(super) struct Form {
    /// Devices of the directories that are open.
    devices: Vec<u64>,
    has_around: bool,
}

impl Form {
    /// An object, but for what closes it.
    fn begin_object(&mut self, item: &Item<'_>, is_left_out: bool, out: &mut Vec<u8>) {
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
        // Up to ncdu 1.21 an owner is an int.
        for (name, id) in [("uid", meta.uid), ("gid", meta.gid)] {
            if c_int::try_from(id).is_ok() {
                number(name, id.into(), out);
            }
        }
        number("mode", (meta.mode & 0xffff).into(), out);
        if let Ok(seconds) = u64::try_from(meta.modified.sec) {
            number("mtime", seconds, out);
        }
    }
}

impl super::Form for Form {
    fn begin(&mut self, about: &About, out: &mut Vec<u8>) {
        out.extend_from_slice(b"[1,2,{\"progname\":\"fathom\",\"progver\":\"");
        out.extend_from_slice(env!("CARGO_PKG_VERSION").as_bytes());
        out.push(b'"');
        number("timestamp", u64::try_from(about.scanned).unwrap_or(0), out);
        out.push(b'}');
        self.has_around = !about.is_one_tree;
        if self.has_around {
            out.extend_from_slice(b",\n[{\"name\":\"");
            out.extend_from_slice(AROUND);
            out.extend_from_slice(b"\"}");
        }
    }

    fn entry(&mut self, item: &Item<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\n");
        self.begin_object(item, false, out);
        match item.entry.meta {
            Some(meta) => write_kind(meta, item.entry.file_type(), out),
            None => out.extend_from_slice(b",\"read_error\":true"),
        }
        out.push(b'}');
    }

    fn enter(&mut self, item: &Item<'_>, state: State, out: &mut Vec<u8>) {
        // The first directory of all cannot be left out: ncdu has nothing then.
        let is_left_out = state == State::Skipped && (item.entry.depth > 0 || self.has_around);
        out.extend_from_slice(b",\n[");
        self.begin_object(item, is_left_out, out);
        let device = item.entry.meta.map(|meta| meta.dev);
        let above = self.devices.last().copied();
        match state {
            State::Partial | State::Failed => out.extend_from_slice(b",\"read_error\":true"),
            State::Skipped if !is_left_out => {}
            State::Skipped if device == above => out.extend_from_slice(b",\"excluded\":\"pattern\""),
            State::Skipped => out.extend_from_slice(b",\"excluded\":\"otherfs\""),
            State::Complete => {}
        }
        out.push(b'}');
        self.devices.push(device.or(above).unwrap_or(0));
    }

    fn leave(&mut self, out: &mut Vec<u8>) {
        self.devices.pop();
        out.push(b']');
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.has_around { b"]]\n" } else { b"]\n" });
    }
}

/// What makes an entry another thing than a file of one name. ncdu 2 goes by the last that it reads, which has to be the links.
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
    write_number(value, out);
}

/// Escapes what ncdu does, and nothing else.
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
