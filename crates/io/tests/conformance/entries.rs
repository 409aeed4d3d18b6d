//! The entries of a directory, their order and their fields.

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use fathom_io::sys::{self, CWD};
use fathom_io::{Dir, Errno, Fields, FileType, Follow, Meta, MetadataModel, Names};
use futures_util::stream::{FuturesUnordered, StreamExt};
use rustix::fs::{AtFlags, FileType as Kind, Mode, Timespec, Timestamps};

use crate::listing::{EVERYTHING, Entry, c, common_fields, list, list_std, meta, open};

/// Creates a file of each type that needs no privileges, with times before the epoch and with
/// fractions of a second.
fn every_kind(dir: &Path) {
    fs::write(dir.join("regular"), vec![7; 5000]).unwrap();
    fs::write(dir.join("empty"), b"").unwrap();
    fs::hard_link(dir.join("regular"), dir.join("second name")).unwrap();
    File::create(dir.join("sparse")).unwrap().set_len(8 << 30).unwrap();
    fs::create_dir(dir.join("directory")).unwrap();
    fs::create_dir_all(dir.join("parent/child")).unwrap();
    symlink("regular", dir.join("link")).unwrap();
    symlink("directory", dir.join("link to a directory")).unwrap();
    symlink("nowhere", dir.join("dangling")).unwrap();
    symlink("looping", dir.join("looping")).unwrap();
    rustix::fs::mknodat(CWD, dir.join("fifo"), Kind::Fifo, Mode::RUSR, 0).unwrap();
    UnixListener::bind(dir.join("socket")).unwrap();
    for (name, sec, nsec) in [("regular", -5, 1), ("empty", 1_700_000_000, 999_999_999)] {
        let time = Timespec { tv_sec: sec, tv_nsec: nsec };
        let times = Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(CWD, dir.join(name), &times, AtFlags::empty()).unwrap();
    }
}

pub(crate) fn every_kind_of_file_has_its_fields<M: MetadataModel>(make: impl Fn() -> Option<M>) {
    let Some(model) = make() else { return };
    let temp = tempfile::tempdir().unwrap();
    every_kind(temp.path());
    for follow in [Follow::No, Follow::Yes] {
        let seen = model.run(async { list(&model, &open(&model, temp.path()).await, 100, follow).await });
        assert_eq!(seen, list_std(temp.path(), follow), "{follow:?}");
        assert_eq!(seen.len(), 12);
    }
    let devices =
        model.run(async { list(&model, &open(&model, Path::new("/dev")).await, 10_000, Follow::No).await });
    let null = devices.iter().find(|entry| entry.0 == b"null").unwrap();
    assert_eq!(null.3, Ok(meta(&fs::symlink_metadata("/dev/null").unwrap())));
    assert_eq!(null.2, FileType::Char);
    model.run(async {
        let dir = open(&model, temp.path()).await;
        // The cheapest call returns the same fields.
        let (mut names, mut dear, mut cheap) = (Names::new(), Vec::new(), Vec::new());
        assert_eq!(model.read(&dir, &mut names, 100).await, Ok(false));
        for follow in [Follow::No, Follow::Yes] {
            model.stat(dir.as_fd(), &names, 0..12, follow, EVERYTHING, &mut dear).await;
            model.stat(dir.as_fd(), &names, 0..12, follow, EVERYTHING.union(Fields::LOCAL), &mut cheap).await;
            let common = |meta: &Option<Result<Meta, Errno>>| meta.unwrap().map(common_fields);
            let [cheap, dear] = [&cheap, &dear].map(|metas| metas.iter().map(common).collect::<Vec<_>>());
            assert_eq!(cheap, dear, "{follow:?}");
        }
        let own = model.stat_dir(&dir, EVERYTHING).await.unwrap();
        assert_eq!(common_fields(own), meta(&fs::metadata(temp.path()).unwrap()));
    });
}

