//! Names of users and groups, as far as this machine's own files have them.

use std::collections::HashMap;
use std::fs;

use fathom_text::number::decimal;
use fathom_text::owners::names;

/// Names by number; empty by default.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    users: HashMap<u32, Vec<u8>>,
    groups: HashMap<u32, Vec<u8>>,
}

impl Owners {
    /// Reads `/etc/passwd` and `/etc/group`, which costs nothing further for any number of entries. A file that cannot
    /// be read has no names.
    #[must_use]
    pub fn read() -> Owners {
        let names = |file| names(&fs::read(file).unwrap_or_default());
        Owners { users: names("/etc/passwd"), groups: names("/etc/group") }
    }

    /// The name of a user.
    #[must_use]
    pub fn user(&self, uid: u32) -> Option<&[u8]> {
        self.users.get(&uid).map(Vec::as_slice)
    }

    /// The name of a group.
    #[must_use]
    pub fn group(&self, gid: u32) -> Option<&[u8]> {
        self.groups.get(&gid).map(Vec::as_slice)
    }

    /// Appends the name of a user, or the number if there is none.
    pub fn write_user(&self, uid: u32, out: &mut Vec<u8>) {
        write(&self.users, uid, out);
    }

    /// Appends the name of a group, or the number if there is none.
    pub fn write_group(&self, gid: u32, out: &mut Vec<u8>) {
        write(&self.groups, gid, out);
    }
}

fn write(names: &HashMap<u32, Vec<u8>>, id: u32, out: &mut Vec<u8>) {
    match names.get(&id) {
        Some(name) => out.extend_from_slice(name),
        None => {
            let (digits, start) = decimal(id.into());
            out.extend_from_slice(&digits[start..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_name_stands_for_itself() {
        let owners = Owners { users: HashMap::from([(0, b"root".to_vec())]), groups: HashMap::new() };
        let mut out = Vec::new();
        owners.write_user(0, &mut out);
        owners.write_user(u32::MAX, &mut out);
        owners.write_group(0, &mut out);
        assert_eq!(out, b"root42949672950");
    }
}
