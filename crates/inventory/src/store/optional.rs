//! The optional columns: each takes a system call of its own for every entry, or files of rules.
//! Owns their names and values, and the text form of a list of extended attributes.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::str::FromStr;

use fathom_walk::Errno;
use serde::{Deserialize, Serialize};

/// A set of optional columns. Its text form is their names, separated by commas.
///
/// ```
/// use fathom_inventory::store::OptionalColumns;
///
/// let columns: OptionalColumns = "acl,project".parse().unwrap();
/// assert_eq!(columns.to_string(), "project,acl");
/// assert!("colour".parse::<OptionalColumns>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct OptionalColumns {
    /// `project`: the project ID, by which a filesystem counts quotas.
    pub project: bool,
    /// `xattrs`: the names of extended attributes.
    pub xattrs: bool,
    /// `acl`: whether the inode has an access control list.
    pub acl: bool,
    /// `ignored`: whether files like `.gitignore` exclude the entry, or a directory above it.
    pub ignored: bool,
}

impl OptionalColumns {
    /// The names of all optional columns.
    pub const NAMES: [&str; 4] = ["project", "xattrs", "acl", "ignored"];

    /// Returns whether the set is empty.
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
            ignored: self.ignored || other.ignored,
        }
    }

    /// Returns whether the set has all columns of `other`.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.union(other) == self
    }

    /// Returns whether the set has the column `name`.
    #[must_use]
    pub fn has_column(self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// Returns whether the names of extended attributes have to be listed.
    pub(crate) fn lists_xattrs(self) -> bool {
        self.xattrs || self.acl
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        let wanted = [self.project, self.xattrs, self.acl, self.ignored];
        Self::NAMES.into_iter().zip(wanted).filter(|(_, is_wanted)| *is_wanted).map(|(name, _)| name)
    }
}

impl fmt::Display for OptionalColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().collect::<Vec<_>>().join(","))
    }
}

/// A name that no optional column has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownColumn(pub String);

impl fmt::Display for UnknownColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown column {:?}", self.0)
    }
}

impl FromStr for OptionalColumns {
    type Err = UnknownColumn;

    fn from_str(text: &str) -> Result<Self, UnknownColumn> {
        let mut all = Self::default();
        for name in text.split(',').filter(|_| !text.is_empty()) {
            match name {
                "project" => all.project = true,
                "xattrs" => all.xattrs = true,
                "acl" => all.acl = true,
                "ignored" => all.ignored = true,
                _ => return Err(UnknownColumn(name.to_owned())),
            }
        }
        Ok(all)
    }
}

impl From<OptionalColumns> for String {
    fn from(columns: OptionalColumns) -> Self {
        columns.to_string()
    }
}

impl TryFrom<String> for OptionalColumns {
    type Error = UnknownColumn;

    fn try_from(text: String) -> Result<Self, UnknownColumn> {
        text.parse()
    }
}

/// The values of the optional columns of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionalValues<'a> {
    /// The project, by which quotas are counted.
    pub project: Option<u32>,
    /// The names of extended attributes: sorted by their bytes and separated by spaces. A space, a
    /// backslash, a control character and a byte that is not UTF-8 are written as `\xNN`.
    pub xattrs: Option<Cow<'a, str>>,
    /// Whether the entry has an access control list.
    pub acl: Option<bool>,
    /// Whether a file like `.gitignore` excludes the entry.
    #[serde(default)]
    pub ignored: Option<bool>,
    /// Why values are missing.
    pub failed: OptionalErrors,
}

/// The errors because of which values are missing, as errno; 0 without an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionalErrors {
    /// Why there is no project.
    pub project: u16,
    /// Why there are no extended attributes.
    pub xattrs: u16,
}

impl OptionalErrors {
    /// Iterates over the failed calls: the operation in the table `errors`, the operation in a
    /// message, and the error.
    pub fn each(self) -> impl Iterator<Item = (&'static str, &'static str, Errno)> {
        let all = [
            ("project", "read the project of", self.project),
            ("xattrs", "list the extended attributes of", self.xattrs),
        ];
        let failed = all.into_iter().filter(|(.., errno)| *errno != 0);
        failed.map(|(op, operation, errno)| (op, operation, Errno::from_raw_os_error(errno.into())))
    }
}

