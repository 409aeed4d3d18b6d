//! The working directory of a single thread: other threads keep theirs, and a directory without
//! search permission is refused.

#![cfg(all(target_os = "linux", not(feature = "posix")))]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::fs::{self, Permissions};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::{env, thread};

use fathom_io::sys::{self, CWD};
use fathom_io::{Fields, Follow};

/// User ID of the user nobody.
const NOBODY: u32 = 65534;

#[test]
fn enter_changes_the_working_directory_of_the_calling_thread_alone() {
    let temp = tempfile::tempdir().unwrap();
    for name in ["open", "unsearchable"] {
        fs::create_dir(temp.path().join(name)).unwrap();
        fs::write(temp.path().join(name).join("f"), b"x").unwrap();
    }
    fs::set_permissions(temp.path(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(temp.path().join("unsearchable"), Permissions::from_mode(0o444)).unwrap();
    let before = env::current_dir().unwrap();
    // Now, as another user may not search the directories above.
    let open = temp.path().join("open").canonicalize().unwrap();
    let worker = || {
        let dirs = ["open", "unsearchable"].map(|name| fs::File::open(temp.path().join(name)).unwrap());
        if !sys::enter(dirs[0].as_fd()) {
            println!("skipped: unshare(2) is forbidden");
            return;
        }
        assert_eq!(env::current_dir().unwrap(), open);
        let stat = |at| sys::stat(at, c"f", Follow::No, Fields::ALL.union(Fields::LOCAL));
        assert_eq!(stat(CWD), stat(dirs[0].as_fd()));
        assert!(stat(CWD).is_ok());
        if rustix::process::geteuid().is_root()
            && rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(NOBODY)).is_err()
        {
            println!("skipped: this root user may not change its user ID");
            return;
        }
        assert!(!sys::enter(dirs[1].as_fd()));
        assert_eq!(env::current_dir().unwrap(), open);
    };
    thread::scope(|scope| scope.spawn(worker).join().unwrap());
    assert_eq!(env::current_dir().unwrap(), before);
    fs::set_permissions(temp.path().join("unsearchable"), Permissions::from_mode(0o755)).unwrap();
}
