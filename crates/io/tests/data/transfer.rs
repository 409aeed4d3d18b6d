//! Copies inside the kernel.

use std::fs::{self, File};
use std::os::fd::AsFd;

use fathom_io::Errno;
use fathom_io::data::transfer::{CopyMethod, Transfer};

use crate::bytes;

#[test]
fn every_method_copies_all_bytes_from_any_offset() {
    let temp = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (from, to) = (temp.path().join("from"), temp.path().join("to"));
    fs::write(&from, bytes(0, 1_000_003)).unwrap();
    for method in [CopyMethod::CopyFileRange, CopyMethod::Sendfile, CopyMethod::Splice] {
        for start in [0, 1, 999_999, 1_000_003, 2_000_000] {
            let transfer = Transfer::new(method).unwrap();
            let (source, target) = (File::open(&from).unwrap(), File::create(&to).unwrap());
            let mut at = start;
            loop {
                match transfer.step(source.as_fd(), at, target.as_fd(), 1 << 18).unwrap() {
                    0 => break,
                    moved => at += moved as u64,
                }
            }
            let expected = bytes(start, 1_000_003_usize.saturating_sub(start as usize));
            assert!(fs::read(&to).unwrap() == expected, "{method:?} from {start}");
        }
    }
}

#[test]
fn a_full_device_is_an_error() {
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("from"), bytes(0, 5000)).unwrap();
    let (source, full) = (File::open(temp.path().join("from")).unwrap(), File::create("/dev/full").unwrap());
    for (method, refused) in [
        (CopyMethod::Sendfile, [Errno::NOSPC, Errno::INVAL]),
        (CopyMethod::Splice, [Errno::NOSPC, Errno::INVAL]),
        (CopyMethod::CopyFileRange, [Errno::INVAL, Errno::XDEV]),
    ] {
        let result = Transfer::new(method).unwrap().step(source.as_fd(), 0, full.as_fd(), 4096);
        assert!(result.is_err_and(|errno| refused.contains(&errno)), "{method:?}: {result:?}");
    }
}
