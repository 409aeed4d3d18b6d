//! Rules for Cargo manifests: which crate may depend on which, every dependency is used and has a
//! row in docs/dependencies.md, every crate takes the workspace's lints, lock files name one
//! registry and, where builds share a target directory, one version.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::tree::Tree;

/// Each crate of the workspace, with the crates that it may depend on. Adding to this list is a
/// design decision.
const DEPENDENCIES: [(&str, &[&str]); 15] = [
    (CASES, &[]),
    ("fathom-io", &[]),
    ("fathom-text", &[]),
    ("fathom-walk", &["fathom-io"]),
    ("fathom-du", &["fathom-text", "fathom-walk", "fathom-io"]),
    ("fathom-inventory", &["fathom-text", "fathom-walk", "fathom-io"]),
    ("fathom-questions", &["fathom-inventory", "fathom-text", "fathom-walk", "fathom-io"]),
    ("fathom-scans", &["fathom-questions", "fathom-inventory", "fathom-text", "fathom-walk", "fathom-io"]),
    ("fathom-files", &["fathom-io"]),
    ("fathom-remove", &["fathom-walk", "fathom-io"]),
    (
        "fathom-explore",
        &[
            "fathom-scans",
            "fathom-questions",
            "fathom-inventory",
            "fathom-remove",
            "fathom-text",
            "fathom-walk",
            "fathom-io",
        ],
    ),
    ("fathom-report", &["fathom-questions", "fathom-inventory", "fathom-text", "fathom-io"]),
    ("fathom-serve", &["fathom-files", "fathom-text", "fathom-io"]),
    ("fathom-bench", &["fathom-files", "fathom-remove", "fathom-text", "fathom-walk", "fathom-io"]),
    (
        "fathomfs",
        &[
            "fathom-bench",
            "fathom-du",
            "fathom-explore",
            "fathom-inventory",
            "fathom-questions",
            "fathom-remove",
            "fathom-report",
            "fathom-scans",
            "fathom-serve",
            "fathom-text",
            "fathom-walk",
            "fathom-io",
        ],
    ),
];
/// The crate that the tests of all others may depend on.
const CASES: &str = "fathom-cases";
/// The crate that makes the inventories of examples and tests.
const SCANS: &str = "fathom-scans";
/// The document with the reason for each dependency.
const REASONS: &str = "docs/dependencies.md";
/// The source of every external package in the lock file.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Finds crates and dependencies in the output of `cargo metadata` that [`DEPENDENCIES`] lacks.
/// Dependencies of tests and build scripts count, because they also decide the order of builds.
pub(crate) fn new_arrows(metadata: &Value) -> Vec<String> {
    let packages: Vec<&Value> = metadata["packages"].as_array().into_iter().flatten().collect();
    let ours: BTreeSet<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut problems = Vec::new();
    for package in &packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, allowed)) = DEPENDENCIES.iter().find(|(known, _)| *known == name) else {
            problems.push(format!("{name}: not among the known crates"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let other = dependency["name"].as_str().unwrap_or_default();
            let local = ours.contains(other) || dependency["path"].is_string();
            let is_for_tests = [CASES, SCANS].contains(&other) && dependency["kind"] == "dev";
            // A crate's tests depend on it with the features that they need.
            if local && other != name && !is_for_tests && !allowed.contains(&other) {
                problems.push(format!("{name} -> {other}: not an arrow of the design"));
            }
        }
    }
    problems
}

/// Finds dependencies without a row in the document, and rows without a dependency.
pub(crate) fn unexplained_dependencies(tree: &Tree) -> Vec<String> {
    let used: BTreeSet<&str> = tree.texts("Cargo.toml").flat_map(|(_, text)| dependencies(text)).collect();
    let explained = explained(tree.text(REASONS).unwrap_or_default());
    let missing = used.difference(&explained).map(|name| format!("{REASONS}: no row for {name}"));
    let stale = explained.difference(&used).map(|name| format!("{REASONS}: {name} is no dependency"));
    missing.chain(stale).collect()
}

