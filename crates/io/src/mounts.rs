//! The mount table of the process.

use std::ffi::CString;

use crate::sys::makedev;

/// A mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Path of the mount point, a directory or a file.
    pub point: CString,
    /// Device number of the filesystem (`st_dev`).
    pub dev: u64,
    /// Type of the filesystem.
    pub kind: Vec<u8>,
    /// Source of the mount. Its form depends on the filesystem: a block device, `server:/export`,
    /// or an arbitrary name.
    pub source: Vec<u8>,
    /// Options of the mount, such as `rw,noatime`.
    pub options: Vec<u8>,
    /// Whether the root of the mount is not the root of the filesystem, but a directory or a single
    /// file in it.
    pub is_part: bool,
}

/// Returns the mounts that are visible to this process (proc_pid_mountinfo(5)).
///
/// # Errors
/// If the table cannot be read, for example because /proc is not mounted.
///
/// ```
/// # if !cfg!(target_os = "linux") { return Ok(()) }
/// for mount in fathom_io::mounts::read()? {
///     println!("{:?} on {:?}", String::from_utf8_lossy(&mount.source), mount.point);
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn read() -> std::io::Result<Vec<Mount>> {
    let table = std::fs::read("/proc/self/mountinfo")?;
    Ok(table.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

/// Returns the last mount of the filesystem with the device number `dev` (`st_dev`) that is visible
/// to this process.
///
/// ```
/// use fathom_io::{mounts, sys, Fields, Follow};
///
/// let proc = sys::stat(sys::CWD, c"/proc", Follow::No, Fields::IDENTITY)?;
/// if let Some(mount) = mounts::by_device(proc.dev) {
///     assert_eq!(mount.kind, b"proc");
/// }
/// # Ok::<(), fathom_io::Errno>(())
/// ```
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

/// Decodes a field. Space, tab, newline and backslash are encoded as a backslash and three octal
/// digits (proc_pid_mountinfo(5)).
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
    fn octal_escapes_are_decoded() {
        assert_eq!(unescape(br"/mnt/a\040b\134c\0"), br"/mnt/a b\c\0");
    }

    #[test]
    fn a_line_of_the_mount_table_is_parsed() {
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
