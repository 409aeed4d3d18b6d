//! Files without permission. Root may read all files, so as root the case runs in a thread of
//! another user: on Linux, the user ID belongs to the thread, and threads that a model starts
//! inherit it.

use std::fs::{self, Permissions};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fathom_io::{Errno, Fields, Follow, MetadataModel};

use crate::listing::{list, open, stat};

/// User ID of the user nobody.
const NOBODY: u32 = 65534;

pub(crate) fn missing_permissions_are_errors<M: MetadataModel>(make: impl Fn() -> Option<M> + Sync) {
    let temp = tempfile::tempdir().unwrap();
    let modes = [("unreadable", 0o311), ("unsearchable", 0o444), ("shut", 0o000), ("open", 0o755)];
    for (name, mode) in modes {
        fs::create_dir(temp.path().join(name)).unwrap();
        fs::write(temp.path().join(name).join("f"), b"").unwrap();
        fs::set_permissions(temp.path().join(name), Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(temp.path(), Permissions::from_mode(0o755)).unwrap();
    let unprivileged = || {
        if !rustix::process::geteuid().is_root() || (become_nobody() && temp.path().is_dir()) {
            denied(&make, temp.path());
        } else {
            crate::skip("root may not change its user ID here, or that user cannot search TMPDIR");
        }
    };
    std::thread::scope(|scope| scope.spawn(unprivileged).join().unwrap());
    // Otherwise a user who is not root could not remove the tree.
    for (name, _) in modes {
        fs::set_permissions(temp.path().join(name), Permissions::from_mode(0o755)).unwrap();
    }
}

#[cfg(target_os = "linux")]
fn become_nobody() -> bool {
    rustix::thread::set_thread_groups(&[]).is_ok()
        && rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(NOBODY)).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn become_nobody() -> bool {
    false
}

fn denied<M: MetadataModel>(make: impl Fn() -> Option<M>, path: &Path) {
    let Some(model) = make() else { return };
    model.run(async {
        let top = open(&model, path).await;
        for (name, errno) in [
            (c"unreadable", Some(Errno::ACCESS)),
            (c"unsearchable", None),
            (c"shut", Some(Errno::ACCESS)),
            (c"open", None),
        ] {
            assert_eq!(model.open(top.as_fd(), name, Follow::No).await.err(), errno, "{name:?}");
            // A stat of the directory takes search permission for its parent only.
            assert!(stat(&model, &top, name, Follow::No).await.is_ok(), "{name:?}");
        }
        let dir = open(&model, &path.join("unsearchable")).await;
        let entries = list(&model, &dir, 10, Follow::No).await;
        assert_eq!((entries[0].0.as_slice(), entries[0].3), (b"f".as_slice(), Err(Errno::ACCESS)));
        assert!(model.stat_dir(&dir, Fields::ALL).await.is_ok());
        assert_eq!(stat(&model, &top, c"shut/f", Follow::No).await, Err(Errno::ACCESS));
        assert!(stat(&model, &top, c"unreadable/f", Follow::No).await.is_ok());
    });
}
