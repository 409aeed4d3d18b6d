//! Generates a random tree: every type of entry, names of arbitrary bytes, links within and across
//! directories; sometimes a chain longer than `PATH_MAX`, or a directory so wide that GNU du sorts
//! its entries.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::fs::FileType;

use crate::support::Tree;
use crate::support::random::Random;
use crate::support::tree::name;

/// Lengths of files: around block sizes, and some so large that they must be holes.
const LENGTHS: [u64; 16] = [
    0,
    1,
    511,
    512,
    1000,
    1023,
    1024,
    1025,
    4095,
    4096,
    4097,
    10_000,
    100_000,
    1 << 20,
    8 << 30,
    (1 << 43) + 1,
];
const DATA_MAX: u64 = 200_000;
/// Upper bound of links to directories: following them multiplies paths.
const DIRECTORY_LINKS_MAX: usize = 4;
const WORDS: [&[u8]; 20] = [
    b"a",
    b"b",
    b"c",
    b"d",
    b"x.o",
    b"y.c",
    b"e",
    b".hidden",
    b"a b",
    b"-s",
    b"--",
    b"new\nline",
    b"it's",
    b"*",
    b"[x]",
    b"\\",
    b"~",
    "\u{e9}".as_bytes(),
    "\u{4e2d}".as_bytes(),
    b"total",
];

/// A tree, and the names in it for command lines to use.
pub(crate) struct RandomTree {
    /// The tree on disk.
    pub(crate) tree: Tree,
    /// The names of all entries.
    pub(crate) names: Vec<Vec<u8>>,
    /// The names of all directories.
    pub(crate) dirs: Vec<Vec<u8>>,
    /// Whether an unprivileged user cannot read all of it.
    pub(crate) is_guarded: bool,
    files: Vec<Vec<u8>>,
    directory_links: usize,
}

impl RandomTree {
    /// Generates a tree.
    pub(crate) fn grow(random: &mut Random) -> RandomTree {
        let tree = Tree::new();
        let mut forest = RandomTree {
            tree,
            names: vec![],
            dirs: vec![],
            is_guarded: false,
            files: vec![],
            directory_links: 0,
        };
        let size = [4, 30, 300][random.weighted(&[4, 14, 2])];
        for _ in 0..=random.below(size) {
            forest.add_entry(random);
        }
        if random.chance(4) {
            let (depth, length) = (5 + random.below(55), 1 + random.below(200));
            let dir = forest.new_name(random);
            forest.tree = forest.tree.deep(name(&dir), depth, length);
            forest.names.push(dir.clone());
            forest.dirs.push(dir);
        }
        if random.chance(2) {
            let dir = forest.new_name(random);
            forest.tree = forest.tree.wide(name(&dir), 9_990 + random.below(20));
            forest.names.push(dir);
        }
        forest.set_times(random);
        if random.chance(15) {
            forest.guard(random);
        }
        forest
    }

    fn add_entry(&mut self, random: &mut Random) {
        let new = self.new_name(random);
        match random.weighted(&[30, 22, 12, 14, 4, 3]) {
            0 => self.add_dir(new),
            1 => self.add_file(random, new),
            2 => self.add_hard_link(random, new),
            3 => self.add_symlink(random, new),
            4 => self.add_node(new, FileType::Fifo),
            _ => self.add_node(new, FileType::Socket),
        }
    }

    fn add_dir(&mut self, new: Vec<u8>) {
        self.tree.dir(name(&new));
        self.names.push(new.clone());
        self.dirs.push(new);
    }

    fn add_file(&mut self, random: &mut Random, new: Vec<u8>) {
        let length = LENGTHS[random.below(LENGTHS.len())];
        if length > DATA_MAX || random.chance(30) {
            self.tree.hole(name(&new), length);
        } else {
            self.tree.file(name(&new), length);
        }
        self.files.push(new.clone());
        self.names.push(new);
    }

