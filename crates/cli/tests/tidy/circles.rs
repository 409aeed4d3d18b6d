//! Circles of modules: the files of a crate that use each other, directly or through others. Each
//! crate has an upper bound for its largest circle, which may only be lowered.
//!
//! A module uses another if it names it in a path that begins with `crate`, `self`, `super` or the
//! name of a child. Test code does not count.

use std::collections::{BTreeMap, BTreeSet};

use crate::mask::{code_only, tokens};
use crate::tree::Tree;

/// The upper bound of the modules in the largest circle of each crate.
const LARGEST_CIRCLES: [(&str, usize); 16] = [
    ("bench", 42),
    ("cases", 1),
    ("cli", 5),
    ("du", 4),
    ("explore", 9),
    ("files", 9),
    ("inventory", 5),
    ("io", 16),
    ("python", 2),
    ("questions", 4),
    ("remove", 4),
    ("report", 2),
    ("scans", 4),
    ("serve", 5),
    ("text", 3),
    ("walk", 3),
];

/// A module: the names that lead to it from the root of its crate.
type ModulePath = Vec<String>;

/// Finds crates whose largest circle has another size than its bound: larger, or smaller, so that
/// the bound can be lowered.
pub(crate) fn changed_circles(tree: &Tree) -> Vec<String> {
    let mut breaches = Vec::new();
    for (name, bound) in LARGEST_CIRCLES {
        let largest = largest_circle(&uses(tree, &format!("crates/{name}/src/")));
        if largest.len() != bound {
            let modules: Vec<_> = largest.iter().map(|module| module.join("::")).collect();
            let size = largest.len();
            breaches.push(format!(
                "crates/{name}: the largest circle has {size} modules, not {bound}: {modules:?}"
            ));
        }
    }
    breaches
}

/// Returns the modules that each module below `root` uses.
pub(crate) fn uses(tree: &Tree, root: &str) -> BTreeMap<ModulePath, BTreeSet<ModulePath>> {
    let sources: Vec<_> = tree
        .texts(".rs")
        .filter_map(|(file, source)| Some((module_of(file.strip_prefix(root)?)?, source)))
        .collect();
    let modules: BTreeSet<_> = sources.iter().map(|(module, _)| module.clone()).collect();
    let used = |(module, source): (ModulePath, &str)| {
        let paths = paths(&without_tests(source));
        let targets = paths.iter().filter_map(|path| target(&modules, &module, path));
        let targets = targets.filter(|target| *target != module).collect();
        (module, targets)
    };
    sources.into_iter().map(used).collect()
}

/// Returns the module of a file below `src/`; `None` for tests and for programs of their own.
fn module_of(file: &str) -> Option<ModulePath> {
    let mut names: ModulePath = file.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if matches!(names.last()?.as_str(), "mod" | "lib" | "main") {
        names.pop();
    }
    let is_other = |name: &String| name == "bin" || name == "tests" || name.starts_with("test_");
    (!names.iter().any(is_other)).then_some(names)
}

/// Returns the code of a source up to its first test module, without items for tests alone.
fn without_tests(source: &str) -> String {
    let code = code_only(source);
    let mut kept = String::new();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with("#[cfg(test)]") {
            match lines.next() {
                Some(item) if item.trim_end().ends_with('{') => break,
                _ => continue,
            }
        }
        kept += line;
        kept.push('\n');
    }
    kept
}

/// Returns the paths in `use` declarations and in expressions, with `use` trees expanded.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = code.to_owned();
    for at in tokens(code, "use") {
        let Some(length) = code[at..].find(';') else { continue };
        expand(&mut Vec::new(), &code[at + "use".len()..at + length], &mut found);
        rest.replace_range(at..at + length, &" ".repeat(length));
    }
    for start in ["crate", "super", "self"] {
        // The second `super` of a path is a part of it.
        for at in tokens(&rest, start).filter(|at| !rest[..*at].ends_with("::")) {
            let is_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
            let path = rest[at..].split(|c| !is_path(c)).next().unwrap_or_default();
            if path.contains("::") {
                found.push(names(path));
            }
        }
    }
    found
}

