//! Absolute links that stay within the directory. openat2(2) refuses all absolute links beneath a
//! directory, so this module replaces the link in the path by its text and looks up the path again.
//!
//! openat2(2) opens every file and link beneath the directory, also the last one. An attacker who
//! exchanges links concurrently can only choose among files beneath the directory. Whether a target
//! stays within is decided by its text, so nothing outside the directory is accessed.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{OFlags, readlink, readlinkat};

use super::{Beneath, DIR_FLAGS};
use crate::Errno;

/// Maximum number of links replaced, which is the limit of the kernel (path_resolution(7)).
const LINKS_MAX: usize = 40;

impl Beneath {
    /// Opens `path`, which openat2(2) has refused with EXDEV. Replaces up to [`LINKS_MAX`] links.
    /// The number of calls for each grows with the logarithm of the number of path components.
    ///
    /// # Errors
    /// EXDEV if the path does leave the directory, ELOOP for too many links, and as openat2(2).
    pub(super) fn open_by_text(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut path = path.to_vec();
        for _ in 0..LINKS_MAX {
            path = self.replace_link(&path)?;
            match self.open_beneath(&path, flags) {
                Err(Errno::XDEV) => {}
                opened => return opened,
            }
        }
        Err(Errno::LOOP)
    }

    /// Returns `path` with the first link that leaves the directory replaced by its text.
    fn replace_link(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        if path.starts_with(b"/") {
            return Err(Errno::XDEV);
        }
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let ends: Vec<usize> = slashes.chain([path.len()]).collect();
        // All prefixes that include the first link that leaves the directory also leave it, so a
        // binary search finds that link.
        let first = ends.partition_point(|end| !self.leaves(path.get(..*end).unwrap_or_default()));
        // No prefix leaves the directory any more: the links have changed since openat2(2) refused.
        let Some(end) = ends.get(first).copied() else { return Ok(path.to_vec()) };
        let start = first.checked_sub(1).and_then(|before| ends.get(before)).map_or(0, |slash| slash + 1);
        let (before, rest) = (path.get(..start).unwrap_or_default(), path.get(end..).unwrap_or_default());
        let target = self.read_link(before, path.get(start..end).unwrap_or_default())?;
        match target.first() {
            Some(b'/') => Ok([&self.below(&target).ok_or(Errno::XDEV)?, rest].concat()),
            _ => Ok([before, &target, rest].concat()),
        }
    }

    fn leaves(&self, path: &[u8]) -> bool {
        !path.is_empty() && self.open_beneath(path, OFlags::PATH | OFlags::CLOEXEC).err() == Some(Errno::XDEV)
    }

    /// Returns the text of the link `name` in the directory `dir`. A component that is not a link,
    /// such as `..`, leaves the directory by itself: EXDEV.
    fn read_link(&self, dir: &[u8], name: &[u8]) -> Result<Vec<u8>, Errno> {
        let dir = self.open_beneath(if dir.is_empty() { b"." } else { dir }, DIR_FLAGS)?;
        match readlinkat(&dir, name, Vec::new()) {
            Err(Errno::INVAL) => Err(Errno::XDEV),
            target => Ok(target?.into_bytes()),
        }
    }

    /// Returns the absolute path `target` relative to the directory, if it begins with the path by
    /// which the directory was opened, or with the path that the kernel currently has for it.
    fn below(&self, target: &[u8]) -> Option<Vec<u8>> {
        let current = || readlink(format!("/proc/self/fd/{}", self.dir.as_raw_fd()), Vec::new()).ok();
        let named = self.path.as_ref().and_then(|path| strip(path.as_os_str().as_encoded_bytes(), target));
        named.or_else(|| strip(current()?.to_bytes(), target))
    }
}

/// Returns `target` without the prefix `dir`. Both are absolute paths.
fn strip(dir: &[u8], target: &[u8]) -> Option<Vec<u8>> {
    let mut rest = names(target);
    if !names(dir).all(|name| rest.next() == Some(name)) {
        return None;
    }
    let mut below = rest.collect::<Vec<_>>().join(&b'/');
    if below.is_empty() || target.ends_with(b"/") {
        // A trailing slash is valid for directories alone, which `.` keeps.
        below.extend_from_slice(if below.is_empty() { b"." } else { b"/." });
    }
    Some(below)
}

fn names(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".")
}

