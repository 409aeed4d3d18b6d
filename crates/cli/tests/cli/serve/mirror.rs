//! wget: a recursive download of a tree with hostile names, through the links of the listings,
//! equals the tree.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::Command;

use crate::serve::server::{ServeDirectory, bytes, finish};
use crate::support::needs_tool;

/// Names that are special to a shell, a URL, HTML, a terminal or a browser. One is not UTF-8.
const NAMES: [&[u8]; 22] = [
    b"plain.txt",
    b"two  spaces.txt",
    b" before and after ",
    b"quote'single",
    b"quote\"double",
    b"new\nline",
    b"tab\tand\x1b[31mred",
    // Not `%41`: wget requests the right file, but decodes its own file names twice.
    b"percent%zz%",
    b"hash#fragment",
    b"question?sort=name",
    b"amp&amp;lt;",
    b"<script>alert(1)<",
    b"javascript:alert(1)",
    b"http:example.org",
    b"c:drive",
    b"semi;colon=1",
    b"plus+and~tilde",
    b"[brackets]{braces}|^`",
    b"back\\slash",
    b"not-utf8-\xff\xc3",
    "smile-\u{1f600}-\u{e9}e\u{301}\u{202e}".as_bytes(),
    b"-rf",
];

/// Returns the contents of all files below `dir`, by path.
fn contents(dir: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(next) = todo.pop() {
        for entry in next.read_dir().unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                todo.push(entry.path());
            } else {
                let path = entry.path().strip_prefix(dir).unwrap().as_os_str().to_owned();
                found.insert(path.into_vec(), fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

#[test]
fn a_mirror_of_hostile_names_is_the_tree() {
    if !needs_tool("wget") {
        return;
    }
    let home = ServeDirectory::new();
    for (number, name) in NAMES.iter().enumerate() {
        let directory = home.at("www").join(OsStr::from_bytes(&[b"dir ", *name].concat()));
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("within"), bytes(number * 1000)).unwrap();
        fs::write(home.at("www").join(OsStr::from_bytes(name)), bytes(number * 777)).unwrap();
    }
    let server = home.serve("--listing");
    let mut wget = Command::new("wget");
    wget.args([
        "--no-config",
        "--no-verbose",
        "--mirror",
        "--no-parent",
        "--no-host-directories",
        "--no-proxy",
        "-e",
        "robots=off",
    ]);
    // Keep names unchanged, and do not download listings in other orders as separate files.
    wget.args([
        "--restrict-file-names=nocontrol",
        "--no-iri",
        "--reject-regex=[?]sort=[a-z]*&",
        "--directory-prefix=copy",
    ]);
    let (status, _, err) =
        finish(wget.arg(format!("{}/", server.url)).env("LC_ALL", "C").current_dir(home.at("")));
    assert_eq!(status, Some(0), "{err}");
    let mut copy = contents(&home.at("copy"));
    // wget stores the listing of a directory under this name.
    copy.retain(|path, _| Path::new(OsStr::from_bytes(path)).file_name() != Some(OsStr::new("index.html")));
    let tree = contents(&home.at("www"));
    let names = |tree: &BTreeMap<Vec<u8>, Vec<u8>>| -> Vec<String> {
        tree.keys().map(|path| path.escape_ascii().to_string()).collect()
    };
    assert_eq!(names(&copy), names(&tree));
    assert!(copy == tree, "the contents differ");
    assert_eq!(copy.len(), NAMES.len() * 2);
}
