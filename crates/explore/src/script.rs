//! The marked entries as text: a shell script that removes them, and the sequence that copies a
//! path to the clipboard of the terminal.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fathom_remove::Identity;
use fathom_text::quote::is_invisible;

/// The beginning of a script. An entry is removed only if it still is the inode that was marked.
const HEAD: &str = "#!/bin/sh
# Removes the entries that were marked in fathom explore, if they still are the same inodes.
LC_ALL=C
export LC_ALL
status=0
remove() {
  # A backslash begins an escape, and the command substitution drops newlines at the end.
  path=$(printf '%b.' \"$2\")
  path=${path%.}
  if [ \"$(stat -c %d:%i -- \"$path\" 2>/dev/null)\" = \"$1\" ]; then
    rm -rf -- \"$path\" || status=1
  else
    echo \"skipped: inode $1 is no longer at its path\" >&2
    status=1
  fi
}
";

/// Returns a script for sh(1) that removes these paths. Characters that are not printable are
/// escapes of printf(1), so that a terminal shows the script as it is.
///
/// ```
/// use fathom_explore::script::removal;
/// use fathom_remove::Identity;
///
/// let script = removal([(Identity { dev: 1, ino: 2 }, &b"it's"[..])].into_iter());
/// assert!(script.ends_with(b"\nremove 1:2 'it'\\''s'\nexit $status\n"));
/// ```
pub fn removal<'a>(paths: impl Iterator<Item = (Identity, &'a [u8])>) -> Vec<u8> {
    let mut out = HEAD.as_bytes().to_vec();
    for (Identity { dev, ino }, path) in paths {
        // `rm` and `stat` take a path that begins with a dash, because they are given `--`.
        out.extend_from_slice(format!("remove {dev}:{ino} ").as_bytes());
        out.extend_from_slice(&quoted(&escaped(path)));
        out.push(b'\n');
    }
    out.extend_from_slice(b"exit $status\n");
    out
}

/// Returns a word that the conversion `%b` of printf(1) reads as `path`.
fn escaped(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let octal = |out: &mut Vec<u8>, bytes: &[u8]| {
        bytes.iter().for_each(|byte| out.extend_from_slice(format!("\\0{byte:03o}").as_bytes()));
    };
    for chunk in path.utf8_chunks() {
        for letter in chunk.valid().chars() {
            let mut bytes = [0; 4];
            let bytes = letter.encode_utf8(&mut bytes);
            if letter == '\\' || letter.is_control() || is_invisible(letter) {
                octal(&mut out, bytes.as_bytes());
            } else {
                out.extend_from_slice(bytes.as_bytes());
            }
        }
        octal(&mut out, chunk.invalid());
    }
    out
}

/// Quotes a word for sh(1): between single quotes every byte is itself.
///
/// ```
/// assert_eq!(fathom_explore::script::quoted(b"it's $HOME"), br"'it'\''s $HOME'");
/// ```
#[must_use]
pub fn quoted(word: &[u8]) -> Vec<u8> {
    let mut out = vec![b'\''];
    for byte in word {
        match byte {
            b'\'' => out.extend_from_slice(br"'\''"),
            _ => out.push(*byte),
        }
    }
    out.push(b'\'');
    out
}

/// Returns the sequence that copies `text` to the clipboard (xterm's control sequences, OSC 52). It
/// contains no byte of the text as it is.
///
/// ```
/// assert_eq!(fathom_explore::script::clipboard(b"a/b\x1b"), b"\x1b]52;c;YS9iGw==\x07");
/// ```
#[must_use]
pub fn clipboard(text: &[u8]) -> Vec<u8> {
    [b"\x1b]52;c;", STANDARD.encode(text).as_bytes(), b"\x07"].concat()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn the_script_removes_exactly_the_inodes_that_were_marked() {
        let temp = tempfile::tempdir().unwrap();
        let names: [&[u8]; 7] = [
            b"it's",
            b"-rf",
            b"a\nb $(touch x)\n",
            b"\xff\"",
            b"\\033\x1b[2J",
            "\u{e9}\u{202e}".as_bytes(),
            b"changed",
        ];
        let path = |name: &[u8]| temp.path().join(std::ffi::OsStr::from_bytes(name));
        let mut marked = Vec::new();
        for name in names {
            std::fs::create_dir(path(name)).unwrap();
            std::fs::write(path(name).join("f"), "").unwrap();
            let info = std::fs::metadata(path(name)).unwrap();
            marked.push((Identity { dev: info.dev(), ino: info.ino() }, name));
        }
        marked[6].0.ino += 1;
        std::fs::write(path(b"other"), "").unwrap();
        let script = removal(marked.into_iter());
        assert!(!String::from_utf8(script.clone()).unwrap().contains(['\x1b', '\u{202e}']));
        std::fs::write(path(b"script"), script).unwrap();
        let output = Command::new("sh").arg("script").current_dir(temp.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let left = std::fs::read_dir(temp.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut left: Vec<_> = left.collect();
        left.sort();
        assert_eq!(left, ["changed", "other", "script"]);
    }
}