/// Returns `path` as an absolute path. `None` if the working directory has no path.
pub(super) fn absolute(path: &std::path::Path) -> Option<PathBuf> {
    std::path::absolute(path).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsFd;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::beneath::{Links, LookupMode, stat};

    fn tree() -> (tempfile::TempDir, PathBuf) {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().canonicalize().unwrap().join("root");
        fs::create_dir_all(root.join("dir/deep")).unwrap();
        fs::write(root.join("../secret"), "no").unwrap();
        fs::write(root.join("dir/file"), "yes").unwrap();
        (top, root)
    }

    fn opened(root: &Path, path: &str) -> Result<u64, Errno> {
        let beneath = Beneath::new(root, Links::Within).unwrap();
        assert_eq!(beneath.stat(path.as_bytes(), LookupMode::Cached).unwrap_or(None), None, "{path}");
        let file = beneath.open(path.as_bytes(), LookupMode::Blocking)?.unwrap();
        Ok(stat(file.as_fd()).unwrap().ino)
    }

    #[test]
    fn absolute_links_within_are_followed() {
        use std::os::unix::fs::MetadataExt;
        let (_top, root) = tree();
        symlink(root.join("dir/file"), root.join("file")).unwrap();
        symlink(root.join("dir"), root.join("way")).unwrap();
        symlink(&root, root.join("dir/deep/top")).unwrap();
        symlink("file", root.join("chain")).unwrap();
        symlink("../../file", root.join("dir/deep/up")).unwrap();
        symlink(format!("{}/./dir//deep/../file", root.display()), root.join("odd")).unwrap();
        symlink(format!("{}/way/", root.display()), root.join("slash")).unwrap();
        symlink(format!("{}/dir/file/", root.display()), root.join("no-dir")).unwrap();
        symlink("root", root.join("../alias")).unwrap();
        symlink(root.join("../alias/dir/file"), root.join("by-alias")).unwrap();
        let file = fs::metadata(root.join("dir/file")).unwrap().ino();
        for path in [
            "file",
            "way/file",
            "dir/deep/top/dir/file",
            "dir/deep/top/way/deep/top/file",
            "chain",
            "dir/deep/up",
            "odd",
            "slash/file",
        ] {
            assert_eq!(opened(&root, path), Ok(file), "{path}");
        }
        assert_eq!(opened(&root, "no-dir"), Err(Errno::NOTDIR));
        assert_eq!(opened(&root, "way/none"), Err(Errno::NOENT));
        // Links may begin with the path by which the directory was opened, or with the current one.
        assert_eq!(opened(&root, "by-alias"), Err(Errno::XDEV));
        for path in ["by-alias", "file"] {
            assert_eq!(opened(&root.join("../alias"), path), Ok(file), "{path}");
        }
    }

    #[test]
    fn links_that_leave_the_directory_are_refused() {
        let (_top, root) = tree();
        symlink(root.join("../secret"), root.join("out")).unwrap();
        symlink(root.parent().unwrap().join("secret"), root.join("beside")).unwrap();
        symlink(format!("{}x/file", root.display()), root.join("longer")).unwrap();
        symlink("/etc/passwd", root.join("far")).unwrap();
        symlink("/", root.join("slash")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink(root.join("up/secret"), root.join("by-up")).unwrap();
        symlink("dir/../../root/dir/file", root.join("out-and-in")).unwrap();
        for path in [
            "out",
            "beside",
            "longer",
            "far",
            "slash",
            "slash/etc/passwd",
            "up/secret",
            "by-up",
            "out-and-in",
        ] {
            assert_eq!(opened(&root, path), Err(Errno::XDEV), "{path}");
        }
        for (links, expected) in [(Links::Never, Errno::LOOP), (Links::Within, Errno::XDEV)] {
            let beneath = Beneath::new(&root, links).unwrap();
            assert_eq!(beneath.open(b"out", LookupMode::Blocking).unwrap_err(), expected);
        }
    }

    #[test]
    fn links_are_followed_up_to_the_limit() {
        let (_top, root) = tree();
        symlink(root.join("loop"), root.join("loop")).unwrap();
        symlink(root.join("longer/x"), root.join("longer")).unwrap();
        assert_eq!(opened(&root, "loop"), Err(Errno::LOOP));
        assert_eq!(opened(&root, "longer"), Err(Errno::LOOP));
        for at in 0..=LINKS_MAX {
            let next = if at == 0 { "dir/file".to_owned() } else { (at - 1).to_string() };
            symlink(root.join(next), root.join(at.to_string())).unwrap();
        }
        assert!(opened(&root, &(LINKS_MAX - 1).to_string()).is_ok());
        assert_eq!(opened(&root, &LINKS_MAX.to_string()), Err(Errno::LOOP));
    }

    #[test]
    fn links_exchanged_concurrently_never_lead_outside() {
        let (_top, root) = tree();
        let (secret, done) = (
            stat(fs::File::open(root.join("../secret")).unwrap().as_fd()).unwrap().ino,
            AtomicBool::new(false),
        );
        let targets = [
            root.join("dir/file"),
            root.join("../secret"),
            "../secret".into(),
            "dir/file".into(),
            root.join("dir"),
        ];
        symlink(&targets[0], root.join("link")).unwrap();
        let beneath = Beneath::new(&root, Links::Within).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for target in targets.iter().cycle().take_while(|_| !done.load(Ordering::Relaxed)) {
                    symlink(target, root.join("new")).unwrap();
                    fs::rename(root.join("new"), root.join("link")).unwrap();
                }
            });
            let mut found = 0;
            for _ in 0..5000 {
                if let Ok(Some(file)) = beneath.open(b"link", LookupMode::Blocking) {
                    assert_ne!(stat(file.as_fd()).unwrap().ino, secret);
                    found += 1;
                }
            }
            done.store(true, Ordering::Relaxed);
            assert!(found > 0);
        });
    }
}
