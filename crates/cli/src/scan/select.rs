//! Selection of the entries that `--exclude` and `--ignore-vcs` leave out of an inventory, and that
//! `--also ignored` marks.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use fathom_du::exclude::Exclude;
use fathom_scans::scan::{Exclusions, MarkFn, Selection};
use fathom_text::quote::Charset;
use fathom_walk::{FileType, Names, Node, Opened};

use super::print_error;
use crate::list::report::message;
use crate::list::vcs::{self, DirIgnores, VcsIgnores};
use crate::shared::{locale, patterns};

/// The exclusions given on the command line of this run, or of the run that is resumed.
#[derive(Debug)]
struct ScanSelection {
    charset: Charset,
    exclude: Exclude,
    vcs: Option<VcsIgnores>,
    /// Whether entries that `vcs` ignores are left out, instead of marked.
    leaves_out_ignored: bool,
}

/// Compiles the patterns and reads the user's own rules. Prints warnings about invalid rules.
pub(super) fn selector(exclusions: &Exclusions, marks: bool) -> Option<Arc<dyn Selection>> {
    if exclusions.is_depth_only() && !marks {
        return None;
    }
    let env = |name: &str| std::env::var_os(name).map(OsString::into_vec);
    let charset = locale::charset(&env);
    let exclude = patterns::compile(&exclusions.patterns, charset);
    let leaves_out_ignored = exclusions.ignores_vcs;
    let (vcs, problems) = (leaves_out_ignored || marks).then(VcsIgnores::new).unzip();
    problems.iter().flatten().for_each(|problem| print_error(&message(problem, charset)));
    Some(Arc::new(ScanSelection { charset, exclude, vcs, leaves_out_ignored }))
}

impl ScanSelection {
    /// Returns the rules of `--ignore-vcs` in `dir`.
    fn excluding_rules<'a>(&'a self, dir: &'a Node) -> Option<DirIgnores<'a>> {
        self.vcs.as_ref().filter(|_| self.leaves_out_ignored).and_then(|vcs| vcs.rules_in(dir))
    }

    fn excludes(&self, dir: &Node, names: &mut Names) {
        let mut path = Vec::new();
        if self.exclude.needs_path() {
            dir.path_into(&mut path);
        }
        let mut joined = Vec::new();
        names.retain(|name| !self.exclude.matches_below(&path, name.name.to_bytes(), &mut joined));
    }
}

impl Selection for ScanSelection {
    fn inspects_directories(&self) -> bool {
        self.vcs.is_some()
    }

    fn inspect(&self, dir: &Opened<'_>) -> usize {
        self.vcs.as_ref().map_or(0, |vcs| vcs.read_rules(dir))
    }

    fn select(&self, dir: &Node, names: &mut Names) {
        if !self.exclude.is_empty() {
            self.excludes(dir, names);
        }
        let Some(mut here) = self.excluding_rules(dir) else { return };
        names.retain(|name| match (name.file_type, name.name.to_bytes()) {
            (FileType::Unknown, text) => !here.ignores_any_type(text),
            (file_type, text) => !here.ignores(text, file_type == FileType::Directory),
        });
    }

    fn leaves_out(&self, dir: &Node, name: &[u8], is_dir: bool) -> bool {
        self.excluding_rules(dir).is_some_and(|mut here| here.ignores(name, is_dir))
    }

    fn marks<'a>(&'a self, dir: &'a Node) -> Option<MarkFn<'a>> {
        let mut here = self.vcs.as_ref().filter(|_| !self.leaves_out_ignored)?.rules_in(dir)?;
        Some(Box::new(move |name, is_dir| here.ignores(name, is_dir)))
    }

    fn warnings(&self, dir: &Node) -> Vec<Vec<u8>> {
        vcs::problems_of(dir).iter().map(|problem| message(problem, self.charset)).collect()
    }
}