    fn add_node(&mut self, new: Vec<u8>, kind: FileType) {
        self.tree.node(name(&new), kind);
        self.files.push(new.clone());
        self.names.push(new);
    }

    fn add_hard_link(&mut self, random: &mut Random, new: Vec<u8>) {
        if self.files.is_empty() {
            return self.add_file(random, new);
        }
        let old = &self.files[random.below(self.files.len())];
        self.tree.hard_link(name(&new), name(old));
        self.files.push(new.clone());
        self.names.push(new);
    }

    fn add_symlink(&mut self, random: &mut Random, new: Vec<u8>) {
        let to_directory = self.directory_links < DIRECTORY_LINKS_MAX && random.chance(40);
        let own = new.rsplit(|&byte| byte == b'/').next().unwrap_or_default().to_vec();
        let up = b"../".repeat(new.iter().filter(|&&byte| byte == b'/').count());
        let target = match random.below(4) {
            0 if to_directory => b"..".to_vec(),
            1 if to_directory => b".".to_vec(),
            _ if to_directory && !self.dirs.is_empty() => {
                [&up, &self.dirs[random.below(self.dirs.len())][..]].concat()
            }
            0 => own,
            1 => b"no/where".to_vec(),
            _ if self.files.is_empty() => b"nowhere".to_vec(),
            _ => [&up, &self.files[random.below(self.files.len())][..]].concat(),
        };
        self.directory_links += usize::from(to_directory);
        self.tree.symlink(name(&new), name(&target));
        if !to_directory {
            self.files.push(new.clone());
        }
        self.names.push(new);
    }

    /// Returns a free name in an existing directory.
    fn new_name(&self, random: &mut Random) -> Vec<u8> {
        loop {
            let above = match self.dirs.len() {
                0 => None,
                _ if random.chance(15) => None,
                count => {
                    // Prefer the latest directories, so that trees get deep.
                    let back = 1 + random.below(count);
                    Some(&self.dirs[count - 1 - random.below(back)])
                }
            };
            let last = draw_word(random);
            let whole = above.map_or_else(|| last.clone(), |above| [above, &b"/"[..], &last].concat());
            if fs::symlink_metadata(self.tree.at(name(&whole))).is_err() {
                return whole;
            }
        }
    }

    /// Sets random times. Directories get times in the past only: reading a directory sets its
    /// atime anew if its mtime or ctime is later (relatime).
    fn set_times(&self, random: &mut Random) {
        let past = |random: &mut Random| {
            ((random.bits() % 3_000_000_000) as i64 - 1_400_000_000, (random.bits() % 1_000_000_000) as i64)
        };
        for entry in self.names.iter().rev() {
            if random.chance(60) {
                self.tree.times(name(entry), past(random), past(random));
            }
        }
    }

    fn guard(&mut self, random: &mut Random) {
        for dir in self.dirs.iter().rev() {
            if !random.chance(25) {
                continue;
            }
            let modes = [0, 0o300, 0o400, 0o500, 0o600, 0o100, 0o200];
            let mode = fs::Permissions::from_mode(modes[random.below(modes.len())]);
            fs::set_permissions(self.tree.at(name(dir)), mode).expect("it was just made");
            self.is_guarded = true;
        }
    }
}

fn draw_word(random: &mut Random) -> Vec<u8> {
    match random.below(20) {
        0..13 => WORDS[random.below(WORDS.len())].to_vec(),
        13..17 => format!("f{}", random.below(400)).into_bytes(),
        17 => vec![b'n'; 1 + random.below(255)],
        _ => {
            let bytes = (0..1 + random.below(8)).map(|_| 1 + random.below(255) as u8);
            let word: Vec<u8> = bytes.filter(|&byte| byte != b'/').collect();
            if word.iter().all(|&byte| byte == b'.') { b"f".to_vec() } else { word }
        }
    }
}
