//! Archives as read by the libraries of other programs: included and omitted entries, and memory.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read};
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::budget::Budget;

const LIMIT: usize = 32 << 20;

fn archive(
    root: &std::path::Path,
    path: &str,
    format: ArchiveFormat,
    links: Links,
    budget: &Budget,
) -> Result<Archive, FileError> {
    let beneath = Arc::new(Beneath::new(root, links).unwrap());
    let dir = beneath
        .open(if path.is_empty() { b"." } else { path.as_bytes() }, LookupMode::Blocking)
        .unwrap()
        .unwrap();
    let dir = OpenFile::new(dir).unwrap();
    let source = ArchiveSource { beneath, links, dotfiles: false, filter: EntryFilter::default() };
    Archive::new(source, path.as_bytes(), &dir, b"top".to_vec(), format, budget.charge(LIMIT))
}

fn all(mut archive: Archive) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    while let Some(piece) = archive.step()? {
        assert!(piece.len() <= STEP_BYTES + STEP_INPUT_BYTES, "{}", piece.len());
        bytes.extend_from_slice(&piece);
    }
    assert_eq!(archive.step(), Ok(None), "it has ended");
    Ok(bytes)
}

type UnpackedFiles = BTreeMap<Vec<u8>, (u32, Vec<u8>)>;

fn unpack(format: ArchiveFormat, bytes: &[u8]) -> UnpackedFiles {
    let plain: Box<dyn Read + '_> = match format {
        ArchiveFormat::TarZst => Box::new(zstd::stream::read::Decoder::new(bytes).unwrap()),
        ArchiveFormat::TarGz => Box::new(flate2::read::GzDecoder::new(bytes)),
        ArchiveFormat::Zip => return unzip(bytes),
    };
    let mut files = UnpackedFiles::new();
    for entry in tar::Archive::new(plain).entries().unwrap() {
        let mut entry = entry.unwrap();
        let (name, mode) = (entry.path_bytes().into_owned(), entry.header().mode().unwrap());
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        assert_eq!(
            (entry.header().uid().unwrap(), entry.header().gid().unwrap()),
            (0, 0),
            "owners are not told"
        );
        assert!(files.insert(name, (mode, content)).is_none());
    }
    files
}

fn unzip(bytes: &[u8]) -> UnpackedFiles {
    let mut zip = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut files = UnpackedFiles::new();
    for index in 0..zip.len() {
        let mut file = zip.by_index(index).unwrap();
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        let mode = file.unix_mode().unwrap() & 0o777;
        files.insert(file.name_raw().to_vec(), (mode, content));
    }
    files
}

fn noise(len: usize) -> Vec<u8> {
    fathom_io::Random::new(1).bytes(len)
}

#[test]
fn every_format_has_the_files_and_no_more() {
    let tree = tempfile::tempdir().unwrap();
    let root = tree.path().join("root");
    let long = "n".repeat(150);
    fs::create_dir_all(root.join("d/sub/deep")).unwrap();
    fs::create_dir(root.join("d/empty")).unwrap();
    let large = noise(300_001);
    for (name, content) in [
        ("d/a", &b"aa"[..]),
        ("d/none", b""),
        ("d/large", &large),
        ("d/sub/deep/x", b"x"),
        ("d/.hidden", b"no"),
        (&format!("d/sub/{long}"), b"long"),
        ("d/\u{e9} <b>", b"text"),
        ("beside", b"no"),
        ("../outside", b"no"),
    ] {
        fs::write(root.join(name), content).unwrap();
    }
    fs::set_permissions(root.join("d/a"), fs::Permissions::from_mode(0o4750)).unwrap();
    for (target, link) in [
        ("a", "in"),
        ("../beside", "in-root"),
        ("../../outside", "out"),
        ("sub", "dir"),
        ("..", "up"),
        ("none2", "broken"),
    ] {
        symlink(target, root.join("d").join(link)).unwrap();
    }
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("d/fifo"), rustix::fs::Mode::from_raw_mode(0o600))
        .unwrap();
    for links in [Links::Within, Links::Never] {
        let mut expected: Vec<(String, u32, &[u8])> = vec![
            ("top/".into(), 0o755, b""),
            ("top/a".into(), 0o755, b"aa"),
            ("top/none".into(), 0o644, b""),
            ("top/large".into(), 0o644, &large),
            ("top/sub/".into(), 0o755, b""),
            ("top/empty/".into(), 0o755, b""),
            ("top/sub/deep/".into(), 0o755, b""),
            ("top/sub/deep/x".into(), 0o644, b"x"),
            (format!("top/sub/{long}"), 0o644, b"long"),
            ("top/\u{e9} <b>".into(), 0o644, b"text"),
        ];
        if links == Links::Within {
            expected.extend([("top/in".into(), 0o755, &b"aa"[..]), ("top/in-root".into(), 0o644, b"no")]);
        }
        let expected: UnpackedFiles = expected
            .into_iter()
            .map(|(name, mode, content)| (name.into_bytes(), (mode, content.to_vec())))
            .collect();
        for format in ArchiveFormat::ALL {
            let budget = Budget::default();
            let bytes = all(archive(&root, "d", format, links, &budget).unwrap()).unwrap();
            assert!(
                unpack(format, &bytes) == expected,
                "{format:?} {links:?}: {:?}",
                unpack(format, &bytes).keys()
            );
            assert_eq!(budget.used(), 0);
        }
    }
    let bytes =
        all(archive(&root, "", ArchiveFormat::TarGz, Links::Never, &Budget::default()).unwrap()).unwrap();
    assert!(unpack(ArchiveFormat::TarGz, &bytes).contains_key(&b"top/d/sub/deep/x"[..]));
}

#[test]
fn a_large_file_takes_many_steps_and_little_memory() {
    let tree = tempfile::tempdir().unwrap();
    let file = fs::File::create(tree.path().join("sparse")).unwrap();
    file.set_len(64 << 20).unwrap();
    for format in ArchiveFormat::ALL {
        let budget = Budget::default();
        let mut archive = archive(tree.path(), "", format, Links::Within, &budget).unwrap();
        let (mut steps, mut most) = (0, 0);
        while archive.step().unwrap().is_some() {
            steps += 1;
            most = most.max(budget.used());
        }
        assert!(steps >= 64 && most < 8 << 20, "{format:?}: {steps} steps, {most} bytes");
    }
}

#[test]
fn a_file_that_changes_and_memory_that_is_short_end_it() {
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("a"), noise(4 << 20)).unwrap();
    let budget = Budget::default();
    let mut cut = archive(tree.path(), "", ArchiveFormat::TarZst, Links::Within, &budget).unwrap();
    cut.step().unwrap();
    fs::File::options().write(true).open(tree.path().join("a")).unwrap().set_len(1 << 20).unwrap();
    assert_eq!(all(cut).unwrap_err(), FileError::Changed);
    let mut others = budget.charge(usize::MAX);
    others.grow_to(LIMIT - 1000).unwrap();
    let refused = archive(tree.path(), "", ArchiveFormat::Zip, Links::Within, &budget);
    assert_eq!(refused.err(), Some(FileError::System(Errno::NOMEM)));
}
