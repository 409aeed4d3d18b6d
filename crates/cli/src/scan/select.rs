//! Selection of the entries that `--exclude` and `--ignore-vcs` leave out of an inventory.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use fathom_du::exclude::Exclude;
use fathom_inventory::scan::{LeftOut, Selection};
use fathom_text::quote::Charset;
use fathom_walk::{FileType, Names, Node, Opened};

use super::say;
use crate::list::report::message;
use crate::list::vcs::{self, Vcs};
use crate::locale;

/// The selection made on the command line, of this run or an earlier one.
#[derive(Debug)]
struct Chosen {
    charset: Charset,
    exclude: Exclude,
    vcs: Option<Vcs>,
}

/// Reads the patterns and the user's own rules, and says what is wrong with those.
pub(super) fn selector(left_out: &LeftOut) -> Option<Arc<dyn Selection>> {
    if left_out.is_of_depth_alone() {
        return None;
    }
    let env = |name: &str| std::env::var_os(name).map(OsString::into_vec);
    let charset = locale::charset(&env);
    let mut exclude = Exclude::new(charset, env("POSIXLY_CORRECT").is_some());
    left_out.patterns.iter().for_each(|pattern| exclude.add(pattern));
    let (vcs, problems) = left_out.ignores_vcs.then(Vcs::new).unzip();
    problems.iter().flatten().for_each(|problem| say(&message(problem, charset)));
    Some(Arc::new(Chosen { charset, exclude, vcs }))
}

impl Chosen {
    fn excludes(&self, dir: &Node, names: &mut Names) {
        let mut path = Vec::new();
        if self.exclude.needs_path() {
            dir.path_into(&mut path);
        }
        let mut joined = Vec::new();
        names.retain(|name| !self.exclude.matches_below(&path, name.name.to_bytes(), &mut joined));
    }
}

impl Selection for Chosen {
    fn looks_into_directories(&self) -> bool {
        self.vcs.is_some()
    }

    fn opened(&self, dir: &Opened<'_>) -> usize {
        self.vcs.as_ref().map_or(0, |vcs| vcs.look(dir))
    }

    fn select(&self, dir: &Node, names: &mut Names) {
        if !self.exclude.is_empty() {
            self.excludes(dir, names);
        }
        let Some(mut here) = self.vcs.as_ref().and_then(|vcs| vcs.rules_in(dir)) else { return };
        names.retain(|name| match (name.file_type, name.name.to_bytes()) {
            (FileType::Unknown, text) => !here.leaves_out_anyway(text),
            (file_type, text) => !here.leaves_out(text, file_type == FileType::Directory),
        });
    }

    fn leaves_out(&self, dir: &Node, name: &[u8], is_dir: bool) -> bool {
        let here = self.vcs.as_ref().and_then(|vcs| vcs.rules_in(dir));
        here.is_some_and(|mut here| here.leaves_out(name, is_dir))
    }

    fn warnings(&self, dir: &Node) -> Vec<Vec<u8>> {
        vcs::problems_of(dir).iter().map(|problem| message(problem, self.charset)).collect()
    }
}
