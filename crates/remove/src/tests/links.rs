//! Hard links: the bytes that the filesystem gets back, in random trees.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use fathom_io::Random;

use super::*;

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
