//! The dirent parser on valid and invalid buffers.

mod record;

use fathom_io::{FileType, Names, parse_dirents};
use proptest::collection::vec;
use proptest::prelude::*;
use record::{Parsed, check, parse, record};

/// Returns the record of a regular file.
fn file(name: &[u8]) -> Vec<u8> {
    record(7, 11, 8, name)
}

/// Returns `bytes` with those at `at` replaced by `with`.
fn patched(mut bytes: Vec<u8>, at: usize, with: &[u8]) -> Vec<u8> {
    bytes[at..at + with.len()].copy_from_slice(with);
    bytes
}

#[test]
fn dot_entries_are_skipped_and_advance_the_cookie() {
    let buffer = [record(1, 10, 4, b"."), record(2, 20, 4, b".."), record(3, 30, 0, b"...")].concat();
    let entries = vec![(b"...".to_vec(), 3, FileType::Unknown)];
    assert_eq!(parse(&buffer, 9), Parsed { entries, cookie: 30, all: Some(true) });
    assert_eq!(parse(&buffer[..48], 9), Parsed { entries: vec![], cookie: 20, all: Some(true) });
    assert_eq!(parse(&[], 9), Parsed { entries: vec![], cookie: 0, all: Some(true) });
}

#[test]
fn every_type_is_converted() {
    use FileType::{Block, Char, Directory, Fifo, Regular, Socket, Symlink, Unknown};
    let types = [
        (1, Fifo),
        (2, Char),
        (4, Directory),
        (6, Block),
        (8, Regular),
        (10, Symlink),
        (12, Socket),
        (14, Unknown),
    ];
    for (d_type, file_type) in types {
        assert_eq!(parse(&record(1, 1, d_type, b"x"), 9).entries, [(b"x".to_vec(), 1, file_type)]);
    }
}

#[test]
fn a_batch_grows_up_to_its_limit() {
    let buffer = [file(b"a"), file(b"b"), file(b"c")].concat();
    let mut names = Names::new();
    assert_eq!(parse_dirents(&buffer, &mut names, 4), Ok(true));
    assert_eq!(parse_dirents(&buffer, &mut names, 4), Ok(false));
    assert_eq!(names.len(), 4);
    assert_eq!(parse_dirents(&buffer, &mut names, 4), Ok(false));
    assert_eq!(names.len(), 4);
}

#[test]
fn invalid_records_are_refused_and_entries_before_them_kept() {
    let len = |len: u16| patched(file(b"name"), 16, &len.to_ne_bytes());
    let bad = [
        ("no length", len(0)),
        ("shorter than a header", len(18)),
        ("header only", len(19)),
        ("past the end", len(25)),
        ("far past the end", len(u16::MAX)),
        ("without a NUL", patched(file(b"name"), 19, b"xxxxx")),
        ("without a name", file(b"")),
        ("with a slash", file(b"a/b")),
        ("up a slash", file(b"../x")),
        ("half a header", file(b"name")[..10].to_vec()),
    ];
    for (what, bad) in bad {
        let parsed = parse(&[file(b"before"), bad].concat(), 9);
        assert_eq!(parsed.all, None, "{what}");
        assert_eq!(parsed.entries.len(), 1, "{what}");
        assert_eq!(parsed.cookie, 11, "{what}");
    }
}

/// The NUL must be within the record, not only within the buffer.
#[test]
fn a_name_does_not_run_into_the_next_record() {
    let unterminated = patched(file(b"name"), 19, b"xxxxx");
    assert_eq!(parse(&[unterminated, file(b"next")].concat(), 9).all, None);
}

fn entries() -> impl Strategy<Value = Vec<(u64, u64, u8, Vec<u8>)>> {
    let byte = any::<u8>().prop_filter("no byte of a name", |byte| !b"\0/".contains(byte));
    let name = prop_oneof![Just(b".".to_vec()), Just(b"..".to_vec()), vec(byte, 1..=255)];
    vec((any::<u64>(), any::<u64>(), any::<u8>(), name), 0..20)
}

fn buffer(entries: &[(u64, u64, u8, Vec<u8>)]) -> Vec<u8> {
    entries.iter().flat_map(|(ino, cookie, d_type, name)| record(*ino, *cookie, *d_type, name)).collect()
}

proptest! {
    #![proptest_config(fathom_cases::property(256))]

    #[test]
    fn parsed_entries_equal_written_ones(entries in entries()) {
        let buffer = buffer(&entries);
        let parsed = parse(&buffer, usize::MAX);
        let kept = entries.iter().filter(|entry| entry.3 != b"." && entry.3 != b"..");
        let kept: Vec<_> =
            kept.map(|(ino, _, d_type, name)| (name.clone(), *ino, FileType::from_dirent(*d_type))).collect();
        prop_assert_eq!(parsed.entries, kept);
        prop_assert_eq!(parsed.cookie, entries.last().map_or(0, |entry| entry.1));
        prop_assert_eq!(parsed.all, Some(true));
        check(&buffer);
    }

    #[test]
    fn truncated_buffers_are_parsed_up_to_the_cut(entries in entries()) {
        let buffer = buffer(&entries);
        (0..buffer.len()).for_each(|len| check(&buffer[..len]));
    }

    #[test]
    fn random_bytes_are_parsed_as_by_the_reference(bytes in vec(any::<u8>(), 0..300)) {
        check(&bytes);
    }
}

/// No second call is made if the cookie shows the end of the directory.
#[cfg(not(feature = "posix"))]
#[test]
fn a_directory_whose_last_cookie_is_the_end_takes_one_call() {
    use fathom_io::{Dir, filesystem, sys};
    let temp = tempfile::tempdir().unwrap();
    (0..50).for_each(|index| drop(std::fs::File::create(temp.path().join(index.to_string())).unwrap()));
    let dir = || Dir::from_fd(std::fs::File::open(temp.path()).unwrap().into());
    let Some(end) = sys::fs_magic(std::os::fd::AsFd::as_fd(&dir())).and_then(filesystem::end_cookie) else {
        println!("skipped: '{}' is not on ext4", temp.path().display());
        return;
    };
    let mut names = Names::new();
    assert_eq!(sys::read_some_names(&dir(), &mut names, 100), Ok(true), "no end is known");
    names.clear();
    names.end_at(Some(end));
    assert_eq!((sys::read_some_names(&dir(), &mut names, 100), names.len()), (Ok(false), 50));
    names.clear();
    names.end_at(Some(end));
    let cut = dir();
    assert_eq!((sys::read_some_names(&cut, &mut names, 49), names.len()), (Ok(true), 49));
    assert_eq!((sys::read_some_names(&cut, &mut names, 50), names.len()), (Ok(false), 50));
}
