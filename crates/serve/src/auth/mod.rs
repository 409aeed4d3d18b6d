//! Basic authentication (RFC 7617): who may enter.
//!
//! ```text
//! Authorization ─> begin ─┬─> Missing, Refused ─> 401 with the challenge
//!                         ├─> Known(user): verified a moment ago
//!                         └─> Verify(job): slow on purpose ─> run on a thread that may be away ─> user or nobody
//! ```
//! A name that nobody has costs what the hash of some user costs, always the same one's for the same name, so that time does not
//! tell which names exist. `basic` reads the header, `hash` checks a password, `users` reads the file, `recent` remembers.
//! Does not own: threads, responses, what is protected.

mod basic;
mod hash;
mod paths;
mod recent;
mod users;

use std::sync::Arc;
use std::time::Instant;

use http::HeaderValue;
use ring::digest;

use self::basic::Credentials;
use self::hash::Hash;
pub(crate) use self::paths::Paths;
pub use self::paths::Who;
use self::recent::{Key, Recent};
use self::users::Users;
use crate::config;
use crate::error::Error;

/// What a request's `Authorization` comes to.
#[derive(Debug)]
pub enum Verdict {
    /// There is none, or it is of another scheme: 401.
    Missing,
    /// It is malformed: 401.
    Refused,
    /// Verified a moment ago.
    Known(Arc<str>),
    /// To be verified, where waiting does no harm.
    Verify(Job),
}

/// The users of a site. Loaded again, it has forgotten whom it verified.
#[derive(Debug)]
pub struct Checker {
    state: Arc<State>,
    challenge: HeaderValue,
    paths: Arc<Paths>,
}

#[derive(Debug)]
struct State {
    users: Users,
    /// Secret, and the same as long as the users are: which hash a name that nobody has is checked against.
    stand_in: Vec<u8>,
    recent: Recent,
}

impl Checker {
    /// Reads the users of `auth`, which is that of the site with the key `key`, and of its file.
    /// Errors name the line or the user, and never a hash.
    pub fn load(auth: &config::Auth, key: &str) -> Result<Self, Error> {
        let users = Users::load(auth)?;
        let stand_in = digest::digest(&digest::SHA256, &users.text()).as_ref().to_vec();
        let paths = Paths::new(&auth.paths, key, |name| users.find(name).is_some())?;
        let state = State { users, stand_in, recent: Recent::new()? };
        let challenge = challenge(auth.realm.as_deref().unwrap_or("restricted"))?;
        Ok(Self { state: Arc::new(state), challenge, paths: Arc::new(paths) })
    }

    /// Returns the same users with the same rules, for the mount at `at`, which has no slash at its
    /// end.
    #[must_use]
    pub fn mounted(&self, at: &str) -> Self {
        let (state, challenge) = (Arc::clone(&self.state), self.challenge.clone());
        Self { state, challenge, paths: Arc::new(self.paths.mounted(at)) }
    }

    /// Whether a user that `other` has verified is a user here: both are of one configuration, and
    /// not only have users of one name.
    #[must_use]
    pub fn shares_users(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// Returns the access rules by path.
    pub(crate) fn paths(&self) -> Arc<Paths> {
        Arc::clone(&self.paths)
    }

    /// Returns the clients with access to the decoded `path` below the root.
    #[must_use]
    pub fn who(&self, path: &[u8]) -> &Who {
        self.paths.who(path)
    }

    /// The value of `WWW-Authenticate` of a 401.
    #[must_use]
    pub fn challenge(&self) -> &HeaderValue {
        &self.challenge
    }

    /// What the value of `Authorization` comes to, without waiting for anything.
    #[must_use]
    pub fn begin(&self, authorization: Option<&[u8]>) -> Verdict {
        let Some(token) = authorization.and_then(basic::token) else { return Verdict::Missing };
        let Some(credentials) = Credentials::parse(token) else { return Verdict::Refused };
        let job = Job { state: self.state.clone(), credentials };
        match job.recent(Instant::now()) {
            Some(user) => Verdict::Known(user),
            None => Verdict::Verify(job),
        }
    }
}

/// A password to be verified.
pub struct Job {
    state: Arc<State>,
    credentials: Credentials,
}

/// Without the password.
impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("user", &self.credentials.user).finish_non_exhaustive()
    }
}

impl Job {
    /// Takes as long as the hash's author wanted, a second perhaps, and its memory. The user, if it is one.
    #[must_use]
    pub fn run(self) -> Option<Arc<str>> {
        // A browser sends several requests at once: the first of them may have been verified while this one waited for its thread.
        if let Some(user) = self.recent(Instant::now()) {
            return Some(user);
        }
        let (user, hash) = self.candidate();
        // Verified in any case: whether the name is one must not show in the time.
        let fits = hash.verify(&self.credentials.password);
        let user = user.filter(|_| fits)?;
        self.state.recent.insert(self.key(hash), Instant::now());
        Some(user)
    }

    fn recent(&self, now: Instant) -> Option<Arc<str>> {
        let (user, hash) = self.candidate();
        let is_recent = self.state.recent.contains(&self.key(hash), now);
        user.filter(|_| is_recent)
    }

    fn key(&self, hash: &Hash) -> Key {
        self.state.recent.key(&self.credentials.user, &self.credentials.password, hash.text())
    }

