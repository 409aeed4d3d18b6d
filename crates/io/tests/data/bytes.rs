//! Written bytes are read back by every model, in ranges of any size and order.

use std::fs;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use fathom_io::Errno;
use fathom_io::data::{Buffer, Op, OpKind};
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};

use crate::models::each;
use crate::{bytes, file, one, read_all, write_all};

/// Returns ranges of random length that cover `len` bytes once, in random order.
fn ranges(len: u64, longest: u64) -> Vec<(u64, usize)> {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let (mut at, mut ranges) = (0, Vec::new());
    while at < len {
        let size = (1 + random.next_u64() % longest).min(len - at);
        ranges.push((at, usize::try_from(size).unwrap()));
        at += size;
    }
    for index in (1..ranges.len()).rev() {
        ranges.swap(index, (random.next_u64() % (index as u64 + 1)) as usize);
    }
    ranges
}

#[test]
fn ranges_of_any_size_and_order_are_written_and_read_back() {
    const LEN: u64 = 300_001;
    let temp = tempfile::tempdir().unwrap();
    each(|name, mut model| {
        let path = temp.path().join("file");
        let id = model.attach(file(&path, 0)).unwrap();
        write_all(&mut *model, id, &ranges(LEN, 9000)).unwrap();
        let sync = one(&mut *model, Op::sync(OpKind::SyncData, id));
        assert_eq!(sync.result(), Ok(0), "{name}");
        assert!(fs::read(&path).unwrap() == bytes(0, LEN as usize), "{name}: other bytes");
        for (offset, len) in ranges(LEN, 40_000) {
            let read = read_all(&mut *model, id, offset, len).unwrap();
            assert!(read == bytes(offset, len), "{name}: other bytes at {offset}");
        }
        assert_eq!(one(&mut *model, Op::sync(OpKind::SyncAll, id)).result(), Ok(0), "{name}");
    });
}

#[test]
fn a_read_beyond_the_end_is_short_and_then_empty() {
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("file"), bytes(0, 1000)).unwrap();
    each(|name, mut model| {
        let whole: Arc<OwnedFd> = Arc::new(fs::File::open(temp.path().join("file")).unwrap().into());
        let id = model.attach(whole).unwrap();
        assert_eq!(read_all(&mut *model, id, 900, 4096).unwrap(), bytes(900, 100), "{name}");
        assert_eq!(read_all(&mut *model, id, 1000, 10).unwrap(), b"", "{name}");
        assert_eq!(read_all(&mut *model, id, 1 << 40, 10).unwrap(), b"", "{name}");
    });
}

#[test]
fn files_are_independent_and_numbers_are_reused() {
    let temp = tempfile::tempdir().unwrap();
    each(|name, mut model| {
        let paths: Vec<_> = (0..3).map(|index| temp.path().join(index.to_string())).collect();
        let ids: Vec<_> = paths.iter().map(|path| model.attach(file(path, 64)).unwrap()).collect();
        for (id, len) in ids.iter().zip([10, 20, 30]) {
            write_all(&mut *model, *id, &[(0, len)]).unwrap();
        }
        model.detach(ids[1]);
        let stale = one(&mut *model, Op::new(OpKind::Write, ids[1], 0, Buffer::new(1)));
        assert_eq!(stale.result(), Err(Errno::BADF), "{name}: a file that was detached");
        let again = model.attach(file(&temp.path().join("3"), 64)).unwrap();
        assert_eq!(again, ids[1], "{name}");
        write_all(&mut *model, again, &[(5, 8)]).unwrap();
        for (path, len) in paths.iter().zip([10, 20, 30]) {
            let mut expected = bytes(0, len);
            expected.resize(64, 0);
            assert_eq!(fs::read(path).unwrap(), expected, "{name}");
        }
        assert_eq!(fs::read(temp.path().join("3")).unwrap()[5..13], bytes(5, 8), "{name}");
    });
}

#[test]
fn aligned_blocks_bypass_the_page_cache() {
    use std::os::unix::fs::OpenOptionsExt;
    const DIRECT: i32 = rustix::fs::OFlags::DIRECT.bits() as i32;
    let temp = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    each(|name, mut model| {
        if name == "tokio" || name.starts_with("mmap") {
            return; // Their memory is not aligned, or is the page cache.
        }
        let path = temp.path().join("file");
        let mut options = fs::File::options();
        options.read(true).write(true).create(true).truncate(true).custom_flags(DIRECT);
        let direct = match options.open(&path) {
            Ok(file) => file,
            Err(error) => return println!("skipped: {name}: O_DIRECT is refused: {error}"),
        };
        let id = model.attach(Arc::new(direct.into())).unwrap();
        let blocks: Vec<(u64, usize)> = (0..64).rev().map(|block| (block * 4096, 4096)).collect();
        write_all(&mut *model, id, &blocks).unwrap();
        assert!(fs::read(&path).unwrap() == bytes(0, 64 * 4096), "{name}: other bytes");
        assert!(read_all(&mut *model, id, 8192, 16384).unwrap() == bytes(8192, 16384), "{name}");
        let odd = one(&mut *model, Op::new(OpKind::Read, id, 1, Buffer::new(4096)));
        assert_eq!(odd.result(), Err(Errno::INVAL), "{name}: an odd offset");
    });
}
