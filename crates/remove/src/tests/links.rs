//! Hard links: the bytes that the filesystem gets back, in random trees.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use fathom_io::Random;

use super::*;
use crate::OpenFiles;

/// Creates directories `0` to `7`, some in others, with files that have links anywhere.
fn random_tree(base: &Path, random: &mut Random) -> Vec<PathBuf> {
    let mut dirs = vec![base.to_owned()];
    for number in 0..8 {
        let dir = dirs[random.below(dirs.len())].join(number.to_string());
        fs::create_dir(&dir).unwrap();
        dirs.push(dir);
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for number in fathom_cases::seeds(60) {
        let path = dirs[random.below(dirs.len())].join(format!("f{number}"));
        if !files.is_empty() && random.below(2) == 0 {
            fs::hard_link(&files[random.below(files.len())], &path).unwrap();
        } else {
            fs::write(&path, random.bytes(random.clone().below(30_000))).unwrap();
        }
        files.push(path);
    }
    dirs.remove(0);
    dirs
}

/// Returns the allocated bytes below `tops`, and the bytes of inodes with all links below them.
fn expected(tops: &[PathBuf]) -> (u64, u64) {
    let mut inodes: BTreeMap<u64, (u64, u64, u64)> = BTreeMap::new();
    let mut left = tops.to_vec();
    while let Some(path) = left.pop() {
        let meta = path.symlink_metadata().unwrap();
        let links = if meta.is_dir() { 1 } else { meta.nlink() };
        inodes.entry(meta.ino()).or_insert((0, links, meta.blocks() * 512)).0 += 1;
        if meta.is_dir() {
            left.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    let all = inodes.values().map(|inode| inode.2).sum();
    (all, inodes.values().filter(|inode| inode.0 == inode.1).map(|inode| inode.2).sum())
}

#[test]
fn bytes_are_freed_by_the_last_link_only() {
    for seed in fathom_cases::seeds(60) {
        let temp = tempfile::tempdir().unwrap();
        let mut random = Random::new(seed);
        let mut dirs = random_tree(temp.path(), &mut random);
        random.shuffle(&mut dirs);
        dirs.truncate(1 + random.below(4));
        // A directory in another one is selected with it.
        let tops: Vec<_> = dirs
            .iter()
            .filter(|dir| !dirs.iter().any(|top| top != *dir && dir.starts_with(top)))
            .cloned()
            .collect();
        let expected = expected(&tops);
        for options in [dry_run(), RemovalOptions { threads: Some(4), ..measured() }] {
            let (summary, log) = run(tops.iter().map(Target::path), &options);
            assert_eq!(log.messages(temp.path()), [""; 0], "seed {seed}");
            assert_eq!((summary.allocated, summary.freed), expected, "seed {seed}, {:?}", options.action);
        }
        assert!(tops.iter().all(|top| !top.exists()));
    }
}

/// A process that is killed at the end of the test.
struct Sleep(std::process::Child);

impl Drop for Sleep {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).unwrap();
    }
}

#[test]
fn blocks_of_open_files_are_not_freed_at_once() {
    let temp = tempfile::tempdir().unwrap();
    let tree = temp.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for (name, bytes) in [("open", 40_000), ("linked", 80_000), ("closed", 160_000)] {
        fs::write(tree.join(name), vec![1; bytes]).unwrap();
    }
    fs::hard_link(tree.join("linked"), tree.join("link")).unwrap();
    let sleep = |name: &str| {
        let stdin = fs::File::open(tree.join(name)).unwrap();
        let sleep = std::process::Command::new("sleep").arg("1000").stdin(stdin).spawn().unwrap();
        Sleep(sleep)
    };
    let held = [sleep("open"), sleep("linked")];
    let options = RemovalOptions { open_files: Some(Arc::new(OpenFiles::read())), ..dry_run() };
    let (plan, _) = run([Target::path(&tree)], &options);
    let size = |name: &str| tree.join(name).metadata().unwrap().blocks() * 512;
    assert_eq!(plan.held, size("open") + size("linked"));
    assert_eq!(plan.freed, plan.allocated - plan.held);
    assert_eq!(plan.holder.map(|holder| holder.pid), Some(held[1].0.id()), "of the largest");
    // The blocks of a file with a name elsewhere stay anyway.
    fs::hard_link(tree.join("linked"), temp.path().join("elsewhere")).unwrap();
    let (plan, _) = run([Target::path(&tree)], &options);
    assert_eq!(plan.held, size("open"));
    // A deleted file is known by its former path.
    fs::remove_file(tree.join("open")).unwrap();
    let dev = tree.metadata().unwrap().dev();
    let open = OpenFiles::read();
    let former = tree.join("open").into_os_string().into_encoded_bytes();
    let found: Vec<_> = open.deleted(dev).into_iter().filter(|file| file.path == former).collect();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].holder.program(), Some(b"sleep".to_vec()));
}
