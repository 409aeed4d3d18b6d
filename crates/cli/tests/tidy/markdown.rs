//! Rules for documents: the files, headings and `make` targets that they name exist, and the change
//! log has a section for the next release. Links to the web are not checked.

use std::collections::BTreeMap;

use crate::tree::{Tree, directory, resolve};

/// Finds links to files, directories and headings that do not exist.
pub(crate) fn dead_links(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (file, text) in tree.texts(".md") {
        for (line, prose) in prose_lines(text) {
            let dead = targets(&prose).filter(|target| !is_alive(tree, file, target));
            problems.extend(dead.map(|target| format!("{file}:{line}: {target}")));
        }
    }
    problems
}

fn is_alive(tree: &Tree, file: &str, target: &str) -> bool {
    let elsewhere = ["http://", "https://", "mailto:"].iter().any(|scheme| target.starts_with(scheme));
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let found = if path.is_empty() { Some(file.to_string()) } else { resolve(directory(file), path) };
    let heading =
        |name: &str| tree.text(name).is_some_and(|text| anchors(text).iter().any(|known| known == anchor));
    elsewhere || found.is_some_and(|name| tree.contains(&name) && (anchor.is_empty() || heading(&name)))
}

/// Returns the lines outside fenced code, numbered from 1, with code spans blanked.
fn prose_lines(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut fenced = false;
    let prose = text.lines().enumerate().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    prose.map(|(index, line)| (index + 1, without_code_spans(line)))
}

fn without_code_spans(line: &str) -> String {
    let mut parts = line.split('`');
    let mut prose = parts.next().unwrap_or_default().to_string();
    while let (Some(_code), Some(after)) = (parts.next(), parts.next()) {
        prose.push_str("code");
        prose.push_str(after);
    }
    prose
}

/// Returns the targets of `[text](target)` and `[name]: target`.
fn targets(prose: &str) -> impl Iterator<Item = &str> {
    let inline = prose.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let defined = prose.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    let defined = defined.and_then(|(_, rest)| rest.split_whitespace().next());
    inline.chain(defined)
}

/// Returns the anchors of a document's headings, in the format of the usual forges. A repeated
/// heading gets the suffix `-1`, `-2` and so on.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if !fenced && title.len() < line.len() && title.starts_with(' ') {
            let name = anchor(title.trim());
            let count = seen.entry(name.clone()).or_default();
            found.push(if *count == 0 { name } else { format!("{name}-{count}") });
            *count += 1;
        }
    }
    found
}

fn anchor(title: &str) -> String {
    let kept = title.to_lowercase();
    let kept = kept.chars().filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Finds `make TARGET` in the code of documents where the Makefile has no such target.
pub(crate) fn unknown_make_targets(tree: &Tree) -> Vec<String> {
    let makefile = tree.text("Makefile").unwrap_or_default();
    let known: Vec<&str> =
        makefile.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name).collect();
    let mut problems = Vec::new();
    for (file, text) in tree.texts(".md") {
        let named = text.split(['`', '\n']).filter_map(|code| code.strip_prefix("make "));
        let named = named.filter_map(|rest| rest.split_whitespace().next());
        let unknown = named.filter(|target| is_target_name(target) && !known.contains(target));
        problems.extend(unknown.map(|target| format!("{file}: make {target}")));
    }
    problems
}

/// Whether a word after "make" is the name of a target: prose ends in punctuation, and `make *` is
/// a pattern.
fn is_target_name(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

/// Finds a change log without a section for the next release.
pub(crate) fn no_unreleased(tree: &Tree) -> Vec<String> {
    let log = tree.text("CHANGELOG.md").unwrap_or_default();
    let has_it = log.lines().any(|line| line == "## [Unreleased]" || line == "## Unreleased");
    if has_it { Vec::new() } else { vec!["CHANGELOG.md: no heading Unreleased".to_string()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_files_and_headings_are_found() {
        let text = "[a](docs/b.md) [b](docs/c.md)\n[c](docs/b.md#one-two) [d](docs/b.md#three)\n[e](#none)\n[f]: docs/none\n";
        let tree = Tree::of(&[("a.md", text), ("docs/b.md", "# One, `Two`\n")]);
        let expected = ["a.md:1: docs/c.md", "a.md:2: docs/b.md#three", "a.md:3: #none", "a.md:4: docs/none"];
        assert_eq!(dead_links(&tree), expected);
    }

    #[test]
    fn links_lead_upwards_to_directories_and_out_to_the_web() {
        let text = "[a](../src) [b](https://example.org/x#y) [c](<b.md>) `[d](none)`\n```\n[e](none)\n```\n";
        let tree = Tree::of(&[("docs/a.md", text), ("docs/b.md", ""), ("src/lib.rs", "")]);
        assert_eq!(dead_links(&tree), ["docs/a.md:1: <b.md>"]);
    }

    #[test]
    fn a_second_heading_of_a_name_is_numbered() {
        assert_eq!(anchors("# A b\n```\n# no\n```\n## A b\n#hash\n"), ["a-b", "a-b-1"]);
    }

    #[test]
    fn a_target_that_make_does_not_have_is_found() {
        let tree =
            Tree::of(&[("Makefile", "test: build\n"), ("a.md", "`make test`, `make rest`\n    make\n")]);
        assert_eq!(unknown_make_targets(&tree), ["a.md: make rest"]);
    }

    #[test]
    fn a_change_log_needs_its_next_section() {
        assert_eq!(no_unreleased(&Tree::of(&[("CHANGELOG.md", "# Unreleased\n")])).len(), 1);
        assert_eq!(no_unreleased(&Tree::of(&[("CHANGELOG.md", "## [Unreleased]\n")])).len(), 0);
    }
}
