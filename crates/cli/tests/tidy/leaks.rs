//! Finds text that is true on one machine only: home directories and directories of build machines,
//! and the hosts from which package clients download (the configuration of each machine names
//! them).

use std::path::Path;

use crate::mask::line_of;
use crate::tree::Tree;

/// Directories that contain checkouts. Split so that this file does not contain them.
const HOME_DIRECTORIES: [&str; 4] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/"), concat!("/wo", "rk/")];
/// Home directories that documents may use in examples.
const EXAMPLE_USERS: [&str; 3] = ["me/", "you/", "user/"];
/// Hosts from which clients of package registries download.
const HOSTS: [&str; 8] = [
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("deb.", "debian.org"),
    concat!("security.", "debian.org"),
    concat!("snapshot.", "debian.org"),
    concat!("pypi.org/", "simple"),
    concat!("files.", "pythonhosted.org"),
    concat!("proxy.", "golang.org"),
];

/// Finds paths of one machine in text files. `top` is the directory of this checkout.
pub(crate) fn machine_paths(tree: &Tree, top: &Path) -> Vec<String> {
    let top = top.to_str().filter(|top| top.matches('/').count() > 1);
    let needles: Vec<&str> = HOME_DIRECTORIES.into_iter().chain(top).collect();
    let is_path_of_one = |before: &str, after: &str| {
        let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '~' | '}' | ')' | '*');
        !before.ends_with(goes_on) && !EXAMPLE_USERS.iter().any(|name| after.starts_with(name))
    };
    occurrences(tree, &needles, is_path_of_one)
}

/// Finds hosts of package registries in text files.
pub(crate) fn registry_hosts(tree: &Tree) -> Vec<String> {
    occurrences(tree, &HOSTS, |_, _| true)
}

/// Finds the needles. `counts` decides from the text before and after a needle whether it is a
/// breach.
fn occurrences(tree: &Tree, needles: &[&str], counts: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let mut problems = Vec::new();
    for (file, text) in tree.texts("") {
        for needle in needles {
            let found =
                text.match_indices(needle).filter(|&(at, _)| counts(&text[..at], &text[at + needle.len()..]));
            problems.extend(found.map(|(at, _)| format!("{file}:{}: {needle}", line_of(text, at))));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_directory_is_found_and_a_part_of_a_path_is_not() {
        let text = format!(
            "see {0}me/x\n{0}ann/x\n~{1}x and a{1}x\n\"{1}x\"",
            HOME_DIRECTORIES[0], HOME_DIRECTORIES[3]
        );
        let expected =
            [format!("a.md:2: {}", HOME_DIRECTORIES[0]), format!("a.md:4: {}", HOME_DIRECTORIES[3])];
        assert_eq!(machine_paths(&Tree::of(&[("a.md", &text)]), Path::new("/")), expected);
    }

    #[test]
    fn the_place_of_the_checkout_is_found() {
        let tree = Tree::of(&[("run/raw.csv", "1,/srv/build/7/target/x\n")]);
        assert_eq!(machine_paths(&tree, Path::new("/srv/build/7")), ["run/raw.csv:1: /srv/build/7"]);
    }

    #[test]
    fn a_registry_host_is_found() {
        let text = format!("curl https://{}/debian", HOSTS[2]);
        assert_eq!(
            registry_hosts(&Tree::of(&[("tools/a.sh", &text)])),
            [format!("tools/a.sh:1: {}", HOSTS[2])]
        );
    }
}