impl OptionalValues<'_> {
    /// Returns the same values with a text of their own.
    pub fn into_owned(self) -> OptionalValues<'static> {
        let Self { project, xattrs, acl, ignored, failed } = self;
        let xattrs = xattrs.map(|text| Cow::Owned(text.into_owned()));
        OptionalValues { project, xattrs, acl, ignored, failed }
    }

    /// Returns the values with another one of `ignored`.
    pub fn ignored(self, ignored: Option<bool>) -> Self {
        Self { ignored, ..self }
    }
}

impl OptionalValues<'static> {
    /// Reads the values of those columns in `columns` that the inode has.
    pub fn read(
        columns: OptionalColumns,
        xattrs: impl FnOnce() -> Result<Option<Vec<u8>>, Errno>,
        project: impl FnOnce() -> Result<Option<u32>, Errno>,
    ) -> Self {
        let mut values = Self::default();
        if columns.lists_xattrs() {
            match xattrs() {
                Ok(names) => {
                    values.acl = names.as_deref().filter(|_| columns.acl).map(has_acl);
                    let text = names.as_deref().filter(|_| columns.xattrs).map(names_text);
                    values.xattrs = text.map(Cow::Owned);
                }
                Err(errno) => values.failed.xattrs = errno.raw_os_error() as u16,
            }
        }
        if columns.project {
            match project() {
                Ok(project) => values.project = project,
                Err(errno) => values.failed.project = errno.raw_os_error() as u16,
            }
        }
        values
    }
}

/// The attributes in which filesystems keep access control lists: POSIX ACLs, NFSv4 ACLs of the NFS
/// client and of CIFS, and the names of the richacl patches.
const ACL_NAMES: [&[u8]; 5] = [
    b"system.posix_acl_access",
    b"system.posix_acl_default",
    b"system.nfs4_acl",
    b"system.cifs_acl",
    b"system.richacl",
];

fn has_acl(names: &[u8]) -> bool {
    names.split(|byte| *byte == 0).any(|name| ACL_NAMES.contains(&name))
}

/// Converts a list of NUL-terminated names to text: sorted by their bytes and separated by spaces.
/// A space, a backslash, a control character and a byte that is not UTF-8 are written as `\xNN`.
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
    // Writing to a String cannot fail.
    let _ = write!(text, "\\x{byte:02x}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_a_text() {
        let columns = |text: &str| text.parse::<OptionalColumns>();
        for text in ["", "project", "xattrs,acl", "project,xattrs,acl", "acl,ignored"] {
            assert_eq!(columns(text).unwrap().to_string(), text);
        }
        assert_eq!(columns("acl,xattrs,acl").unwrap().to_string(), "xattrs,acl");
        for wrong in ["ACL", "acl,", ",", "acl, xattrs"] {
            assert!(columns(wrong).is_err(), "{wrong}");
        }
        let [one, two] = ["acl", "acl,project"].map(|text| columns(text).unwrap());
        assert!(
            two.contains(one)
                && !one.contains(two)
                && two.has_column("project")
                && !one.has_column("project")
        );
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
    fn only_requested_columns_are_read_and_errors_are_kept() {
        let columns = |text: &str| text.parse::<OptionalColumns>().unwrap();
        let never = || -> Result<Option<u32>, Errno> { unreachable!("not asked for") };
        let list = |names: &'static [u8]| move || Ok(Some(names.to_vec()));
        let acl = OptionalValues::read(columns("acl"), list(b"user.a\0system.posix_acl_default\0"), never);
        assert_eq!((acl.acl, acl.xattrs), (Some(true), None));
        let none = OptionalValues::read(columns("xattrs,acl"), list(b""), never);
        assert_eq!((none.acl, none.xattrs.as_deref()), (Some(false), Some("")));
        let unsupported = OptionalValues::read(columns("xattrs,acl"), || Ok(None), never);
        assert_eq!(unsupported, OptionalValues::default());
        let failed = OptionalValues::read(columns("xattrs,project"), || Err(Errno::IO), || Err(Errno::NOENT));
        let ops: Vec<_> = failed.failed.each().map(|(op, _, errno)| (op, errno)).collect();
        assert_eq!(ops, [("project", Errno::NOENT), ("xattrs", Errno::IO)]);
        let project =
            OptionalValues::read(columns("project"), || unreachable!("not asked for"), || Ok(Some(7)));
        assert_eq!((project.project, project.failed), (Some(7), OptionalErrors::default()));
    }
}
