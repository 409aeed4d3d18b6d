//! `--ignore-vcs`: reads the files of ignore rules and attaches the rules to their directories,
//! where they live as long as anything below is walked.
//!
//! The files of a directory are read before its names are selected. For a root, the files of all
//! directories above it, up to `/`, are read too.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fathom_inventory::ignores::{DirRules, IgnoreRules, RuleStack};
use fathom_io::sys;
use fathom_walk::{Errno, Fields, FileType, Follow, Names, Node, Opened};
use ignore::gitignore::gitconfig_excludes_path;

use super::plan::{self, ListProblem};

/// The maximum size of a file of rules. Neither people nor generators write longer ones.
const BYTES_MAX: usize = 1 << 20;

/// The state for the whole run.
#[derive(Debug, Default)]
pub(crate) struct VcsIgnores {
    /// The directory that roots are relative to. The current directory of a worker may differ.
    start: PathBuf,
    /// The user's rules for all repositories.
    global: Option<IgnoreRules>,
    /// The rules of directories above roots, by path, because many roots share them.
    above: Mutex<HashMap<PathBuf, Arc<DirRules>>>,
}

/// The rules for the entries of a directory, attached to it.
struct NodeRules {
    nearest: Arc<RuleLink>,
    problems: Vec<ListProblem>,
}

/// The rules of a root, or of a directory that has any, with those above it: a list in which the
/// other directories are missing, so that a look at it costs as much at any depth.
struct RuleLink {
    rules: DirRules,
    /// The length of the real path of the directory, with a trailing slash.
    len: usize,
    /// Whether it, or a directory above it, is a repository.
    in_repository: bool,
    base: Arc<RootBase>,
    above: Option<Arc<Self>>,
}

/// The location of a root.
struct RootBase {
    /// The real path of the root, with a trailing slash.
    path: Vec<u8>,
    /// The length of the path of the root as given, with a trailing slash.
    given_len: usize,
    /// The rules of the directories above it, the nearest first, each with the length of the
    /// directory's path.
    above: Vec<(usize, Arc<DirRules>)>,
}

/// Problems found while rules are read.
type ListProblems = Vec<ListProblem>;

/// A directory whose files of rules are read.
struct RuleDir<'a> {
    at: BorrowedFd<'a>,
    /// The names in the directory, if all of them are known.
    names: Option<&'a Names>,
    path: &'a dyn Fn() -> Vec<u8>,
}

