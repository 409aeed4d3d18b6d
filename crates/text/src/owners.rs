//! User and group names from the contents of passwd(5) and group(5).

use std::collections::HashMap;

/// Returns the names in the text of a passwd(5) or group(5) file by their ids. The lines of both
/// files start with name, password and id; other lines are skipped.
///
/// ```
/// let names = fathom_text::owners::names(b"root:x:0:0::/root:/bin/sh\n# comment\n");
/// assert_eq!(names[&0], b"root");
/// assert_eq!(names.len(), 1);
/// ```
#[must_use]
pub fn names(text: &[u8]) -> HashMap<u32, Vec<u8>> {
    let mut names = HashMap::new();
    for line in text.split(|byte| *byte == b'\n') {
        let mut fields = line.split(|byte| *byte == b':');
        let (name, number) = (fields.next().unwrap_or_default(), fields.nth(1).unwrap_or_default());
        let number = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
        if let Some(number) = number.filter(|_| !name.is_empty()) {
            // The first name of an id wins, as in getpwuid(3).
            names.entry(number).or_insert_with(|| name.to_vec());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_of_a_number_is_its_name() {
        let text =
            b"root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/:/bin/sh\n\n#a\nbad:x\nb:x:-1:1\n:x:3:3\n\xff:*:7:";
        let expected = [(0, b"root".to_vec()), (7, b"\xff".to_vec())];
        assert_eq!(names(text), HashMap::from(expected));
    }
}