    /// The user of the name that was given, or nobody, and the hash that is to be computed.
    fn candidate(&self) -> (Option<Arc<str>>, &Hash) {
        let State { users, stand_in, .. } = &*self.state;
        let other = users.stand_in(stand_in, &self.credentials.user);
        match users.find(&self.credentials.user) {
            Some((user, hash)) => (Some(user.clone()), hash),
            None => (None, other),
        }
    }
}

/// A quoted-string (RFC 9110 section 5.6.4); users' names and passwords are UTF-8 (RFC 7617 section 2.1).
fn challenge(realm: &str) -> Result<HeaderValue, Error> {
    if realm.chars().any(char::is_control) {
        return Err(Error::configure("auth.realm", "it has control characters"));
    }
    let realm = realm.replace('\\', "\\\\").replace('"', "\\\"");
    let value = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
    HeaderValue::from_bytes(value.as_bytes()).map_err(|error| Error::configure("auth.realm", error))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::hash::tests::{ARGON2ID, BCRYPT};
    use super::*;

    fn checker() -> Checker {
        let users = [("alice", ARGON2ID), ("bob", BCRYPT)];
        let users = users.into_iter().map(|(name, hash)| (name.to_owned(), hash.to_owned())).collect();
        Checker::load(&config::Auth { users, ..config::Auth::default() }, "site").unwrap()
    }

    fn header(user: &str, password: &str) -> Vec<u8> {
        format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))).into_bytes()
    }

    fn run(checker: &Checker, user: &str, password: &str) -> Option<Arc<str>> {
        match checker.begin(Some(&header(user, password))) {
            Verdict::Verify(job) => job.run(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_user_is_verified_once_and_then_known() {
        let checker = checker();
        for user in ["alice", "bob"] {
            assert_eq!(run(&checker, user, "secret").as_deref(), Some(user));
            let again = checker.begin(Some(&header(user, "secret")));
            assert!(matches!(again, Verdict::Known(name) if &*name == user));
        }
    }

    #[test]
    fn a_wrong_password_and_a_wrong_name_are_nobody() {
        let checker = checker();
        run(&checker, "alice", "secret").unwrap();
        for (user, password) in
            [("alice", "secreT"), ("bob", ""), ("carol", "secret"), ("", ""), ("alic", "esecret")]
        {
            assert_eq!(run(&checker, user, password), None);
            assert_eq!(run(&checker, user, password), None, "a refusal is not remembered as anything else");
        }
    }

    #[test]
    fn no_header_and_another_scheme_are_missing_and_nonsense_is_refused() {
        let checker = checker();
        for missing in [None, Some(b"Bearer YTpi".as_slice()), Some(b"Basic"), Some(b"")] {
            assert!(matches!(checker.begin(missing), Verdict::Missing), "{missing:?}");
        }
        for refused in [b"Basic ".as_slice(), b"Basic !!", b"basic YWxpY2U=", b"Basic YWxpY2U6AA=="] {
            assert!(matches!(checker.begin(Some(refused)), Verdict::Refused), "{refused:?}");
        }
    }

    #[test]
    fn loaded_again_nobody_is_known() {
        run(&checker(), "alice", "secret").unwrap();
        assert!(matches!(checker().begin(Some(&header("alice", "secret"))), Verdict::Verify(_)));
    }

    #[test]
    fn a_job_that_waited_behind_its_twin_does_not_hash_again() {
        let checker = checker();
        let twin = || match checker.begin(Some(&header("bob", "secret"))) {
            Verdict::Verify(job) => job,
            other => panic!("{other:?}"),
        };
        let [first, second] = [twin(), twin()];
        assert!(first.recent(Instant::now()).is_none());
        first.run().unwrap();
        assert!(second.recent(Instant::now()).is_some());
    }

    #[test]
    fn a_name_that_nobody_has_stands_for_the_same_hash_after_a_reload() {
        let hash = |name: &str| {
            let checker = checker();
            let Verdict::Verify(job) = checker.begin(Some(&header(name, "x"))) else {
                panic!("nobody is known")
            };
            let (user, hash) = job.candidate();
            assert_eq!(user, None);
            hash.text().to_owned()
        };
        let hashes: std::collections::BTreeSet<_> = (0..64)
            .map(|at| {
                let name = format!("nobody{at}");
                assert_eq!(hash(&name), hash(&name));
                hash(&name)
            })
            .collect();
        assert_eq!(hashes.len(), 2, "names without a user are spread over the users' hashes");
    }

    #[test]
    fn a_realm_cannot_leave_its_quotes() {
        assert_eq!(
            challenge("a \"b\\ é").unwrap().as_bytes(),
            "Basic realm=\"a \\\"b\\\\ é\", charset=\"UTF-8\"".as_bytes()
        );
        let error = challenge("a\r\nSet-Cookie: x").unwrap_err().to_string();
        assert_eq!(error, "cannot use 'auth.realm': it has control characters");
    }

    #[test]
    fn a_job_does_not_show_its_password() {
        let checker = checker();
        let shown = format!("{:?}", checker.begin(Some(&header("alice", "hunter2"))));
        assert!(shown.contains("alice") && !shown.contains("hunter2"));
    }
}
