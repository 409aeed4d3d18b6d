//! The columns that take a system call of their own for each entry, and are there if they were asked
//! for. Owns their names, their values, and the text that names of extended attributes have.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::str::FromStr;

use fathom_walk::Errno;
use serde::{Deserialize, Serialize};

/// A set of such columns. Its text is their names, separated by commas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Also {
    /// `project`: the number by which a filesystem counts quotas.
    pub project: bool,
    /// `xattrs`: the names of extended attributes.
    pub xattrs: bool,
    /// `acl`: whether there is an access control list.
    pub acl: bool,
}

impl Also {
    /// The names of all.
    pub const NAMES: [&str; 3] = ["project", "xattrs", "acl"];

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the columns of either set.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self {
            project: self.project || other.project,
            xattrs: self.xattrs || other.xattrs,
            acl: self.acl || other.acl,
        }
    }

    /// Whether it has all of `other`.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.union(other) == self
    }

    /// Whether it has the column of this name.
    #[must_use]
    pub fn has(self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// Whether names of extended attributes have to be listed.
    pub(crate) fn lists_xattrs(self) -> bool {
        self.xattrs || self.acl
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        let wanted = [self.project, self.xattrs, self.acl];
        Self::NAMES.into_iter().zip(wanted).filter(|(_, is_wanted)| *is_wanted).map(|(name, _)| name)
    }
}

impl fmt::Display for Also {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().collect::<Vec<_>>().join(","))
    }
}

/// A name that no such column has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownColumn(pub String);

impl fmt::Display for UnknownColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no column {:?} to ask for", self.0)
    }
}

impl FromStr for Also {
    type Err = UnknownColumn;

    fn from_str(text: &str) -> Result<Self, UnknownColumn> {
        let mut all = Self::default();
        for name in text.split(',').filter(|_| !text.is_empty()) {
            match name {
                "project" => all.project = true,
                "xattrs" => all.xattrs = true,
                "acl" => all.acl = true,
                _ => return Err(UnknownColumn(name.to_owned())),
            }
        }
        Ok(all)
    }
}

impl From<Also> for String {
    fn from(also: Also) -> Self {
        also.to_string()
    }
}

impl TryFrom<String> for Also {
    type Error = UnknownColumn;

    fn try_from(text: String) -> Result<Self, UnknownColumn> {
        text.parse()
    }
}

/// The values of these columns of one inode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extra<'a> {
    pub(crate) project: Option<u32>,
    /// As [`names_text`] has them.
    pub(crate) xattrs: Option<Cow<'a, str>>,
    pub(crate) acl: Option<bool>,
    pub(crate) failed: Failed,
}

/// Why values are missing; 0 where they are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failed {
    pub(crate) project: u16,
    pub(crate) xattrs: u16,
}

impl Failed {
    /// Each failed call: the operation in the table of errors, the deed in a message, the errno.
    pub(crate) fn each(self) -> impl Iterator<Item = (&'static str, &'static str, Errno)> {
        let all = [
            ("project", "read the project of", self.project),
            ("xattrs", "list the extended attributes of", self.xattrs),
        ];
        let failed = all.into_iter().filter(|(.., errno)| *errno != 0);
        failed.map(|(op, deed, errno)| (op, deed, Errno::from_raw_os_error(errno.into())))
    }
}

impl Extra<'_> {
    pub(crate) fn into_owned(self) -> Extra<'static> {
        let xattrs = self.xattrs.map(|text| Cow::Owned(text.into_owned()));
        Extra { project: self.project, xattrs, acl: self.acl, failed: self.failed }
    }
}

impl Extra<'static> {
    /// Asks for what is in `also`.
    pub(crate) fn ask(
        also: Also,
        xattrs: impl FnOnce() -> Result<Option<Vec<u8>>, Errno>,
        project: impl FnOnce() -> Result<Option<u32>, Errno>,
    ) -> Self {
        let mut extra = Self::default();
        if also.lists_xattrs() {
            match xattrs() {
                Ok(names) => {
                    extra.acl = names.as_deref().filter(|_| also.acl).map(has_acl);
                    let text = names.as_deref().filter(|_| also.xattrs).map(names_text);
                    extra.xattrs = text.map(Cow::Owned);
                }
                Err(errno) => extra.failed.xattrs = errno.raw_os_error() as u16,
            }
        }
        if also.project {
            match project() {
                Ok(project) => extra.project = project,
                Err(errno) => extra.failed.project = errno.raw_os_error() as u16,
            }
        }
        extra
    }
}

