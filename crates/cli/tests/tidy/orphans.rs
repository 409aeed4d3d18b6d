//! Finds Rust files that no crate compiles, and strange files at the top. Follows `mod`, `#[path]`
//! and `include!` from the roots that cargo finds by place or by name. A `mod` inside an inline
//! module is looked up in the directory of its file.

use std::collections::BTreeSet;

use crate::mask::{code_only, name_after, tokens};
use crate::tree::{Tree, directory, resolve};

/// The names at the top of the checkout.
const TOP_NAMES: [&str; 25] = [
    ".cargo",
    ".ci",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "benches",
    "clippy.toml",
    "contrib",
    "crates",
    "docs",
    "fuzz",
    "model",
    "playground",
    "pyproject.toml",
    "python",
    "rustfmt.toml",
    "tools",
];

/// Returns the names at the top that are not expected there, such as output saved by accident.
pub(crate) fn stray_at_top(tree: &Tree) -> Vec<String> {
    let tops: BTreeSet<_> = tree.names().filter_map(|name| name.split('/').next()).collect();
    tops.into_iter().filter(|name| !TOP_NAMES.contains(name)).map(|name| format!("{name}: stray")).collect()
}

/// Returns the Rust files that no crate root reaches by `mod` or `include!`.
pub(crate) fn orphans(tree: &Tree) -> Vec<String> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<(String, bool)> =
        tree.texts("Cargo.toml").flat_map(|(name, text)| roots(tree, name, text)).collect();
    while let Some((file, is_root)) = next.pop() {
        let Some(source) = tree.text(&file) else { continue };
        if reached.insert(file.clone()) {
            next.extend(children(&file, source, is_root).map(|child| (child, false)));
        }
    }
    let files = tree.texts(".rs").map(|(file, _)| file);
    files.filter(|file| !reached.contains(*file)).map(|file| format!("{file}: in no crate")).collect()
}

/// Returns the files that cargo compiles as crate roots for the manifest `name`.
fn roots<'a>(tree: &'a Tree, name: &'a str, manifest: &'a str) -> impl Iterator<Item = (String, bool)> + 'a {
    let package = directory(name);
    let prefix = if package.is_empty() { String::new() } else { format!("{package}/") };
    let named = manifest.lines().filter_map(|line| line.trim().strip_prefix("path"));
    let named = named.filter_map(|value| value.split('"').nth(1)).filter(|path| path.ends_with(".rs"));
    let named: Vec<String> = named.filter_map(|path| resolve(package, path)).collect();
    let placed = tree.texts(".rs").filter_map(move |(file, _)| {
        let inside = file.strip_prefix(&prefix)?;
        is_target(inside).then(|| file.to_string())
    });
    placed.chain(named).map(|file| (file, true))
}

/// Whether cargo treats this file of a package as a target without a manifest entry.
fn is_target(inside: &str) -> bool {
    let parts: Vec<&str> = inside.split('/').collect();
    matches!(
        parts[..],
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["src", "bin", _]
            | ["src", "bin", _, "main.rs"]
            | ["tests" | "benches" | "examples", _]
            | ["tests" | "benches" | "examples", _, "main.rs"]
    )
}

/// Returns every file that `mod NAME;` or `include!` in `file` may refer to.
fn children<'a>(file: &'a str, source: &'a str, is_root: bool) -> impl Iterator<Item = String> + 'a {
    let code = code_only(source);
    let own = file.rsplit('/').next().and_then(|name| name.strip_suffix(".rs")).unwrap_or_default();
    let flat = is_root || matches!(own, "mod" | "lib" | "main");
    let home = if flat { directory(file).to_string() } else { format!("{}/{own}", directory(file)) };
    let mut found = Vec::new();
    for at in tokens(&code, "mod") {
        let Some(name) = name_after(&code, at + "mod".len()) else { continue };
        match path_attribute(source, &code, at) {
            Some(path) => found.extend(resolve(directory(file), path)),
            None => found.extend([format!("{home}/{name}.rs"), format!("{home}/{name}/mod.rs")]),
        }
    }
    for at in tokens(&code, "include") {
        found.extend(source[at..].split('"').nth(1).and_then(|path| resolve(directory(file), path)));
    }
    found.into_iter()
}

/// Returns the value of a `#[path = ".."]` among the attributes of the item at `at`.
fn path_attribute<'a>(source: &'a str, code: &str, at: usize) -> Option<&'a str> {
    let start = code[..at].rfind([';', '{', '}']).map_or(0, |end| end + 1);
    let attribute = start + code[start..at].find("#[path")?;
    source[attribute..at].split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_that_was_saved_at_the_top_is_stray() {
        let tree = Tree::of(&[(".err", ""), ("README.md", ""), ("docs/x", ""), ("out/.err", "")]);
        assert_eq!(stray_at_top(&tree), [".err: stray", "out: stray"]);
    }

    #[test]
    fn a_file_without_a_mod_is_an_orphan() {
        let tree = Tree::of(&[
            ("c/Cargo.toml", "[[bin]]\nname = \"x\"\npath = \"src/tools/x.rs\"\n"),
            ("c/src/lib.rs", "mod a;\n// mod lost;\n#[path = \"odd.rs\"]\nmod b;"),
            ("c/src/a.rs", "mod inner;"),
            ("c/src/a/inner.rs", ""),
            ("c/src/odd.rs", ""),
            ("c/src/lost.rs", ""),
            ("c/src/tools/x.rs", "include!(\"y.rs\");"),
            ("c/src/tools/y.rs", ""),
            ("c/tests/t/main.rs", "mod u;"),
            ("c/tests/t/u.rs", ""),
            ("c/tests/support/lost.rs", ""),
        ]);
        assert_eq!(orphans(&tree), ["c/src/lost.rs: in no crate", "c/tests/support/lost.rs: in no crate"]);
    }
}
