//! `--ignore-vcs`: finds the files that say what is left out, and notes what they say of their directories, where it stays
//! for as long as anything below is walked.
//!
//! A directory's own files are read before its names are selected. Above a root, every directory up to `/` is asked too.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fathom_inventory::ignores::{Level, Rules, Stack};
use fathom_io::sys;
use fathom_walk::{Errno, Fields, FileType, Follow, Names, Node, Opened};
use ignore::gitignore::gitconfig_excludes_path;

use super::plan::{self, Problem};

/// A file of rules that is longer is none that a person or a generator wrote.
const BYTES_MAX: usize = 1 << 20;

/// What holds for the whole run.
#[derive(Debug, Default)]
pub(crate) struct Vcs {
    /// Roots are relative to it; a worker's own current directory may be any.
    start: PathBuf,
    /// The user's rules for all repositories.
    global: Option<Rules>,
    /// Directories above roots, by their paths: many roots have the same.
    above: Mutex<HashMap<PathBuf, Arc<Level>>>,
}

/// What is noted of a directory that has something to say, and of every root.
struct Note {
    level: Level,
    /// Of a root.
    base: Option<Base>,
    problems: Vec<Problem>,
}

/// Where a root is.
struct Base {
    /// Its real path, with a slash at the end.
    path: Vec<u8>,
    /// What the directories above it say, from below, each with the length of its path.
    above: Vec<(usize, Arc<Level>)>,
}

/// What is found wrong while files are read.
type Problems = Vec<Problem>;

/// A directory to look for files in.
struct Place<'a> {
    at: BorrowedFd<'a>,
    /// Its names, if they are all known.
    names: Option<&'a Names>,
    path: &'a dyn Fn() -> Vec<u8>,
}

impl Place<'_> {
    fn may_have(&self, name: &CStr) -> bool {
        self.names.is_none_or(|names| names.iter().any(|each| each.name == name))
    }

    /// The rules in the file `name`, which may be in a directory below.
    fn rules(&self, name: &CStr, follow: Follow, problems: &mut Problems) -> Option<Rules> {
        let path = || [&(self.path)()[..], name.to_bytes()].concat();
        match sys::read_file(self.at, name, follow, BYTES_MAX) {
            Ok(text) => text.map(|text| parse(&text, &path, problems)),
            Err(errno) => {
                problems.push(Problem::File(path(), errno));
                None
            }
        }
    }

    /// The same of a file that is in this very directory, if it is. As in git, a link is no such file.
    fn own_rules(&self, name: &CStr, problems: &mut Problems) -> Option<Rules> {
        self.may_have(name).then(|| self.rules(name, Follow::No, problems)).flatten()
    }

    /// What this directory has to say, which is or is not in a repository.
    fn level(&self, in_repository: bool, problems: &mut Problems) -> Level {
        let git = self.may_have(c".git").then(|| sys::stat(self.at, c".git", Follow::Yes, Fields::IDENTITY));
        let git = git.and_then(Result::ok);
        let gitignored = in_repository || git.is_some();
        Level {
            ignore: self.own_rules(c".ignore", problems),
            gitignore: gitignored.then(|| self.own_rules(c".gitignore", problems)).flatten(),
            exclude: git.and_then(|git| self.excluded(git.file_type(), problems)),
            is_repository: git.is_some(),
        }
    }

    /// `info/exclude` of the repository whose `.git` is here, or a file that says where it is (gitrepository-layout(5)).
    fn excluded(&self, git: FileType, problems: &mut Problems) -> Option<Rules> {
        if git == FileType::Directory {
            return self.rules(c".git/info/exclude", Follow::Yes, problems);
        }
        let git_dir = self.first_line(Path::new(".git"))?;
        let git_dir = Path::new(OsStr::from_bytes(git_dir.strip_prefix(b"gitdir: ")?)).to_owned();
        let common = self.first_line(&git_dir.join("commondir")).unwrap_or_default();
        let exclude = git_dir.join(OsStr::from_bytes(&common)).join("info/exclude");
        let exclude = CString::new(exclude.into_os_string().into_vec()).ok()?;
        self.rules(&exclude, Follow::Yes, problems)
    }

    fn first_line(&self, path: &Path) -> Option<Vec<u8>> {
        let path = CString::new(path.as_os_str().as_bytes()).ok()?;
        let text = sys::read_file(self.at, &path, Follow::Yes, BYTES_MAX).ok()??;
        text.split(|byte| *byte == b'\n').next().map(<[u8]>::to_vec)
    }
}

fn parse(text: &[u8], path: &dyn Fn() -> Vec<u8>, problems: &mut Problems) -> Rules {
    let (rules, malformed) = Rules::parse(text);
    problems.extend(malformed.map(|malformed| Problem::Rule(path(), malformed)));
    rules
}

/// The path of a directory, with a slash at the end.
fn with_slash(mut path: Vec<u8>) -> Vec<u8> {
    if path.last() != Some(&b'/') {
        path.push(b'/');
    }
    path
}

