//! Archives and commands of another machine, hostile ones too.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use fathom_scans::scan::{Scan, scan};
use tar::{Builder, Header};

use super::*;

/// An archive with entries of any type and name.
#[derive(Default)]
struct TestArchive(Vec<u8>);

impl TestArchive {
    fn entry(mut self, name: &[u8], kind: EntryType, bytes: &[u8]) -> Self {
        let mut header = Header::new_gnu();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name);
        header.set_entry_type(kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o777);
        header.set_cksum();
        self.0.extend_from_slice(header.as_bytes());
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn file(self, name: &str, bytes: &[u8]) -> Self {
        self.entry(name.as_bytes(), EntryType::Regular, bytes)
    }

    fn end(mut self) -> Vec<u8> {
        self.0.extend_from_slice(&[0; 1024]);
        self.0
    }
}

fn refusal(archive: &[u8]) -> String {
    let top = tempfile::tempdir().unwrap();
    let into = top.path().join("into");
    fs::create_dir(&into).unwrap();
    let error = unpack(archive, &into).unwrap_err().to_string();
    assert_eq!(fs::read_dir(top.path()).unwrap().count(), 1, "nothing is made outside");
    error
}

#[test]
fn files_of_an_inventory_are_unpacked() {
    let into = tempfile::tempdir().unwrap();
    let archive =
        TestArchive::default().file("dirs-00000.parquet", b"abc").file("manifest.json", b"{}").end();
    unpack(&archive[..], into.path()).unwrap();
    let file = into.path().join("dirs-00000.parquet");
    assert_eq!(
        (fs::read(&file).unwrap(), file.metadata().unwrap().permissions().mode() & 0o777),
        (b"abc".to_vec(), 0o600)
    );
}

#[test]
fn entries_that_inventories_do_not_have_are_refused() {
    let manifest = || TestArchive::default().file("manifest.json", b"{}");
    for name in [
        "../dirs.parquet",
        "/dirs.parquet",
        "a/dirs.parquet",
        "..parquet",
        ".parquet",
        "x",
        "",
        "./manifest.json",
    ] {
        let why = refusal(&manifest().file(name, b"x").end());
        assert!(why.contains("an entry that is not part of an inventory"), "{name}: {why}");
    }
    let kinds = [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Directory,
        EntryType::Fifo,
        EntryType::Char,
        EntryType::GNUSparse,
        EntryType::GNULongName,
        EntryType::GNULongLink,
        EntryType::XHeader,
        EntryType::XGlobalHeader,
    ];
    for kind in kinds {
        let why = refusal(&manifest().entry(b"dirs-0.parquet", kind, b"").end());
        assert!(why.contains("an entry that is not part of an inventory"), "{kind:?}: {why}");
    }
    assert!(refusal(&manifest().file("manifest.json", b"{}").end()).contains("too many files"));
    assert!(refusal(&TestArchive::default().file("dirs-0.parquet", b"x").end()).contains("no manifest"));
    assert!(refusal(b"").contains("no manifest"));
    assert!(!refusal(&[b'x'; 4096]).is_empty());
}

#[test]
fn a_length_that_is_not_there_is_an_error_and_takes_no_space() {
    let whole = TestArchive::default().file("manifest.json", b"{}").file("dirs-0.parquet", &[7; 5000]).end();
    // An archive that ends between two files is whole as an archive; the manifest names more files.
    for end in [600, 1100, 1600, 4000] {
        assert!(!refusal(&whole[..end.min(whole.len())]).contains("not part of an inventory"), "{end}");
    }
    let mut header = Header::new_gnu();
    header.as_mut_bytes()[..14].copy_from_slice(b"dirs-0.parquet");
    header.set_entry_type(EntryType::Regular);
    header.set_size(1 << 60);
    header.set_cksum();
    let into = tempfile::tempdir().unwrap();
    let archive = [&header.as_bytes()[..], &[1; 512]].concat();
    assert!(unpack(&archive[..], into.path()).is_err());
    assert!(into.path().join("dirs-0.parquet").metadata().unwrap().len() <= 512);
}

