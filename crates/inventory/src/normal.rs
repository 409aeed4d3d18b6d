//! Lexical comparison of paths: `a//b/.` is `a/b`, and `./a` is `a`. `..` is kept, as behind a
//! symbolic link it leads elsewhere.

/// Iterates over the names in `path`.
pub fn components(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".")
}

/// Returns whether the path begins at the root.
pub fn is_absolute(path: &[u8]) -> bool {
    path.first() == Some(&b'/')
}

/// Returns whether two paths are lexically the same. Different paths mostly differ in the last
/// name, so that is compared first.
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    is_absolute(one) == is_absolute(other) && components(one).rev().eq(components(other).rev())
}

/// Returns the shortest path that is lexically the same.
pub fn normal(path: &[u8]) -> Vec<u8> {
    let mut normal = if is_absolute(path) { b"/".to_vec() } else { Vec::new() };
    for name in components(path) {
        if !normal.is_empty() && normal != b"/" {
            normal.push(b'/');
        }
        normal.extend_from_slice(name);
    }
    if normal.is_empty() { b".".to_vec() } else { normal }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_mean_the_same_have_one_form() {
        let normal = |path: &str| String::from_utf8(normal(path.as_bytes())).unwrap();
        for (path, expected) in [
            ("a", "a"),
            ("./a/", "a"),
            ("a//b/./c/.", "a/b/c"),
            (".", "."),
            ("./.", "."),
            ("", "."),
            ("/", "/"),
            ("//", "/"),
            ("/./a//", "/a"),
            ("a/../b", "a/../b"),
            ("...", "..."),
        ] {
            assert_eq!(normal(path), expected, "{path}");
            assert!(is_same(path.as_bytes(), expected.as_bytes()), "{path}");
        }
        for (one, other) in [("/a", "a"), ("a/b", "b"), ("a", ".a"), ("a/../b", "b"), ("/", ".")] {
            assert!(!is_same(one.as_bytes(), other.as_bytes()), "{one} {other}");
        }
    }
}