impl Vcs {
    /// Reads what holds everywhere.
    pub(crate) fn new() -> (Self, Problems) {
        let (mut problems, mut global) = (Vec::new(), None);
        let start = std::env::current_dir().unwrap_or_default();
        if let Some(path) = gitconfig_excludes_path() {
            let path = start.join(path).into_os_string().into_vec();
            let place = Place { at: sys::CWD, names: None, path: &Vec::new };
            let path = CString::new(path).ok();
            global = path.and_then(|path| place.rules(&path, Follow::Yes, &mut problems));
        }
        (Self { start, global, above: Mutex::default() }, problems)
    }

    /// Notes what a directory says; the bytes of memory that takes, roughly.
    pub(crate) fn look(&self, dir: &Opened<'_>) -> usize {
        let (node, mut problems) = (&**dir.node, Vec::new());
        let base = node.parent().is_none().then(|| self.base(node, &mut problems));
        let in_repository = base.as_ref().is_some_and(Base::is_in_repository) || is_in_repository(node);
        let path = || with_slash(plan::path(node));
        let place = Place { at: dir.at, names: dir.all.then_some(dir.names), path: &path };
        let level = place.level(in_repository, &mut problems);
        if base.is_none() && problems.is_empty() && level.is_empty() {
            return 0;
        }
        let bytes = size_of::<Note>() + level.heap_bytes();
        node.set_note(Note { level, base, problems });
        bytes
    }

    fn base(&self, root: &Node, problems: &mut Problems) -> Base {
        let path = self.start.join(OsStr::from_bytes(root.name().to_bytes()));
        let path = path.canonicalize().unwrap_or_else(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            problems.push(Problem::Access(plan::path(root), errno));
            PathBuf::new()
        });
        let mut above = Vec::new();
        // From the top: whether a directory is in a repository is decided above it.
        let mut in_repository = false;
        for dir in path.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
            let level = self.level_above(dir, in_repository, problems);
            in_repository |= level.is_repository;
            above.push((with_slash(dir.as_os_str().as_bytes().to_vec()).len(), level));
        }
        above.retain(|(_, level)| !level.is_empty());
        above.reverse();
        Base { path: with_slash(path.into_os_string().into_vec()), above }
    }

    fn level_above(&self, dir: &Path, in_repository: bool, problems: &mut Problems) -> Arc<Level> {
        let mut above = self.above.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(level) = above.get(dir) {
            return level.clone();
        }
        let path = || with_slash(dir.as_os_str().as_bytes().to_vec());
        let opened = CString::new(path()).map_err(|_| Errno::INVAL);
        let level = match opened.and_then(|path| sys::open_path(sys::CWD, &path, Follow::Yes)) {
            Ok(fd) => Place { at: fd.as_fd(), names: None, path: &path }.level(in_repository, problems),
            Err(errno) => {
                problems.push(Problem::Access(path(), errno));
                Level::default()
            }
        };
        let level = Arc::new(level);
        above.insert(dir.to_owned(), level.clone());
        level
    }

    /// The rules for what is in `dir`, which has been looked at; `None` if there are none.
    pub(crate) fn rules_in<'a>(&'a self, dir: &'a Node) -> Option<Here<'a>> {
        let root = dir.chain().last()?;
        let base = root.note::<Note>()?.base.as_ref()?;
        // What comes before the names below the root in the paths that are matched, but not in those that are printed.
        let len_of = |node: &Node| base.path.len() + node.path_len_with_slash() - root.path_len_with_slash();
        let below = dir.chain().filter_map(|node| Some((len_of(node), &node.note::<Note>()?.level)));
        let above = base.above.iter().map(|(len, level)| (*len, &**level));
        let stack = Stack::new(&below.chain(above).collect::<Vec<_>>(), self.global.as_ref());
        if stack.is_empty() {
            return None;
        }
        let (mut path, mut reported) = (base.path.clone(), plan::path(dir));
        if dir.depth() > 0 {
            reported.push(b'/');
            path.extend_from_slice(&reported[root.path_len_with_slash()..]);
        }
        Some(Here { stack, len: path.len(), path })
    }
}

impl Base {
    fn is_in_repository(&self) -> bool {
        self.above.iter().any(|(_, level)| level.is_repository)
    }
}

/// Whether a directory above this one, below a root or above that, is a repository.
fn is_in_repository(dir: &Node) -> bool {
    let says =
        |note: &Note| note.level.is_repository || note.base.as_ref().is_some_and(Base::is_in_repository);
    dir.chain().filter_map(Node::note).any(says)
}

/// What was wrong with the files of a directory, and of those above a root.
pub(crate) fn problems_of(dir: &Node) -> &[Problem] {
    dir.note::<Note>().map_or(&[], |note| &note.problems)
}

/// The rules in one directory.
pub(crate) struct Here<'a> {
    stack: Stack<'a>,
    /// The directory's path, and behind it the name asked for last.
    path: Vec<u8>,
    len: usize,
}

impl Here<'_> {
    /// Whether the entry `name` is left out.
    pub(crate) fn leaves_out(&mut self, name: &[u8], is_dir: bool) -> bool {
        self.path.truncate(self.len);
        self.path.extend_from_slice(name);
        self.stack.leaves_out(&self.path, is_dir)
    }

    /// Whether it is left out whatever it is.
    pub(crate) fn leaves_out_anyway(&mut self, name: &[u8]) -> bool {
        self.leaves_out(name, true) && self.leaves_out(name, false)
    }
}