pub(crate) fn metadata_says_which_fields_it_has<M: MetadataModel>(make: impl Fn() -> Option<M>) {
    let Some(model) = make() else { return };
    let temp = tempfile::tempdir().unwrap();
    every_kind(temp.path());
    let each =
        [Fields::SIZE, Fields::BLOCKS, Fields::TIMES, Fields::OWNER, Fields::BIRTH, Fields::ATTRIBUTES];
    // procfs has no creation times.
    for path in [temp.path(), Path::new("/proc/self/")] {
        model.run(async {
            let (dir, mut names, mut metas) = (open(&model, path).await, Names::new(), Vec::new());
            model.read(&dir, &mut names, 10).await.unwrap();
            for set in 0..1_u32 << each.len() {
                let asked = (0..).zip(each).filter(|(bit, _)| set >> bit & 1 == 1);
                let asked = asked.fold(Fields::IDENTITY, |all, (_, field)| all.union(field));
                for how in [Fields::IDENTITY, Fields::LOCAL, Fields::FRESH] {
                    let fields = asked.union(how);
                    let range = 0..names.len();
                    model.stat(dir.as_fd(), &names, range, Follow::No, fields, &mut metas).await;
                    metas.push(Some(model.stat_dir(&dir, fields).await));
                    for meta in metas.iter().filter_map(|meta| meta.unwrap().ok()) {
                        assert!(asked.contains(meta.fields), "{asked:?}, but {meta:?}");
                        assert!(meta.has(asked.intersection(Fields::ALL)), "{asked:?}, but {meta:?}");
                        let optional = [
                            (Fields::BIRTH, meta.btime.is_some()),
                            (Fields::ATTRIBUTES, meta.attributes.is_some()),
                        ];
                        for (field, is_known) in optional {
                            let wanted = asked.contains(field);
                            assert_eq!(meta.has(field), wanted && is_known, "{asked:?}: {meta:?}");
                        }
                    }
                }
            }
            let meta = model.stat_dir(&dir, EVERYTHING).await.unwrap();
            let has_btime = fs::metadata(path).unwrap().created().is_ok();
            // POSIX has no creation time, but std has it where the system does.
            assert!(meta.has(Fields::BIRTH) == has_btime || cfg!(feature = "posix"), "{}", path.display());
        });
    }
}

pub(crate) fn names_may_have_any_byte_and_length<M: MetadataModel>(make: impl Fn() -> Option<M>) {
    let Some(model) = make() else { return };
    let temp = tempfile::tempdir().unwrap();
    let bytes = (1..=255).filter(|byte| !b"/.".contains(byte)).map(|byte| vec![byte]);
    let lengths = (2..=255).map(|len| vec![b'n'; len]);
    let odd = [b"...".to_vec(), b". ".to_vec(), b"\xff\xfe\n\t".to_vec(), vec![0xe9; 255]];
    let made: Vec<Vec<u8>> = bytes.chain(lengths).chain(odd).collect();
    for name in &made {
        // These names are valid on common filesystems.
        fs::write(temp.path().join(OsStr::from_bytes(name)), name).unwrap();
    }
    let seen = model.run(async { list(&model, &open(&model, temp.path()).await, 64, Follow::No).await });
    assert_eq!(seen.len(), made.len());
    assert_eq!(seen, list_std(temp.path(), Follow::No));
}

pub(crate) fn a_range_is_returned_in_order_without_excluded_entries<M: MetadataModel>(
    make: impl Fn() -> Option<M>,
) {
    let Some(model) = make() else { return };
    let temp = tempfile::tempdir().unwrap();
    for index in 0..40 {
        fs::write(temp.path().join(format!("f{index}")), vec![0; index]).unwrap();
        fs::create_dir(temp.path().join(format!("d{index}"))).unwrap();
    }
    model.run(async {
        let dir = open(&model, temp.path()).await;
        let mut names = Names::new();
        assert_eq!(model.read(&dir, &mut names, 1000).await, Ok(false));
        names.skip_stat(FileType::Directory);
        names.sort_by_inode();
        let mut out = vec![None; 7];
        for range in [0..80, 10..50, 79..80, 33..33] {
            model.stat(dir.as_fd(), &names, range.clone(), Follow::No, Fields::SIZE, &mut out).await;
            assert_eq!(out.len(), range.len());
            for (name, meta) in names.range(range).zip(&out) {
                let size =
                    name.name.to_str().unwrap().strip_prefix('f').map(|size| size.parse::<i64>().unwrap());
                assert_eq!(meta.map(|meta| meta.unwrap().size), size, "{name:?}");
                assert!(meta.is_none_or(|meta| meta.unwrap().ino == name.ino));
            }
        }
    });
}