/// Appends the paths of a `use` tree below `prefix`.
fn expand(prefix: &mut Vec<String>, tree: &str, found: &mut Vec<Vec<String>>) {
    let Some((head, inner)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return found.push([&prefix[..], &names(path)].concat());
    };
    let depth = prefix.len();
    prefix.extend(names(head));
    let inner = inner.rsplit_once('}').map_or(inner, |(inner, _)| inner);
    let mut nesting = 0;
    let at_top = |letter: char| {
        nesting += i32::from(letter == '{') - i32::from(letter == '}');
        letter == ',' && nesting == 0
    };
    inner.split(at_top).filter(|part| !part.trim().is_empty()).for_each(|part| expand(prefix, part, found));
    prefix.truncate(depth);
}

fn names(path: &str) -> Vec<String> {
    path.split("::").map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// Returns the module that `path` leads to from `module`: the deepest one on its way.
fn target(modules: &BTreeSet<ModulePath>, module: &ModulePath, path: &[String]) -> Option<ModulePath> {
    let (mut base, mut rest) = match path.first()?.as_str() {
        "crate" => (Vec::new(), &path[1..]),
        "self" => (module.clone(), &path[1..]),
        "super" => (module.clone(), path),
        child => {
            let is_child = modules.contains(&[&module[..], &[child.to_owned()]].concat());
            return is_child.then(|| deepest(modules, &[&module[..], path].concat()));
        }
    };
    while rest.first().is_some_and(|name| name == "super") {
        base.pop();
        rest = &rest[1..];
    }
    base.extend(rest.iter().cloned());
    Some(deepest(modules, &base))
}

fn deepest(modules: &BTreeSet<ModulePath>, path: &[String]) -> ModulePath {
    let lengths = (0..=path.len()).rev();
    lengths.map(|length| path[..length].to_vec()).find(|way| modules.contains(way)).unwrap_or_default()
}

/// Returns the modules of the largest circle, the first in order if there are several, and one
/// module if there is none.
fn largest_circle(uses: &BTreeMap<ModulePath, BTreeSet<ModulePath>>) -> Vec<ModulePath> {
    let reached: BTreeMap<_, _> = uses.keys().map(|module| (module, reach(uses, module))).collect();
    let circle = |module: &ModulePath| {
        let mut circle: Vec<_> =
            reached[module].iter().filter(|other| reached[*other].contains(module)).cloned().collect();
        if circle.is_empty() {
            circle.push(module.clone());
        }
        circle
    };
    let mut largest = Vec::new();
    for found in uses.keys().map(circle) {
        if found.len() > largest.len() {
            largest = found;
        }
    }
    largest
}

/// Returns the modules that `module` uses, directly or through others.
fn reach(uses: &BTreeMap<ModulePath, BTreeSet<ModulePath>>, module: &ModulePath) -> BTreeSet<ModulePath> {
    let mut reached = BTreeSet::new();
    let mut next = vec![module];
    while let Some(module) = next.pop() {
        for used in uses.get(module).into_iter().flatten() {
            if reached.insert(used.clone()) {
                next.push(used);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files.iter().map(|(file, text)| (format!("c/src/{file}"), *text)).collect();
        let files: Vec<_> = files.iter().map(|(file, text)| (&file[..], *text)).collect();
        let circle = largest_circle(&uses(&Tree::of(&files), "c/src/"));
        circle.iter().map(|module| module.join("::")).collect()
    }

    #[test]
    fn modules_that_use_each_other_form_a_circle() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a/mod.rs", "mod inner;\nuse crate::{b::B, c};"),
            ("a/inner.rs", "fn f() { super::super::c::g(); }"),
            ("b.rs", "use crate::a::inner;\n"),
            ("c.rs", "use super::b::{self, B as Other};"),
        ];
        assert_eq!(circle(&files), ["a::inner", "b", "c"]);
    }

    #[test]
    fn tests_comments_and_children_that_are_only_declared_do_not_count() {
        let files = [
            (
                "a.rs",
                "mod child; // crate::b\n#[cfg(test)]\nuse crate::b;\n#[cfg(test)]\nmod tests {\nuse crate::b;\n}",
            ),
            ("a/child.rs", "use super::X;"),
            ("b.rs", "use crate::a::X;"),
        ];
        assert_eq!(circle(&files).len(), 1);
    }
}
