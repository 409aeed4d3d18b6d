//! An inventory in another format is refused, with the number of the format.

use std::fs;
use std::process::Command;

use crate::scan::run;
use crate::support::Tree;
use crate::support::program::Program;

#[test]
fn an_inventory_in_another_format_is_refused() {
    let tree = Tree::new();
    tree.dir("t");
    let fathom = |words: &[&str]| {
        let mut command = Command::new(Program::AsDu.bin().join("fathom"));
        run(command.args(words).current_dir(tree.path()).env("LC_ALL", "C"))
    };
    assert!(fathom(&["scan", "-o", "t.inv", "t"]).status.success());
    let file = tree.path().join("t.inv/manifest.json");
    let manifest = fs::read_to_string(&file).unwrap();
    for other in [1, 2, 99] {
        fs::write(&file, manifest.replace("\"format\": 3", &format!("\"format\": {other}"))).unwrap();
        let output = fathom(&["top", "t.inv"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(&format!("it has format {other}, this program reads 3")), "{stderr}");
    }
}