/// Returns a directory of `count` empty files. It stays in the target directory for all models and
/// later runs, because creating the files takes longer than the tests.
fn wide(count: usize) -> PathBuf {
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let shared = tmp.join(format!("wide-{count}"));
    if !shared.exists() {
        let new = tempfile::tempdir_in(tmp).unwrap();
        for index in 0..count {
            File::create(new.path().join(format!("a name of some length {index}"))).unwrap();
        }
        // Another test may have been faster: then its directory stays, and this one is removed.
        let _ = fs::rename(new.path(), &shared);
    }
    shared
}

fn names_of(entries: &[Entry]) -> Vec<(Vec<u8>, u64, FileType)> {
    entries.iter().map(|(name, ino, file_type, _)| (name.clone(), *ino, *file_type)).collect()
}

/// Reads the names in batches of `limit`.
async fn read_all<M: MetadataModel>(model: &M, dir: &Dir, limit: usize) -> Vec<(Vec<u8>, u64, FileType)> {
    read_to(model, dir, limit, None).await
}

/// Reads the names in batches of `limit`. The directory ends at the cookie `end`.
async fn read_to<M: MetadataModel>(
    model: &M,
    dir: &Dir,
    limit: usize,
    end: Option<u64>,
) -> Vec<(Vec<u8>, u64, FileType)> {
    let (mut names, mut all) = (Names::new(), Vec::new());
    loop {
        names.clear();
        names.end_at(end);
        let more = model.read(dir, &mut names, limit).await.unwrap();
        assert!(names.len() == limit || !more, "only the last batch is shorter than the limit");
        all.extend(names.iter().map(|name| (name.name.to_bytes().to_vec(), name.ino, name.file_type)));
        if !more {
            return all;
        }
    }
}

pub(crate) fn a_limit_may_be_at_any_entry<M: MetadataModel>(make: impl Fn() -> Option<M>) {
    let Some(model) = make() else { return };
    let wide = wide(10_500);
    let there = list_std(&wide, Follow::No);
    model.run(async {
        for limit in [7, 1000, 4096, 9_999, 10_499, 10_500, usize::MAX] {
            let seen = read_all(&model, &open(&model, &wide).await, limit).await;
            assert_eq!(seen, names_of(&there), "{limit}");
        }
        let seen = list(&model, &open(&model, &wide).await, 3000, Follow::No).await;
        assert_eq!(seen, there);
        // The limit applies to the entries in the batch, so a batch may grow.
        let (dir, mut names) = (open(&model, &wide).await, Names::new());
        for limit in [1, 2, 2, 100, 9_000] {
            assert_eq!(model.read(&dir, &mut names, limit).await, Ok(true));
            assert_eq!(names.len(), limit);
        }
        assert_eq!(model.read(&dir, &mut names, 20_000).await, Ok(false));
        assert_eq!(
            names.iter().map(|name| name.ino).collect::<Vec<_>>(),
            there.iter().map(|entry| entry.1).collect::<Vec<_>>()
        );
    });
}

pub(crate) fn reading_continues_at_a_cookie<M: MetadataModel>(make: impl Fn() -> Option<M>) {
    let Some(model) = make() else { return };
    let wide = wide(5_000);
    let there = names_of(&list_std(&wide, Follow::No));
    model.run(async {
        for cut in [1, 100, 2_500, 4_999] {
            let mut names = Names::new();
            assert_eq!(model.read(&open(&model, &wide).await, &mut names, cut).await, Ok(true));
            let again = open(&model, &wide).await;
            sys::seek(&again, names.cookie()).unwrap();
            assert_eq!(read_all(&model, &again, 1_000).await, there[cut..], "{cut}");
        }
    });
}