/// Attributes in which filesystems keep access control lists: of POSIX, of NFS version 4 as its
/// client and CIFS have them, and of the patches of that name.
const ACLS: [&[u8]; 5] = [
    b"system.posix_acl_access",
    b"system.posix_acl_default",
    b"system.nfs4_acl",
    b"system.cifs_acl",
    b"system.richacl",
];

fn has_acl(names: &[u8]) -> bool {
    names.split(|byte| *byte == 0).any(|name| ACLS.contains(&name))
}

/// Names, each with a NUL behind it, as a text: in the order of their bytes, with a space between two.
/// A space, a backslash, a control character and a byte that is not UTF-8 are `\xNN`.
fn names_text(names: &[u8]) -> String {
    let mut names: Vec<&[u8]> = names.split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    let mut text = String::new();
    for name in names {
        if !text.is_empty() {
            text.push(' ');
        }
        for chunk in name.utf8_chunks() {
            chunk.valid().chars().for_each(|c| push_char(c, &mut text));
            chunk.invalid().iter().for_each(|byte| push_byte(*byte, &mut text));
        }
    }
    text
}

fn push_char(c: char, text: &mut String) {
    if c == ' ' || c == '\\' || c.is_control() {
        c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| push_byte(byte, text));
    } else {
        text.push(c);
    }
}

fn push_byte(byte: u8, text: &mut String) {
    // A String takes whatever is written to it.
    let _ = write!(text, "\\x{byte:02x}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_a_text() {
        let also = |text: &str| text.parse::<Also>();
        for text in ["", "project", "xattrs,acl", "project,xattrs,acl"] {
            assert_eq!(also(text).unwrap().to_string(), text);
        }
        assert_eq!(also("acl,xattrs,acl").unwrap().to_string(), "xattrs,acl");
        for wrong in ["ACL", "acl,", ",", "acl, xattrs"] {
            assert!(also(wrong).is_err(), "{wrong}");
        }
        let [one, two] = ["acl", "acl,project"].map(|text| also(text).unwrap());
        assert!(two.contains(one) && !one.contains(two) && two.has("project") && !one.has("project"));
    }

    #[test]
    fn every_list_of_names_has_a_text_of_its_own() {
        assert_eq!(names_text(b""), "");
        assert_eq!(names_text(b"user.b\0security.selinux\0"), "security.selinux user.b");
        assert_eq!(names_text(b"user.a b\0user.\\x20\0"), r"user.\x5cx20 user.a\x20b");
        assert_eq!(names_text("user.\u{9b}\u{e9}\n\0".as_bytes()), "user.\\xc2\\x9b\u{e9}\\x0a");
        assert_eq!(names_text(b"user.\xff\0"), r"user.\xff");
    }

    #[test]
    fn only_what_is_asked_for_is_looked_up_and_a_failure_is_kept() {
        let also = |text: &str| text.parse::<Also>().unwrap();
        let never = || -> Result<Option<u32>, Errno> { unreachable!("not asked for") };
        let list = |names: &'static [u8]| move || Ok(Some(names.to_vec()));
        let acl = Extra::ask(also("acl"), list(b"user.a\0system.posix_acl_default\0"), never);
        assert_eq!((acl.acl, acl.xattrs), (Some(true), None));
        let none = Extra::ask(also("xattrs,acl"), list(b""), never);
        assert_eq!((none.acl, none.xattrs.as_deref()), (Some(false), Some("")));
        let unsupported = Extra::ask(also("xattrs,acl"), || Ok(None), never);
        assert_eq!(unsupported, Extra::default());
        let failed = Extra::ask(also("xattrs,project"), || Err(Errno::IO), || Err(Errno::NOENT));
        let ops: Vec<_> = failed.failed.each().map(|(op, _, errno)| (op, errno)).collect();
        assert_eq!(ops, [("project", Errno::NOENT), ("xattrs", Errno::IO)]);
        let project = Extra::ask(also("project"), || unreachable!("not asked for"), || Ok(Some(7)));
        assert_eq!((project.project, project.failed), (Some(7), Failed::default()));
    }
}