impl RuleDir<'_> {
    fn may_have(&self, name: &CStr) -> bool {
        self.names.is_none_or(|names| names.iter().any(|each| each.name == name))
    }

    /// Reads the rules in the file `name`, which may be in a directory below.
    fn rules(&self, name: &CStr, follow: Follow, problems: &mut ListProblems) -> Option<IgnoreRules> {
        let path = || [&(self.path)()[..], name.to_bytes()].concat();
        match sys::read_file(self.at, name, follow, BYTES_MAX) {
            Ok(text) => text.map(|text| parse(&text, &path, problems)),
            Err(errno) => {
                problems.push(ListProblem::File(path(), errno));
                None
            }
        }
    }

    /// Reads the rules in the file `name` of this directory, if it exists. Like git, ignores
    /// symbolic links.
    fn own_rules(&self, name: &CStr, problems: &mut ListProblems) -> Option<IgnoreRules> {
        self.may_have(name).then(|| self.rules(name, Follow::No, problems)).flatten()
    }

    /// Reads the rules of this directory. `in_repository` tells whether a directory above it is a
    /// repository.
    fn read(&self, in_repository: bool, problems: &mut ListProblems) -> DirRules {
        let git = self.may_have(c".git").then(|| sys::stat(self.at, c".git", Follow::Yes, Fields::IDENTITY));
        let git = git.and_then(Result::ok);
        let gitignored = in_repository || git.is_some();
        DirRules {
            ignore: self.own_rules(c".ignore", problems),
            gitignore: gitignored.then(|| self.own_rules(c".gitignore", problems)).flatten(),
            exclude: git.and_then(|git| self.excluded(git.file_type(), problems)),
            is_repository: git.is_some(),
        }
    }

    /// Reads `info/exclude` of the repository whose `.git` directory, or file with the path of that
    /// directory, is in this directory (gitrepository-layout(5)).
    fn excluded(&self, git: FileType, problems: &mut ListProblems) -> Option<IgnoreRules> {
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

fn parse(text: &[u8], path: &dyn Fn() -> Vec<u8>, problems: &mut ListProblems) -> IgnoreRules {
    let (rules, malformed) = IgnoreRules::parse(text);
    problems.extend(malformed.map(|malformed| ListProblem::Rule(path(), malformed)));
    rules
}

/// Appends a slash to the path of a directory.
fn with_slash(mut path: Vec<u8>) -> Vec<u8> {
    if path.last() != Some(&b'/') {
        path.push(b'/');
    }
    path
}

impl VcsIgnores {
    /// Reads the user's rules for all repositories.
    pub(crate) fn new() -> (Self, ListProblems) {
        let (mut problems, mut global) = (Vec::new(), None);
        let start = std::env::current_dir().unwrap_or_default();
        if let Some(path) = gitconfig_excludes_path() {
            let path = start.join(path).into_os_string().into_vec();
            let place = RuleDir { at: sys::CWD, names: None, path: &Vec::new };
            let path = CString::new(path).ok();
            global = path.and_then(|path| place.rules(&path, Follow::Yes, &mut problems));
        }
        (Self { start, global, above: Mutex::default() }, problems)
    }

    /// Reads the rules of an opened directory and attaches them to it. Returns the approximate
    /// number of bytes they take.
    pub(crate) fn read_rules(&self, dir: &Opened<'_>) -> usize {
        let (node, mut problems) = (&**dir.node, Vec::new());
        let above = node.parent().and_then(|parent| nearest(parent));
        let base = above.map(|above| above.base.clone());
        let base = base.unwrap_or_else(|| Arc::new(self.root_base(node, &mut problems)));
        let in_repository = above.map_or_else(|| base.is_in_repository(), |above| above.in_repository);
        let path = || with_slash(plan::path(node));
        let place = RuleDir { at: dir.at, names: dir.all.then_some(dir.names), path: &path };
        let rules = place.read(in_repository, &mut problems);
        let bytes = size_of::<NodeRules>() + rules.heap_bytes();
        let nearest = match above {
            Some(above) if rules.is_empty() => above.clone(),
            _ => Arc::new(RuleLink {
                in_repository: in_repository || rules.is_repository,
                len: base.real_len(node),
                rules,
                base,
                above: above.cloned(),
            }),
        };
        node.set_note(NodeRules { nearest, problems });
        bytes
    }

    fn root_base(&self, root: &Node, problems: &mut ListProblems) -> RootBase {
        let path = self.start.join(OsStr::from_bytes(root.name().to_bytes()));
        let path = path.canonicalize().unwrap_or_else(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            problems.push(ListProblem::Access(plan::path(root), errno));
            PathBuf::new()
        });
        let mut above = Vec::new();
        // From the top down: a directory is in a repository if one above it is.
        let mut in_repository = false;
        for dir in path.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
            let rules = self.rules_above(dir, in_repository, problems);
            in_repository |= rules.is_repository;
            above.push((with_slash(dir.as_os_str().as_bytes().to_vec()).len(), rules));
        }
        above.retain(|(_, rules)| !rules.is_empty());
        above.reverse();
        let given_len = root.path_len_with_slash();
        RootBase { path: with_slash(path.into_os_string().into_vec()), given_len, above }
    }

    fn rules_above(&self, dir: &Path, in_repository: bool, problems: &mut ListProblems) -> Arc<DirRules> {
        let mut above = self.above.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rules) = above.get(dir) {
            return rules.clone();
        }
        let path = || with_slash(dir.as_os_str().as_bytes().to_vec());
        let opened = CString::new(path()).map_err(|_| Errno::INVAL);
        let rules = match opened.and_then(|path| sys::open_path(sys::CWD, &path, Follow::Yes)) {
            Ok(fd) => RuleDir { at: fd.as_fd(), names: None, path: &path }.read(in_repository, problems),
            Err(errno) => {
                problems.push(ListProblem::Access(path(), errno));
                DirRules::default()
            }
        };
        let rules = Arc::new(rules);
        above.insert(dir.to_owned(), rules.clone());
        rules
    }

    /// Returns the rules for the entries of `dir`, whose own rules have been read. `None` if there
    /// are none.
    pub(crate) fn rules_in<'a>(&'a self, dir: &'a Node) -> Option<DirIgnores<'a>> {
        let nearest = &**nearest(dir)?;
        let base = &nearest.base;
        let links = std::iter::successors(Some(nearest), |link| link.above.as_deref());
        let below = links.map(|link| (link.len, &link.rules));
        let above = base.above.iter().map(|(len, rules)| (*len, &**rules));
        let stack = RuleStack::new(&below.chain(above).collect::<Vec<_>>(), self.global.as_ref());
        if stack.is_empty() {
            return None;
        }
        let (mut path, mut reported) = (base.path.clone(), plan::path(dir));
        if dir.depth() > 0 {
            reported.push(b'/');
            // Matching uses real paths: the real path of the root replaces the root as given.
            path.extend_from_slice(&reported[base.given_len..]);
        }
        Some(DirIgnores { stack, len: path.len(), path })
    }
}

impl RootBase {
    /// Returns the length of the real path of a directory, with a trailing slash.
    fn real_len(&self, dir: &Node) -> usize {
        self.path.len() + dir.path_len_with_slash() - self.given_len
    }

    fn is_in_repository(&self) -> bool {
        self.above.iter().any(|(_, rules)| rules.is_repository)
    }
}

/// Returns the rules that hold in a directory: the rules of the nearest one whose files of rules
/// have been read, which is mostly itself.
fn nearest(dir: &Node) -> Option<&Arc<RuleLink>> {
    dir.chain().find_map(Node::note::<NodeRules>).map(|note| &note.nearest)
}

/// Returns the problems with the files of rules of a directory, and of those above a root.
pub(crate) fn problems_of(dir: &Node) -> &[ListProblem] {
    dir.note::<NodeRules>().map_or(&[], |note| &note.problems)
}

/// The rules for the entries of one directory.
pub(crate) struct DirIgnores<'a> {
    stack: RuleStack<'a>,
    /// The directory's path, followed by the name of the last test.
    path: Vec<u8>,
    len: usize,
}

impl DirIgnores<'_> {
    /// Returns whether the entry `name` is ignored.
    pub(crate) fn ignores(&mut self, name: &[u8], is_dir: bool) -> bool {
        self.path.truncate(self.len);
        self.path.extend_from_slice(name);
        self.stack.leaves_out(&self.path, is_dir)
    }

    /// Returns whether the entry is ignored whatever its type.
    pub(crate) fn ignores_any_type(&mut self, name: &[u8]) -> bool {
        self.ignores(name, true) && self.ignores(name, false)
    }
}
