//! Errors of files that cannot be read, and their assignment to entries.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;

use fathom_io::sys::CWD;
use fathom_io::{Errno, Fields, Follow, MetadataModel, Names};
use rustix::fs::{FileType as Kind, Mode};

use crate::listing::{meta, open, stat};

pub(crate) fn open_refuses_files_that_are_not_directories<M: MetadataModel>(make: impl Fn() -> Option<M>) {
    let Some(model) = make() else { return };
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("file"), b"").unwrap();
    rustix::fs::mknodat(CWD, temp.path().join("fifo"), Kind::Fifo, Mode::RWXU, 0).unwrap();
    let long = std::ffi::CString::new([b'x'; 256]).unwrap();
    model.run(async {
        let dir = open(&model, temp.path()).await;
        for follow in [Follow::No, Follow::Yes] {
            for (name, errno) in [
                (c"none", Errno::NOENT),
                (c"", Errno::NOENT),
                (c"file", Errno::NOTDIR),
                (c"fifo", Errno::NOTDIR),
                (c"file/x", Errno::NOTDIR),
                (&*long, Errno::NAMETOOLONG),
            ] {
                let opened = model.open(dir.as_fd(), name, follow).await;
                assert_eq!(opened.err(), Some(errno), "{name:?} {follow:?}");
            }
            assert!(model.open(dir.as_fd(), c".", follow).await.is_ok());
        }
    });
}

pub(crate) fn links_are_followed_on_request_only<M: MetadataModel>(make: impl Fn() -> Option<M>) {
    let Some(model) = make() else { return };
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    fs::create_dir(at("directory")).unwrap();
    fs::write(at("file"), b"12345").unwrap();
    let links = [("a", "directory"), ("b", "a"), ("to file", "file"), ("dangling", "none"), ("loop", "loop")];
    links.iter().for_each(|(name, to)| symlink(to, at(name)).unwrap());
    model.run(async {
        let dir = open(&model, temp.path()).await;
        for (name, through) in [
            (c"a", None),
            (c"b", None),
            (c"to file", Some(Errno::NOTDIR)),
            (c"dangling", Some(Errno::NOENT)),
            (c"loop", Some(Errno::LOOP)),
        ] {
            // Linux returns ENOTDIR for O_DIRECTORY on a link, POSIX ELOOP.
            let opened = model.open(dir.as_fd(), name, Follow::No).await.err();
            assert!([Some(Errno::NOTDIR), Some(Errno::LOOP)].contains(&opened), "{name:?}: {opened:?}");
            assert_eq!(model.open(dir.as_fd(), name, Follow::Yes).await.err(), through, "{name:?}");
        }
        let followed = model.open(dir.as_fd(), c"b", Follow::Yes).await.unwrap();
        let own = model.stat_dir(&followed, Fields::IDENTITY).await.unwrap();
        assert_eq!(own.id(), meta(&fs::metadata(at("directory")).unwrap()).id());

        let target = stat(&model, &dir, c"to file", Follow::Yes).await;
        assert_eq!(target, Ok(meta(&fs::metadata(at("file")).unwrap())));
        let link = stat(&model, &dir, c"to file", Follow::No).await;
        assert_eq!(link, Ok(meta(&fs::symlink_metadata(at("to file")).unwrap())));
        assert_eq!(stat(&model, &dir, c"dangling", Follow::Yes).await, Err(Errno::NOENT));
        assert_eq!(stat(&model, &dir, c"loop", Follow::Yes).await, Err(Errno::LOOP));
        assert!(stat(&model, &dir, c"loop", Follow::No).await.is_ok());
    });
}

pub(crate) fn a_removed_file_is_an_error_of_its_entry_alone<M: MetadataModel>(make: impl Fn() -> Option<M>) {
    let Some(model) = make() else { return };
    let temp = tempfile::tempdir().unwrap();
    (0..200).for_each(|index| fs::write(temp.path().join(format!("f{index}")), b"").unwrap());
    model.run(async {
        let (dir, mut names, mut out) = (open(&model, temp.path()).await, Names::new(), Vec::new());
        assert_eq!(model.read(&dir, &mut names, 1000).await, Ok(false));
        let gone = |name: &str| name.ends_with('7');
        (0..200).map(|index| format!("f{index}")).filter(|name| gone(name)).for_each(|name| {
            fs::remove_file(temp.path().join(name)).unwrap();
        });
        model.stat(dir.as_fd(), &names, 0..names.len(), Follow::No, Fields::ALL, &mut out).await;
        for (name, meta) in names.iter().zip(&out) {
            let vanished = gone(name.name.to_str().unwrap()).then_some(Errno::NOENT);
            assert_eq!(meta.unwrap().err(), vanished, "{name:?}");
        }
        assert_eq!(stat(&model, &dir, c"", Follow::No).await, Err(Errno::NOENT));
    });
}

pub(crate) fn a_directory_removed_while_open_is_empty<M: MetadataModel>(make: impl Fn() -> Option<M>) {
    let Some(model) = make() else { return };
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("d");
    fs::create_dir(&path).unwrap();
    model.run(async {
        let dir = open(&model, &path).await;
        fs::remove_dir(&path).unwrap();
        let mut names = Names::new();
        assert_eq!(model.read(&dir, &mut names, 10).await, Ok(false));
        assert!(names.is_empty());
        assert_eq!(model.stat_dir(&dir, Fields::ALL).await.map(|meta| meta.nlink), Ok(0));
    });
}
