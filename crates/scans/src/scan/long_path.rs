//! Roots of a walk whose paths are longer than a system call takes: a directory on the way is
//! opened piece by piece, and the rest of the path starts from there.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use fathom_walk::NextRoot;
use rustix::fs::{CWD, Mode, OFlags, openat};

use fathom_inventory::store::PATH_BYTES_MAX;

/// Opens the directories from which long paths start. The last one stays open, because the paths of
/// the directories around it start there, too.
#[derive(Debug, Default)]
pub(super) struct PathOpener {
    base: Option<(Vec<u8>, Arc<OwnedFd>)>,
}

impl PathOpener {
    /// Returns the root at `path`. If a directory on the way cannot be opened, the root is that
    /// directory, whose error the walk then reports.
    pub(super) fn root(&mut self, path: &[u8]) -> NextRoot {
        let ends = ends(path);
        let piece = |at: usize| piece(path, &ends, at);
        let known = self.base.take().filter(|(known, _)| path.starts_with(known));
        let at = known.as_ref().and_then(|(known, _)| ends.iter().position(|end| *end == known.len()));
        let (mut next, mut base) = match (at, known) {
            (Some(at), Some((_, base))) => (at + 1, Some(base)),
            _ => (0, None),
        };
        while next < ends.len() {
            let from = base.as_ref().map_or(CWD, |base| base.as_fd());
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            match openat(from, piece(next), flags, Mode::empty()) {
                Ok(fd) => base = Some(Arc::new(fd)),
                Err(_) => break,
            }
            next += 1;
        }
        let name = piece(next);
        let Some(base) = base else { return NextRoot::Path(name) };
        self.base = Some((path[..ends[next - 1]].to_vec(), Arc::clone(&base)));
        NextRoot::At(base, name)
    }
}

/// Returns the offsets of the slashes at which a path is cut into pieces of at most
/// [`PATH_BYTES_MAX`] bytes; none if it is one.
fn ends(path: &[u8]) -> Vec<usize> {
    let (mut ends, mut start) = (Vec::new(), 0);
    while path.len() - start > PATH_BYTES_MAX {
        let slash = path[start..=start + PATH_BYTES_MAX].iter().rposition(|byte| *byte == b'/');
        // No name is as long as a path.
        let Some(slash) = slash.filter(|slash| *slash > 0) else { break };
        ends.push(start + slash);
        start += slash + 1;
    }
    ends
}

/// Returns the piece number `at` of a path that is cut at `ends`.
fn piece(path: &[u8], ends: &[usize], at: usize) -> CString {
    let start = at.checked_sub(1).map_or(0, |before| ends[before] + 1);
    let end = ends.get(at).copied().unwrap_or(path.len());
    CString::new(&path[start..end]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn pieces_are_short_and_make_the_path() {
        for length in [0, 1, 10, 255] {
            let name = vec![b'x'; length];
            for depth in [1, 40, 1000, 5000] {
                let path = vec![&name[..]; depth].join(&b'/');
                let ends = ends(&path);
                let pieces: Vec<_> =
                    (0..=ends.len()).map(|at| piece(&path, &ends, at).into_bytes()).collect();
                assert!(pieces.iter().all(|piece| piece.len() <= PATH_BYTES_MAX), "{length} {depth}");
                assert_eq!(pieces.join(&b'/'), path, "{length} {depth}");
                assert!(length == 0 || path.len() > PATH_BYTES_MAX || pieces.len() == 1);
            }
        }
    }

    #[test]
    fn what_is_missing_on_the_way_is_the_root() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().as_os_str().as_bytes().to_vec();
        let missing = [&top[..], b"/", &vec![&[b'y'; 200][..]; 60].join(&b'/')].concat();
        let NextRoot::Path(path) = PathOpener::default().root(&missing) else { panic!("nothing is open") };
        assert!(missing.starts_with(path.as_bytes()) && path.as_bytes().len() <= PATH_BYTES_MAX);
        let NextRoot::Path(path) = PathOpener::default().root(&top) else { panic!("a short path") };
        assert_eq!(path.as_bytes(), top);
    }
}
