//! The listing of a directory by a model and by std.

use std::ffi::{CStr, CString};
use std::fs::Metadata;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirEntryExt, FileTypeExt, MetadataExt};
use std::path::Path;

use fathom_io::sys::CWD;
use fathom_io::{Dir, Errno, Fields, FileTime, FileType, Follow, Meta, MetadataModel, Names};

/// An entry with its metadata, without fields that not all models report.
pub(crate) type Entry = (Vec<u8>, u64, FileType, Result<Meta, Errno>);

pub(crate) const EVERYTHING: Fields = Fields::ALL.union(Fields::BIRTH);

pub(crate) fn c(path: impl AsRef<Path>) -> CString {
    CString::new(path.as_ref().as_os_str().as_bytes()).unwrap()
}

pub(crate) async fn open<M: MetadataModel>(model: &M, path: &Path) -> Dir {
    model.open(CWD, &c(path), Follow::No).await.unwrap()
}

/// Reads the metadata of the entry `name` of `dir`.
pub(crate) async fn stat<M: MetadataModel>(
    model: &M,
    dir: &Dir,
    name: &CStr,
    follow: Follow,
) -> Result<Meta, Errno> {
    let mut names = Names::new();
    names.push(name, 0, FileType::Unknown).unwrap();
    let mut out = Vec::new();
    model.stat(dir.as_fd(), &names, 0..1, follow, EVERYTHING, &mut out).await;
    assert_eq!(out.len(), 1);
    out[0].expect("stat is on").map(common_fields)
}

/// Clears the fields that not all models report. POSIX has no creation time.
pub(crate) fn common_fields(meta: Meta) -> Meta {
    let posix = cfg!(feature = "posix");
    let btime = if posix { None } else { meta.btime };
    let fields = meta.fields.intersection(if posix { Fields::ALL } else { EVERYTHING });
    Meta { mount_root: None, attributes: None, btime, fields, ..meta }
}

/// Lists `dir` in batches of `limit`.
pub(crate) async fn list<M: MetadataModel>(model: &M, dir: &Dir, limit: usize, follow: Follow) -> Vec<Entry> {
    let (mut names, mut metas, mut entries) = (Names::new(), Vec::new(), Vec::new());
    loop {
        names.clear();
        let more = model.read(dir, &mut names, limit).await.unwrap();
        assert!(names.len() <= limit);
        assert!(!names.is_empty() || !more, "a batch before the end has entries");
        model.stat(dir.as_fd(), &names, 0..names.len(), follow, EVERYTHING, &mut metas).await;
        assert_eq!(metas.len(), names.len());
        entries.extend(names.iter().zip(&metas).map(|(name, meta)| {
            let meta = meta.expect("stat is on").map(common_fields);
            (name.name.to_bytes().to_vec(), name.ino, name.file_type, meta)
        }));
        if !more {
            return entries;
        }
    }
}

/// Lists the directory at `path` with std.
pub(crate) fn list_std(path: &Path, follow: Follow) -> Vec<Entry> {
    let entry = |entry: std::fs::DirEntry| {
        let metadata = match follow {
            Follow::Yes => std::fs::metadata(entry.path()),
            Follow::No => std::fs::symlink_metadata(entry.path()),
        };
        let meta = metadata.as_ref().map(meta).map_err(|error| Errno::from_io_error(error).unwrap());
        (entry.file_name().into_vec(), entry.ino(), file_type(entry.file_type().unwrap()), meta)
    };
    std::fs::read_dir(path).unwrap().map(|found| entry(found.unwrap())).collect()
}

fn file_type(from: std::fs::FileType) -> FileType {
    let kinds = [
        (from.is_file(), FileType::Regular),
        (from.is_dir(), FileType::Directory),
        (from.is_symlink(), FileType::Symlink),
        (from.is_fifo(), FileType::Fifo),
        (from.is_socket(), FileType::Socket),
        (from.is_block_device(), FileType::Block),
        (from.is_char_device(), FileType::Char),
    ];
    kinds.into_iter().find(|(is, _)| *is).unwrap().1
}

pub(crate) fn meta(from: &Metadata) -> Meta {
    let stamp = |sec, nsec: i64| FileTime { sec, nsec: u32::try_from(nsec).unwrap() };
    let btime = from.created().ok().filter(|_| !cfg!(feature = "posix")).map(|time| {
        let since = time.duration_since(std::time::UNIX_EPOCH).unwrap();
        stamp(since.as_secs().cast_signed(), i64::from(since.subsec_nanos()))
    });
    Meta {
        dev: from.dev(),
        ino: from.ino(),
        size: i64::try_from(from.size()).unwrap(),
        blocks: from.blocks(),
        mode: from.mode(),
        nlink: from.nlink(),
        uid: from.uid(),
        gid: from.gid(),
        atime: stamp(from.atime(), from.atime_nsec()),
        mtime: stamp(from.mtime(), from.mtime_nsec()),
        ctime: stamp(from.ctime(), from.ctime_nsec()),
        btime,
        mount_root: None,
        attributes: None,
        fields: if btime.is_some() { EVERYTHING } else { Fields::ALL },
    }
}