/// Returns the names in the first column of the document's tables: `| [`name`](..) |` or `| `name`
/// |`.
fn explained(document: &str) -> BTreeSet<&str> {
    let rows = document.lines().filter(|line| line.starts_with("| `") || line.starts_with("| [`"));
    rows.filter_map(|line| line.split('`').nth(1)).collect()
}

/// Finds dependencies that the workspace declares and no member uses.
pub(crate) fn unused_dependencies(tree: &Tree) -> Vec<String> {
    let (workspace, members): (Vec<_>, Vec<_>) =
        tree.texts("Cargo.toml").partition(|(name, _)| *name == "Cargo.toml");
    let used: BTreeSet<&str> = members.iter().flat_map(|(_, text)| dependencies(text)).collect();
    let declared = workspace.iter().flat_map(|(_, text)| dependencies(text));
    declared
        .filter(|name| !used.contains(name))
        .map(|name| format!("Cargo.toml: {name} is not used"))
        .collect()
}

/// Returns the names in the dependency tables of a manifest, without the crates of this workspace.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let (table, name) = header.rsplit_once("dependencies.").unwrap_or((header, ""));
            inside = header.ends_with("dependencies");
            found.extend((!name.is_empty() && !table.ends_with('\'')).then_some(name));
        } else if inside && !line.starts_with('#') {
            let key = line.split(['=', '.', ' ']).next().unwrap_or_default();
            found.extend((line.contains('=') && !key.is_empty()).then_some(key));
        }
    }
    found.retain(|name| !name.starts_with("fathom"));
    found
}

/// Finds members that do not take the workspace's lints, which deny `unsafe`.
pub(crate) fn without_lints(tree: &Tree) -> Vec<String> {
    // A workspace of its own cannot inherit them.
    let is_member =
        |(name, text): &(&str, &str)| name.starts_with("crates/") && !text.contains("[workspace]");
    let members = tree.texts("Cargo.toml").filter(is_member);
    let lints = |text: &str| text.contains("[lints]\nworkspace = true");
    members
        .filter(|(_, text)| !lints(text))
        .map(|(name, _)| format!("{name}: no [lints] workspace = true"))
        .collect()
}

/// Finds packages that a lock file takes from a source other than the public registry.
pub(crate) fn other_sources(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (file, text) in tree.texts("Cargo.lock") {
        let sources = text.lines().filter_map(|line| line.strip_prefix("source = "));
        let others = sources.filter(|source| source.trim_matches('"') != REGISTRY);
        problems.extend(others.map(|source| format!("{file}: {source}")));
    }
    problems
}

/// Lock files of workspaces whose tests share compiled dependencies with the tests of the main one.
const SHARING: [&str; 2] = ["crates/python/Cargo.lock", "fuzz/Cargo.lock"];

/// Finds packages of [`SHARING`] in a version that the main lock file lacks, though it has others.
pub(crate) fn other_versions(tree: &Tree) -> Vec<String> {
    let main = locked(tree.text("Cargo.lock").unwrap_or_default());
    let names: BTreeSet<&str> = main.iter().map(|(name, _)| *name).collect();
    let mut problems = Vec::new();
    for file in SHARING {
        let theirs = locked(tree.text(file).unwrap_or_default());
        let others = theirs.difference(&main).filter(|(name, _)| names.contains(name));
        problems.extend(others.map(|(name, version)| format!("{file}: {name} {version}")));
    }
    problems
}

/// Returns name and version of each package in a lock file.
fn locked(text: &str) -> BTreeSet<(&str, &str)> {
    text.split("[[package]]")
        .filter_map(|package| Some((quoted(package, "name")?, quoted(package, "version")?)))
        .collect()
}