#[test]
fn trees_are_named_by_host_and_path() {
    let parsed = |text: &str| {
        RemoteTree::parse(text.as_bytes()).map(|tree| (tree.host.into_string().unwrap(), tree.path))
    };
    let tree = |host: &str, path: &str| Ok((host.to_owned(), path.as_bytes().to_vec()));
    assert_eq!(parsed("nas:/srv/a:b"), tree("nas", "/srv/a:b"));
    assert_eq!(parsed("me@nas:"), tree("me@nas", "."));
    assert_eq!(parsed("[fe80::1]:/srv"), tree("fe80::1", "/srv"));
    assert_eq!(parsed("me@[fe80::1]:a]b"), tree("me@fe80::1", "a]b"));
    assert_eq!(parsed("[me@fe80::1]:"), tree("me@fe80::1", "."));
    assert_eq!(parsed("nas:/run[1]"), tree("nas", "/run[1]"));
    assert_eq!(parsed("nas:a]:[b:c"), tree("nas", "a]:[b:c"));
    for text in ["nas", ":/srv", "a b:/srv", "a\x1bb:/srv", "nas:a\0b", "", "[]:/srv", "@nas:", "me@:/srv"] {
        assert!(parsed(text).is_err(), "{text}");
    }
    for text in ["[fe80::1]", "[fe80::1:/srv", "[fe80::1]/srv", "[fe80::1]22:/srv", "nas[1]"] {
        assert!(parsed(text).is_err(), "{text}");
    }
    for host in ["-oProxyCommand=x", "[-oProxyCommand=x]", "me@-oProxyCommand=x", "me@[-x]", "[-x@nas]"] {
        assert!(parsed(&format!("{host}:/srv")).is_err(), "{host}");
    }
    let command = |path: &str| {
        RemoteTree::parse(format!("nas:{path}").as_bytes()).unwrap().remote_command(b"-x --exclude='*.o' ")
    };
    assert_eq!(command("it's; rm *"), r"fathom scan -x --exclude='*.o' -o - -- 'it'\''s; rm *'");
}

/// A script in place of ssh.
fn script(top: &Path, lines: &str) -> PathBuf {
    let path = top.join("ssh");
    fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn fetch(tree: &RemoteTree, ssh: &OsStr) -> Result<RemoteInventory, FetchError> {
    tree.fetch(ssh, b"", &SessionSignals::default())
}

#[test]
fn an_inventory_is_fetched() {
    let top = tempfile::tempdir().unwrap();
    let inventory = top.path().join("made.inv");
    scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &inventory, &mut ()).unwrap();
    let mut archive = Builder::new(Vec::new());
    for entry in fs::read_dir(&inventory).unwrap().map(Result::unwrap) {
        archive.append_path_with_name(entry.path(), entry.file_name()).unwrap();
    }
    fs::write(top.path().join("made.tar"), archive.into_inner().unwrap()).unwrap();
    let tree = RemoteTree::parse(b"nas:/srv").unwrap();
    let ssh = script(
        top.path(),
        "echo \"$@\" > \"$(dirname \"$0\")/words\"; cat \"$(dirname \"$0\")/made.tar\"; exit 1",
    );
    let ssh = [ssh.as_os_str(), OsStr::new("  -p 22")].concat();
    let fetched = fetch(&tree, &ssh).unwrap();
    assert_eq!(
        fs::read_to_string(top.path().join("words")).unwrap(),
        "-p 22 -- nas fathom scan -o - -- '/srv'\n"
    );
    let (path, manifest) = (fetched.path(), Inventory::open(&inventory).unwrap().manifest().clone());
    assert_eq!(*Inventory::open(&path).unwrap().manifest(), manifest);
    drop(fetched);
    assert!(!path.exists(), "the temporary directory is removed");
}

trait Concat {
    fn concat(self) -> OsString;
}

impl Concat for [&OsStr; 2] {
    fn concat(self) -> OsString {
        self.into_iter().collect()
    }
}

#[test]
fn failures_of_the_other_machine_have_a_cause() {
    let top = tempfile::tempdir().unwrap();
    let tree = RemoteTree::parse(b"nas:/srv").unwrap();
    for (lines, cause) in [
        ("exit 127", "cannot scan on 'nas': fathom is not in PATH there"),
        ("exit 255", "cannot scan on 'nas': exit status: 255"),
        ("exit 0", "cannot scan on 'nas': the inventory cannot be unpacked: it has no manifest"),
        ("echo hello; exec sleep 1000", "cannot scan on 'nas': the inventory cannot be unpacked: "),
    ] {
        let lines = lines.replace("exec sleep 1000", "head -c 2000 /dev/zero | tr '\\0' x; exec sleep 1000");
        let FetchError::Failed(error) = fetch(&tree, script(top.path(), &lines).as_os_str()).unwrap_err()
        else {
            panic!("{lines}: no signal was sent")
        };
        assert!(error.starts_with(cause.as_bytes()), "{lines}: {}", String::from_utf8_lossy(&error));
    }
    let FetchError::Failed(missing) = fetch(&tree, OsStr::new("/nonexistent/ssh")).unwrap_err() else {
        panic!("no signal was sent")
    };
    assert!(
        missing.ends_with(b"/nonexistent/ssh: No such file or directory"),
        "{}",
        String::from_utf8_lossy(&missing)
    );
    assert!(fetch(&tree, OsStr::new(" ")).is_err());
}
