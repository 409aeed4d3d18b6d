//! Names of users and groups, from the files of this machine and then from a name service.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Debug;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use fathom_text::number::write_decimal;
use fathom_text::owners::names;

/// The kind of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OwnerKind {
    /// A user.
    User,
    /// A group.
    Group,
}

/// Looks up owners that the files of this machine do not have, such as users of a directory server.
pub trait NameService: Debug + Send + Sync {
    /// Returns the names that the service has for these IDs.
    fn names(&self, kind: OwnerKind, ids: &[u32]) -> HashMap<u32, Vec<u8>>;
}

/// The names of owners by ID; empty by default.
///
/// ```
/// use fathom_inventory::{OwnerKind, Owners};
///
/// let owners = Owners::read();
/// let mut out = Vec::new();
/// // An ID without a name is written as a number.
/// owners.write(OwnerKind::User, u32::MAX - 7, &mut out);
/// assert_eq!(out, (u32::MAX - 7).to_string().as_bytes());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Owners {
    users: HashMap<u32, Vec<u8>>,
    groups: HashMap<u32, Vec<u8>>,
    service: Option<Arc<CachedService>>,
}

/// The answers of the service so far; `None` for an ID without a name.
type NameCache = HashMap<(OwnerKind, u32), Option<Vec<u8>>>;

/// Owners that the files do not have. Each is looked up once.
#[derive(Debug)]
struct CachedService {
    service: Arc<dyn NameService>,
    found: Mutex<NameCache>,
}

impl CachedService {
    fn name(&self, kind: OwnerKind, id: u32) -> Option<Vec<u8>> {
        // Hold the lock during the lookup: if two workers need one name, only one asks the service.
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.entry((kind, id)).or_insert_with(|| self.service.names(kind, &[id]).remove(&id)).clone()
    }

    fn prefetch(&self, kind: OwnerKind, ids: &[u32]) {
        let mut names = self.service.names(kind, ids);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        ids.iter().for_each(|id| drop(found.insert((kind, *id), names.remove(id))));
    }
}

impl Owners {
    /// Reads `/etc/passwd` and `/etc/group`. A file that cannot be read has no names.
    #[must_use]
    pub fn read() -> Owners {
        let names = |file| names(&fs::read(file).unwrap_or_default());
        Owners { users: names("/etc/passwd"), groups: names("/etc/group"), service: None }
    }

    /// Creates the names that a table has: ID and name of each.
    pub fn new(users: HashMap<u32, Vec<u8>>, groups: HashMap<u32, Vec<u8>>) -> Owners {
        Owners { users, groups, service: None }
    }

    /// Adds the names of `other`. Names that are known already are kept.
    pub fn extend(&mut self, mut other: Owners) {
        other.users.extend(std::mem::take(&mut self.users));
        other.groups.extend(std::mem::take(&mut self.groups));
        (self.users, self.groups) = (other.users, other.groups);
    }

    /// Uses `service` for owners that the files do not have.
    #[must_use]
    pub fn with_service(self, service: Arc<dyn NameService>) -> Owners {
        Owners { service: Some(Arc::new(CachedService { service, found: Mutex::default() })), ..self }
    }

    /// Looks up many names in one call of the service.
    pub fn prefetch(&self, kind: OwnerKind, ids: impl Iterator<Item = u32>) {
        let ids: Vec<u32> = ids.filter(|id| !self.known(kind).contains_key(id)).collect();
        if let (Some(service), false) = (&self.service, ids.is_empty()) {
            service.prefetch(kind, &ids);
        }
    }

    fn known(&self, kind: OwnerKind) -> &HashMap<u32, Vec<u8>> {
        match kind {
            OwnerKind::User => &self.users,
            OwnerKind::Group => &self.groups,
        }
    }

    /// Returns the name of an owner.
    #[must_use]
    pub fn name(&self, kind: OwnerKind, id: u32) -> Option<Cow<'_, [u8]>> {
        let known = self.known(kind).get(&id).map(|name| Cow::Borrowed(name.as_slice()));
        known.or_else(|| self.service.as_ref()?.name(kind, id).map(Cow::Owned))
    }

    /// Appends the name of an owner, or its ID if it has no name.
    pub fn write(&self, kind: OwnerKind, id: u32, out: &mut Vec<u8>) {
        match self.name(kind, id) {
            Some(name) => out.extend_from_slice(&name),
            None => write_decimal(id, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A service with a name for every even ID, which records the lookups.
    #[derive(Debug, Default)]
    struct Even(Mutex<Vec<u32>>);

    impl NameService for Even {
        fn names(&self, kind: OwnerKind, ids: &[u32]) -> HashMap<u32, Vec<u8>> {
            self.0.lock().unwrap().extend_from_slice(ids);
            let even = ids.iter().filter(|id| id.is_multiple_of(2));
            even.map(|id| (*id, format!("{kind:?}{id}").into_bytes())).collect()
        }
    }

    fn owners() -> Owners {
        let users = HashMap::from([(0, b"root".to_vec())]);
        Owners { users, ..Owners::default() }
    }

    #[test]
    fn a_number_without_a_name_stands_for_itself() {
        let mut out = Vec::new();
        owners().write(OwnerKind::User, 0, &mut out);
        owners().write(OwnerKind::User, u32::MAX, &mut out);
        owners().write(OwnerKind::Group, 0, &mut out);
        assert_eq!(out, b"root42949672950");
    }

    #[test]
    fn a_service_is_asked_once_for_what_the_files_do_not_have() {
        let service = Arc::new(Even::default());
        let owners = owners().with_service(service.clone());
        owners.prefetch(OwnerKind::User, [0, 3, 4].into_iter());
        let mut out = Vec::new();
        for id in [0, 3, 4, 6, 6, 0] {
            owners.write(OwnerKind::User, id, &mut out);
            out.push(b' ');
        }
        owners.write(OwnerKind::Group, 0, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "root 3 User4 User6 User6 root Group0");
        assert_eq!(*service.0.lock().unwrap(), [3, 4, 6, 0]);
    }
}
