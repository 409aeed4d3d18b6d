//! The mount table: what is mounted where.

use std::ffi::CString;

use crate::sys::makedev;

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The directory, or the file, it is mounted on.
    pub point: CString,
    /// Device (`st_dev`) of what is mounted.
    pub dev: u64,
    /// The type of the file system.
    pub kind: Vec<u8>,
    /// What it is on, in the file system's own words: a block device, `server:/export`, or just a name.
    pub source: Vec<u8>,
    /// How it is mounted there, as `rw,noatime`.
    pub options: Vec<u8>,
    /// A part of the file system, perhaps a single file, not all of it.
    pub is_part: bool,
}

/// The mounts this process sees (proc_pid_mountinfo(5)).
///
/// # Errors
/// If there is no such table.
pub fn read() -> std::io::Result<Vec<Mount>> {
    let table = std::fs::read("/proc/self/mountinfo")?;
    Ok(table.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

/// The last mount of what has this device number (`st_dev`), of those this process sees.
#[must_use]
pub fn by_device(dev: u64) -> Option<Mount> {
    read().ok()?.into_iter().rfind(|mount| mount.dev == dev)
}

fn parse(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let numbers = std::str::from_utf8(fields.nth(2)?).ok()?.split_once(':')?;
    let dev = makedev(numbers.0.parse().ok()?, numbers.1.parse().ok()?);
    let is_part = fields.next()? != b"/";
    let point = CString::new(unescape(fields.next()?)).ok()?;
    let options = fields.next()?.to_vec();
    let mut after = fields.skip_while(|field| *field != b"-").skip(1);
    let kind = after.next()?.to_vec();
    let source = unescape(after.next()?);
    Some(Mount { point, dev, kind, source, options, is_part })
}

/// proc_pid_mountinfo(5): space, tab, newline and backslash are written as three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        match (first, octal(after)) {
            (b'\\', Some(byte)) => {
                out.push(byte);
                rest = &after[3..];
            }
            _ => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

fn octal(text: &[u8]) -> Option<u8> {
    let digits = text.get(..3).and_then(|digits| std::str::from_utf8(digits).ok())?;
    u8::from_str_radix(digits, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_the_mount_table_are_undone() {
        assert_eq!(unescape(br"/mnt/a\040b\134c\0"), br"/mnt/a b\c\0");
    }

    #[test]
    fn a_line_of_the_mount_table_is_read() {
        let line =
            br"36 35 98:5 /mnt1 /mnt\0402 rw,noatime master:1 shared:2 - ext3 /dev/my\040root rw,errors=continue";
        let mount = Mount {
            point: c"/mnt 2".to_owned(),
            dev: makedev(98, 5),
            kind: b"ext3".to_vec(),
            source: b"/dev/my root".to_vec(),
            options: b"rw,noatime".to_vec(),
            is_part: true,
        };
        assert_eq!(parse(line), Some(mount));
        let whole = parse(b"22 1 0:21 / /proc rw - proc proc rw").unwrap();
        assert_eq!((whole.is_part, whole.kind.as_slice()), (false, b"proc".as_slice()));
        for cut in 0..line.len() {
            assert!(parse(&line[..cut]).is_none_or(|mount| mount.source.len() <= 12));
        }
    }
}