/// Returns the value of `KEY = "VALUE"`.
fn quoted<'a>(package: &'a str, key: &str) -> Option<&'a str> {
    package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_the_main_lock_file_has_not_is_found() {
        let package =
            |name: &str, version: &str| format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n");
        let main = [package("a", "1"), package("a", "2"), package("b", "1")].concat();
        let other = [package("a", "2"), package("b", "3"), package("c", "4")].concat();
        let tree = Tree::of(&[("Cargo.lock", &main), ("fuzz/Cargo.lock", &other)]);
        assert_eq!(other_versions(&tree), ["fuzz/Cargo.lock: b 3"]);
    }

    fn metadata(packages: Value) -> Value {
        serde_json::json!({ "packages": packages })
    }

    #[test]
    fn an_unlisted_dependency_is_found_in_tests_too() {
        let found = new_arrows(&metadata(serde_json::json!([
            {"name": "fathom-io", "dependencies": [{"name": "fathom-walk", "kind": "dev", "path": "x"}, {"name": "libc"}]},
            {"name": "fathom-walk", "dependencies": [{"name": "fathom-io"}, {"name": "fathom-cases", "kind": "dev"}]},
            {"name": "fathom-du", "dependencies": [{"name": "fathom-cases", "path": "x"}]},
        ])));
        let others = ["fathom-io -> fathom-walk", "fathom-du -> fathom-cases"];
        assert_eq!(found, others.map(|arrow| format!("{arrow}: not an arrow of the design")));
    }

    #[test]
    fn an_unlisted_crate_is_found() {
        let found = new_arrows(&metadata(serde_json::json!([
            {"name": "fathom-extra", "dependencies": []},
            {"name": "fathomfs", "dependencies": [{"name": "helper", "path": "../../helper"}]},
        ])));
        let expected =
            ["fathom-extra: not among the known crates", "fathomfs -> helper: not an arrow of the design"];
        assert_eq!(found, expected);
    }

    #[test]
    fn dependencies_are_found_in_every_form() {
        let manifest = "[package]\nname = \"x\"\n[dependencies]\na = \"1\"\nb.workspace = true\n# c = \"1\"\nfathom-io.workspace = true\n\
                        d = { version = \"1\", features = [\n  \"e\",\n] }\n[target.'cfg(unix)'.dev-dependencies]\nf = \"1\"\n[dependencies.g]\nversion = \"1\"\n";
        assert_eq!(dependencies(manifest), ["a", "b", "d", "f", "g"]);
    }

    #[test]
    fn each_dependency_needs_a_row_and_each_row_a_dependency() {
        let tree = Tree::of(&[
            ("crates/a/Cargo.toml", "[dependencies]\nknown = \"1\"\nunknown = \"1\"\n"),
            (REASONS, "| crate | why |\n|---|---|\n| `known` | `other` |\n| [`stale`](x) | why |\n"),
        ]);
        let expected =
            ["docs/dependencies.md: no row for unknown", "docs/dependencies.md: stale is no dependency"];
        assert_eq!(unexplained_dependencies(&tree), expected);
    }

    #[test]
    fn an_unused_dependency_is_found() {
        let tree = Tree::of(&[
            ("Cargo.toml", "[workspace.dependencies]\na = \"1\"\nb = \"1\"\n"),
            ("crates/a/Cargo.toml", "[dev-dependencies]\na.workspace = true\n"),
        ]);
        assert_eq!(unused_dependencies(&tree), ["Cargo.toml: b is not used"]);
    }

    #[test]
    fn a_crate_without_the_lints_is_found() {
        let tree = Tree::of(&[
            ("crates/a/Cargo.toml", "[lints]\nworkspace = true\n"),
            ("crates/b/Cargo.toml", "[package]\n"),
        ]);
        assert_eq!(without_lints(&tree), ["crates/b/Cargo.toml: no [lints] workspace = true"]);
    }

    #[test]
    fn another_registry_in_the_lock_file_is_found() {
        let lock = format!("source = \"{REGISTRY}\"\nsource = \"git+https://host.example/x\"\n");
        assert_eq!(
            other_sources(&Tree::of(&[("Cargo.lock", &lock)])),
            ["Cargo.lock: \"git+https://host.example/x\""]
        );
    }
}
