//! Which directories are mount points: a directory that is one of its own ancestors is no corruption if one is.

use std::ffi::CString;

use fathom_walk::{Errno, stat};

/// Device and inode numbers of all local mount points, read when first asked for.
#[derive(Debug, Default)]
pub(crate) struct Mounts(Option<Vec<(u64, u64)>>);

impl Mounts {
    pub(crate) fn has(&mut self, id: (u64, u64)) -> bool {
        self.0.get_or_insert_with(|| ids().unwrap_or_default()).contains(&id)
    }
}

fn ids() -> std::io::Result<Vec<(u64, u64)>> {
    let table = std::fs::read("/proc/self/mountinfo")?;
    let points =
        table.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    Ok(points.filter_map(|point| identify(&unescape(point)).ok()).collect())
}

fn identify(path: &[u8]) -> Result<(u64, u64), Errno> {
    let path = CString::new(path).map_err(|_| Errno::INVAL)?;
    stat(&path).map(|meta| meta.id())
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
    fn the_root_directory_is_a_mount_point() {
        assert!(Mounts::default().has(identify(b"/").unwrap()));
        assert!(!Mounts::default().has((0, 0)));
    }
}
