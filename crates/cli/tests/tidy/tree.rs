//! The files of this checkout as text in memory, so that every rule is a function of a small value
//! and can be tested on a made-up tree. Contains no rule.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files by their path from the top, with `/`. A file that is not UTF-8 exists without a text.
pub(crate) struct Tree {
    files: BTreeMap<String, Option<String>>,
}

impl Tree {
    /// Reads every tracked file of this checkout, and every new file that is not ignored.
    pub(crate) fn checkout() -> Tree {
        let top = top();
        let names = listed_by_git(&top).unwrap_or_else(|| found_by_walking(&top));
        let read = |name: String| Some((String::from_utf8(std::fs::read(top.join(&name)).ok()?).ok(), name));
        Tree { files: names.into_iter().filter_map(read).map(|(text, name)| (name, text)).collect() }
    }

    /// Returns a made-up tree.
    pub(crate) fn of(files: &[(&str, &str)]) -> Tree {
        Tree { files: files.iter().map(|(name, text)| (name.to_string(), Some(text.to_string()))).collect() }
    }

    /// Returns name and text of the text files whose names end in `suffix`.
    pub(crate) fn texts<'a>(&'a self, suffix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let texts = self.files.iter().filter_map(|(name, text)| Some((name.as_str(), text.as_deref()?)));
        texts.filter(move |(name, _)| name.ends_with(suffix))
    }

    /// Returns the names of all files.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Returns the text of one file.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.files.get(name)?.as_deref()
    }

    /// Whether a file or a directory of this name exists.
    pub(crate) fn contains(&self, name: &str) -> bool {
        let below = format!("{name}/");
        self.files.contains_key(name)
            || name.is_empty()
            || self.files.range(below.clone()..).next().is_some_and(|(file, _)| file.starts_with(&below))
    }
}

/// Returns the top directory of this checkout.
pub(crate) fn top() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).expect("the package sits in crates/cli").to_path_buf()
}

/// Returns the directory of a file, "" for a file at the top.
pub(crate) fn directory(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// Resolves `relative` against `directory`, with `.` and `..`. Returns `None` if the result is
/// outside the tree.
pub(crate) fn resolve(directory: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(relative.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns tracked files and new files that are not ignored; `None` if this is not a git checkout
/// (an unpacked archive).
fn listed_by_git(top: &Path) -> Option<Vec<String>> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").arg("-C").arg(top).args(list).output().ok()?;
    let names = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !names.is_empty())
        .then(|| names.split('\0').filter(|name| !name.is_empty()).map(String::from).collect())
}

/// Returns every file below `top`, except those that .gitignore excludes. All of its lines must be
/// anchored.
fn found_by_walking(top: &Path) -> Vec<String> {
    let ignored = std::fs::read_to_string(top.join(".gitignore")).unwrap_or_default();
    let ignored: Vec<&str> = ignored.lines().filter_map(|line| line.strip_prefix('/')).collect();
    let mut found = Vec::new();
    let mut directories = vec![String::new()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(top.join(&directory)).into_iter().flatten().flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let name = if directory.is_empty() { name } else { format!("{directory}/{name}") };
            match entry.file_type() {
                _ if name == ".git" || name == "target" || ignored.contains(&name.as_str()) => {}
                Ok(kind) if kind.is_dir() => directories.push(name),
                _ => found.push(name),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checkout_contains_this_file() {
        assert!(
            Tree::checkout()
                .text("crates/cli/tests/tidy/tree.rs")
                .is_some_and(|text| text.contains("fn top"))
        );
    }

    #[test]
    fn without_git_the_same_files_are_found() {
        let top = top();
        let walked = found_by_walking(&top);
        assert!(walked.iter().any(|name| name == "crates/cli/tests/tidy/tree.rs"));
        assert!(!walked.iter().any(|name| name.starts_with("target/") || name.starts_with(".git/")));
        let listed = listed_by_git(&top).unwrap_or_default();
        let missed = |name: &&String| top.join(name).exists() && !walked.contains(name);
        let missed: Vec<_> = listed.iter().filter(missed).collect();
        assert!(missed.is_empty(), "{missed:?}");
    }

    #[test]
    fn a_directory_exists_when_a_file_is_in_it() {
        let tree = Tree::of(&[("docs/a.md", ""), ("docs-old", "")]);
        assert!(tree.contains("docs") && tree.contains("docs/a.md") && tree.contains(""));
        assert!(!tree.contains("doc") && !tree.contains("docs/b.md"));
    }

    #[test]
    fn paths_resolve_and_may_not_leave_the_tree() {
        assert_eq!(resolve("docs/guide", "../a.md").as_deref(), Some("docs/a.md"));
        assert_eq!(resolve("", "./docs/").as_deref(), Some("docs"));
        assert_eq!(resolve("docs", "../../a.md"), None);
    }
}