pub(crate) fn the_end_cookie_loses_no_entry<M: MetadataModel>(make: impl Fn() -> Option<M>) {
    let Some(model) = make() else { return };
    for count in [0, 1, 2, 150, fathom_cases::count(5_000).max(2_000)] {
        let wide = wide(count);
        let there = names_of(&list_std(&wide, Follow::No));
        model.run(async {
            for limit in [1, 7, count.max(1), 100_000] {
                let dir = open(&model, &wide).await;
                let end = model.magic(&dir).and_then(fathom_io::filesystem::end_cookie);
                assert_eq!(read_to(&model, &dir, limit, end).await, there, "{count} by {limit}");
            }
        });
    }
}

pub(crate) fn trees_deeper_than_path_max_are_read<M: MetadataModel>(make: impl Fn() -> Option<M>) {
    const LEVELS: usize = 30;
    let Some(model) = make() else { return };
    let temp = tempfile::tempdir().unwrap();
    let name = CString::new([b'd'; 200]).unwrap();
    let mut dir = Dir::from_fd(File::open(temp.path()).unwrap().into());
    for _ in 0..LEVELS {
        rustix::fs::mkdirat(dir.as_fd(), name.as_c_str(), Mode::RWXU).unwrap();
        dir = sys::open_dir(dir.as_fd(), &name, Follow::No).unwrap();
    }
    rustix::fs::symlinkat("target", dir.as_fd(), "leaf").unwrap();
    model.run(async {
        let mut dir = open(&model, temp.path()).await;
        for _ in 0..LEVELS {
            let entries = list(&model, &dir, 10, Follow::No).await;
            assert_eq!(entries.len(), 1);
            let child = model.open(dir.as_fd(), &name, Follow::No).await.unwrap();
            let meta = model.stat_dir(&child, EVERYTHING).await.map(common_fields);
            assert_eq!((entries[0].1, entries[0].3), (meta.unwrap().ino, meta));
            dir = child;
        }
        let leaf = list(&model, &dir, 10, Follow::No).await;
        assert_eq!((leaf[0].0.as_slice(), leaf[0].3.unwrap().size), (b"leaf".as_slice(), 6));
    });
}

pub(crate) fn many_directories_are_read_concurrently<M: MetadataModel>(make: impl Fn() -> Option<M>) {
    let Some(model) = make() else { return };
    let temp = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..100).map(|index| temp.path().join(format!("d{index}"))).collect();
    for (index, path) in paths.iter().enumerate() {
        fs::create_dir(path).unwrap();
        (0..index % 20).for_each(|file| fs::write(path.join(format!("{file}")), vec![0; index]).unwrap());
    }
    let mut seen = model.run(async {
        let one = async |index: usize| {
            let dir = open(&model, &paths[index]).await;
            let entries = list(&model, &dir, 1000, Follow::No).await;
            model.close(dir).await;
            (index, entries)
        };
        (0..paths.len()).map(one).collect::<FuturesUnordered<_>>().collect::<Vec<_>>().await
    });
    seen.sort_by_key(|(index, _)| *index);
    assert_eq!(seen.len(), 100);
    for (index, entries) in seen {
        assert_eq!(entries, list_std(&paths[index], Follow::No));
    }
}

pub(crate) fn close_closes_the_directory<M: MetadataModel>(make: impl Fn() -> Option<M>) {
    let Some(model) = make() else { return };
    let temp = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(temp.path()).unwrap();
    let leads_there = |raw: i32| fs::read_link(format!("/proc/self/fd/{raw}")).is_ok_and(|link| link == path);
    model.run(async {
        let dir = model.open(CWD, &c(&path), Follow::No).await.unwrap();
        let raw = dir.as_fd().as_raw_fd();
        assert!(leads_there(raw));
        model.close(dir).await;
        assert!(!leads_there(raw));
    });
}
