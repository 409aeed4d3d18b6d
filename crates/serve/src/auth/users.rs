//! User names and their hashes, from the configuration and from an htpasswd file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ring::hmac;

use super::hash::StoredHash;
use crate::config;
use crate::error::{Error, Op};

/// The users, at least one.
#[derive(Debug)]
pub(super) struct Users {
    by_name: BTreeMap<Arc<str>, StoredHash>,
}

impl Users {
    /// Loads the users of the table `key` and of the file that it names.
    pub(super) fn load(auth: &config::AuthConfig, key: &str) -> Result<Self, Error> {
        let mut users = Self { by_name: BTreeMap::new() };
        for (name, hash) in &auth.users {
            let refused = |reason| Error::configure(format!("{key}.users.{}", name.escape_debug()), reason);
            users.add(name, hash).map_err(refused)?;
        }
        if let Some(path) = &auth.file {
            users.load_file(path)?;
        }
        if users.by_name.is_empty() {
            return Err(Error::configure(key, "it has no users"));
        }
        Ok(users)
    }

    fn load_file(&mut self, path: &Path) -> Result<(), Error> {
        let read = std::fs::read(path);
        let unusable = |cause: Box<dyn std::error::Error + Send + Sync>| {
            Error::new(Op::LoadUsers, path.display().to_string(), cause)
        };
        let text = read.map_err(|error| unusable(error.into()))?;
        // Some editors put a byte-order mark before UTF-8.
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
        for (at, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let added = self.add_line(line);
            added.map_err(|reason| unusable(format!("line {}: {reason}", at + 1).into()))?;
        }
        Ok(())
    }

    fn add_line(&mut self, line: &[u8]) -> Result<(), String> {
        let line = std::str::from_utf8(line).map_err(|_| "it is not UTF-8")?.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let (name, hash) = line.split_once(':').ok_or("it is not 'name:hash'")?;
        self.add(name, hash)
    }

    fn add(&mut self, name: &str, hash: &str) -> Result<(), String> {
        if name.is_empty() || name.contains(':') || name.chars().any(char::is_control) {
            return Err("a name must not be empty, nor have a colon or control characters".to_owned());
        }
        match self.by_name.insert(name.into(), StoredHash::parse(hash)?) {
            Some(_) => Err("the name was there before".to_owned()),
            None => Ok(()),
        }
    }

    /// Returns the user and the hash, by the exact bytes of the name.
    pub(super) fn find(&self, name: &str) -> Option<(&Arc<str>, &StoredHash)> {
        self.by_name.get_key_value(name)
    }

    /// Returns the hash that is verified for an unknown name: always the same for the same name and
    /// key. If all unknown names had one hash, every user with other hash parameters would stand
    /// out in timing.
    pub(super) fn decoy_hash(&self, key: &[u8], name: &str) -> &StoredHash {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), name.as_bytes());
        let number = tag.as_ref().iter().take(8).fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
        let at = number % self.by_name.len() as u64;
        let mut hashes = self.by_name.values();
        hashes.nth(at as usize).expect("`load` refuses to have no users, and the place is below their number")
    }

    /// Returns all users in the format of a file.
    pub(super) fn text(&self) -> Vec<u8> {
        let lines = self.by_name.iter().map(|(name, hash)| format!("{name}:{}\n", hash.text()));
        lines.collect::<String>().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash::tests::{ARGON2ID, BCRYPT};
    use super::*;

    fn load(file: &str) -> Result<Users, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("users");
        std::fs::write(&path, file).unwrap();
        let users = BTreeMap::from([("root".to_owned(), BCRYPT.to_owned())]);
        let auth = config::AuthConfig { users, file: Some(path.clone()), ..config::AuthConfig::default() };
        let loaded = Users::load(&auth, "site.auth");
        loaded.map_err(|error| error.to_string().replace(path.to_str().unwrap(), "FILE"))
    }

    #[test]
    fn names_come_from_both() {
        let users = load(&format!("# who\r\n\r\nalice:{ARGON2ID}\r\njosé:{BCRYPT}")).unwrap();
        assert_eq!(users.by_name.keys().map(|name| &**name).collect::<Vec<_>>(), ["alice", "josé", "root"]);
        assert!(users.find("alice").unwrap().1.verify(b"secret"));
        assert!(users.find("Alice").is_none());
    }

    #[test]
    fn errors_name_the_line() {
        let line = "cannot use users file 'FILE': line 2: ";
        for (text, reason) in [
            ("bob", "it is not 'name:hash'"),
            ("bob:hunter2", "neither argon2 nor bcrypt; plain passwords and crypt(3) are refused"),
            (":x", "a name must not be empty"),
            (&format!("root:{BCRYPT}"), "the name was there before"),
        ] {
            let error = load(&format!("\n{text}\n")).unwrap_err();
            assert!(error.starts_with(&format!("{line}{reason}")), "{error}");
        }
    }

    #[test]
    fn no_users_and_no_file_are_errors() {
        let error = |auth: &config::AuthConfig| Users::load(auth, "site.auth").unwrap_err().to_string();
        assert_eq!(error(&config::AuthConfig::default()), "cannot use 'site.auth': it has no users");
        let auth =
            config::AuthConfig { file: Some("/nowhere/users".into()), ..config::AuthConfig::default() };
        assert!(error(&auth).starts_with("cannot use users file '/nowhere/users': No such file"));
    }
}
