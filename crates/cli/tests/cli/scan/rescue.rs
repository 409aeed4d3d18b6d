//! Where there is no /dev, as in a rescue system.

use std::fs;
use std::process::Command;

use crate::support::Tree;
use crate::support::commands::program;
use crate::support::skip;

/// Once, the writer of tables panicked without /dev/urandom.
#[test]
fn an_inventory_is_made_without_dev() {
    if !rustix::process::geteuid().is_root() {
        return skip("needs root for chroot(2)");
    }
    let tree = Tree::parse("t/a 1");
    fs::copy(program(), tree.at("fathom")).unwrap();
    let run = |words: &[&str]| {
        let output = Command::new("chroot").arg(tree.path()).arg("/fathom").args(words).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    if run(&["--version"]).0 != Some(0) {
        return skip("needs a program that is linked statically");
    }
    for words in [&["scan", "-o", "/t.inv", "/t"][..], &["merge", "-o", "/m.inv", "/t.inv"]] {
        let (status, message) = run(words);
        // The flag is in the configuration of cargo, which RUSTFLAGS replaces.
        #[allow(unexpected_cfgs, reason = "it is a flag of another crate")]
        let has_call = cfg!(getrandom_backend = "linux_getrandom");
        if has_call {
            assert_eq!((status, &*message), (Some(0), ""), "{words:?}");
        } else {
            assert!(message.contains("the system gives no random bytes"), "{words:?}: {message}");
            return;
        }
    }
}
