//! Cold samples: the caches of the kernel are dropped, except for the program itself.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fixture::drop_caches;

/// Drops the page, dentry and inode caches of the whole machine, and reads `program`, which is run
/// in `directory`, and its shared libraries back in: what is measured is what it reads.
///
/// # Errors
/// If the user is not root.
pub(super) fn make_cold(program: &OsStr, directory: Option<&Path>) -> io::Result<()> {
    // The caches keep everything that is not on the disk yet.
    rustix::fs::sync();
    drop_caches()?;
    if let Some(program) = found(program, directory) {
        for file in libraries(&program).into_iter().chain([program]) {
            // A program that cannot be read can still be run.
            let _ = File::open(file).and_then(|mut file| io::copy(&mut file, &mut io::sink()));
        }
    }
    Ok(())
}

/// Returns the file of a program, as sh(1) finds it.
fn found(program: &OsStr, directory: Option<&Path>) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(directory.map_or_else(|| program.into(), |directory| directory.join(program)));
    }
    // `command -v` would not tell where programs are that the shell has built in.
    let search = "IFS=:; for d in $PATH; do test -x \"$d/$0\" && { echo \"$d/$0\"; break; }; done";
    let output = Command::new("sh").args(["-c", search]).arg(program).output().ok()?;
    let path = output.stdout.strip_suffix(b"\n").filter(|path| path.starts_with(b"/"))?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

/// Returns the shared libraries of a program as ldd(1) lists them; none for a script or without
/// ldd.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let listed = Command::new("ldd").arg(program).output().map(|output| output.stdout).unwrap_or_default();
    let paths = listed.split(|byte| byte.is_ascii_whitespace()).filter(|word| word.starts_with(b"/"));
    paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_with_its_libraries() {
        let shell = found(OsStr::new("sh"), None).expect("it is there");
        assert!(shell.ends_with("sh"));
        assert_eq!(found(OsStr::new("./x"), Some(Path::new("/d"))), Some("/d/./x".into()));
        assert_eq!(found(OsStr::new("no-such-program-here"), None), None);
        let needs = libraries(&shell);
        let is_static = needs.is_empty();
        assert!(
            is_static || needs.iter().any(|library| library.to_string_lossy().contains("libc")),
            "{needs:?}"
        );
    }
}
