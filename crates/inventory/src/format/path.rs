//! The parts of an entry's path. A starting point is printed as it was given, with all its slashes,
//! so its parts are found by parsing; below a starting point they are known.

use crate::entry::Entry;

/// Appends the last component. For a starting point, one of the slashes after it is kept.
pub(super) fn write_base_name(entry: &Entry<'_>, out: &mut Vec<u8>) {
    if entry.depth > 0 {
        return out.extend_from_slice(entry.name);
    }
    let bare = without_slashes(entry.name);
    let begin = bare.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let end = entry.name.len().min(bare.len() + 1);
    out.extend_from_slice(&entry.name[begin..end]);
}

/// Appends the path before the last component, without the slash between them.
pub(super) fn write_dir_name(entry: &Entry<'_>, out: &mut Vec<u8>) {
    if entry.depth > 0 {
        return out.extend_from_slice(entry.dir.strip_suffix(b"/").unwrap_or(entry.dir));
    }
    let bare = without_slashes(entry.name);
    let text = if bare.is_empty() { entry.name } else { bare };
    match text.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => out.extend_from_slice(&text[..slash]),
        None => out.push(b'.'),
    }
}

/// Appends the path without the starting point and the slash after it.
pub(super) fn write_below_root(entry: &Entry<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    entry.write_path(out);
    let end = out.len().min(start + entry.root_len);
    let slash = usize::from(out.get(end) == Some(&b'/'));
    out.drain(start..end + slash);
}

/// Appends the starting point.
pub(super) fn write_root(entry: &Entry<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    entry.write_path(out);
    out.truncate(start + entry.root_len);
}

fn without_slashes(path: &[u8]) -> &[u8] {
    let len = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    &path[..len]
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_walk::FileType;

    fn parts(dir: &str, name: &str, root_len: usize, depth: usize) -> [String; 4] {
        let (dir, name) = (dir.as_bytes(), name.as_bytes());
        let entry = Entry { dir, name, root_len, depth, file_type: FileType::Unknown, meta: None };
        [write_base_name, write_dir_name, write_below_root, write_root].map(|write| {
            let mut out = Vec::new();
            write(&entry, &mut out);
            String::from_utf8(out).unwrap()
        })
    }

    #[test]
    fn starting_points_keep_their_slashes() {
        let table = [
            ("a", "a", "."),
            ("a/", "a/", "."),
            ("a//", "a/", "."),
            ("./a", "a", "."),
            ("a/.", ".", "a"),
            ("/", "/", ""),
            ("//", "/", "/"),
            ("/a", "a", ""),
            ("/a/b/", "b/", "/a"),
            ("a//b", "b", "a/"),
            ("", "", "."),
        ];
        for (root, base, dir) in table {
            assert_eq!(parts("", root, root.len(), 0), [base, dir, "", root], "{root}");
        }
    }

    #[test]
    fn below_a_starting_point_parts_are_known() {
        assert_eq!(parts("a", "b", 1, 1), ["b", "a", "b", "a"]);
        assert_eq!(parts("a//", "b", 3, 1), ["b", "a/", "b", "a//"]);
        assert_eq!(parts("/", "b", 1, 1), ["b", "", "b", "/"]);
        assert_eq!(parts("./a/b", "c", 1, 3), ["c", "./a/b", "a/b/c", "."]);
    }
}
