//! Basic authentication (RFC 7617).
//!
//! ```text
//! Authorization ─> begin ─┬─> Missing, Refused ─> 401 with the challenge
//!                         ├─> Known(user): verified recently
//!                         └─> Verify(check): slow on purpose, run on a thread that may block
//!                             ─> user or none
//! ```
//! An unknown name costs the hash of some user, always of the same user for the same name, so that
//! timing does not reveal which names exist. `basic` parses the header, `hash` verifies a password,
//! `users` reads the file, `verified` caches successes, `checks` limits how many wait. Does not
//! own: threads, responses, the resources that are protected.

mod basic;
mod checks;
mod hash;
mod paths;
mod users;
mod verified;

use std::sync::Arc;

use fathom_io::Clock;
use http::HeaderValue;
use ring::digest;

use self::basic::Credentials;
pub(crate) use self::checks::{CheckClient, CheckLimits, CheckRefusal, PasswordChecks};
use self::hash::StoredHash;
pub use self::paths::Audience;
pub(crate) use self::paths::AudienceRules;
use self::users::Users;
use self::verified::{CredentialTag, VerifiedCache};
use crate::config;
use crate::error::Error;

/// The result of the header `Authorization`.
#[derive(Debug)]
#[non_exhaustive]
pub enum AuthDecision {
    /// The header is missing, or of another scheme: 401.
    Missing,
    /// The header is malformed: 401.
    Refused,
    /// The user was verified recently.
    Known(Arc<str>),
    /// The password is to be verified, on a thread that may block.
    Verify(PasswordCheck),
}

/// The users of a site. Loading them again forgets recent verifications.
///
/// ```
/// use fathom_io::Clock;
/// use fathom_serve::auth::{AuthDecision, Authenticator};
/// use fathom_serve::config::AuthConfig;
///
/// // The password is `secret`.
/// let hash = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW".to_string();
/// let users = [("ada".to_string(), hash)].into();
/// let users = Authenticator::load(&AuthConfig { users, ..AuthConfig::default() }, "site")?;
/// assert_eq!(users.challenge(), "Basic realm=\"restricted\", charset=\"UTF-8\"");
/// let clock = Clock::default();
/// assert!(matches!(users.begin(None, &clock), AuthDecision::Missing));
/// // The credentials are `ada:secret` in base64 (RFC 7617, section 2).
/// let AuthDecision::Verify(check) = users.begin(Some(b"Basic YWRhOnNlY3JldA=="), &clock) else {
///     panic!("the first request is verified");
/// };
/// assert_eq!(check.run().as_deref(), Some("ada"));
/// # Ok::<(), fathom_serve::Error>(())
/// ```
#[derive(Debug)]
pub struct Authenticator {
    state: Arc<AuthState>,
    challenge: HeaderValue,
    paths: Arc<AudienceRules>,
}

#[derive(Debug)]
struct AuthState {
    users: Users,
    /// The secret key that selects the decoy hash of an unknown name. It changes only with the
    /// users.
    decoy_key: Vec<u8>,
    verified: VerifiedCache,
}

impl Authenticator {
    /// Reads the users of `auth`, a table of the site with the key `key`, and of its file.
    ///
    /// # Errors
    /// If the users or the file are invalid or the access rules name an unknown user. The error
    /// names the line or the user, and never a hash.
    pub fn load(auth: &config::AuthConfig, key: &str) -> Result<Self, Error> {
        let users = Users::load(auth, &format!("{key}.auth"))?;
        let decoy_key = digest::digest(&digest::SHA256, &users.text()).as_ref().to_vec();
        let paths = AudienceRules::new(&auth.paths, key, |name| users.find(name).is_some())?;
        let state = AuthState { users, decoy_key, verified: VerifiedCache::new()? };
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

    /// Returns whether a user verified by `other` is authenticated here. Both must be loaded from
    /// the same table of the configuration; equal user names are not enough.
    #[must_use]
    pub fn shares_users(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// Returns the access rules by path.
    pub(crate) fn audience_rules(&self) -> Arc<AudienceRules> {
        Arc::clone(&self.paths)
    }

    /// Returns the clients with access to the decoded `path` below the root.
    #[must_use]
    pub fn audience(&self, path: &[u8]) -> &Audience {
        self.paths.audience(path)
    }

    /// Returns the value of `WWW-Authenticate` for a 401.
    #[must_use]
    pub fn challenge(&self) -> &HeaderValue {
        &self.challenge
    }

    /// Evaluates the value of `Authorization` without blocking. `clock` tells how long ago a user
    /// was verified.
    #[must_use]
    pub fn begin(&self, authorization: Option<&[u8]>, clock: &Clock) -> AuthDecision {
        let Some(token) = authorization.and_then(basic::token) else { return AuthDecision::Missing };
        let Some(credentials) = Credentials::parse(token) else { return AuthDecision::Refused };
        let check = PasswordCheck { state: self.state.clone(), credentials, clock: clock.clone() };
        match check.verified_user() {
            Some(user) => AuthDecision::Known(user),
            None => AuthDecision::Verify(check),
        }
    }
}

/// A password that is to be verified.
pub struct PasswordCheck {
    state: Arc<AuthState>,
    credentials: Credentials,
    clock: Clock,
}

/// Omits the password.
impl std::fmt::Debug for PasswordCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PasswordCheck").field("user", &self.credentials.user).finish_non_exhaustive()
    }
}

impl PasswordCheck {
    /// Verifies the password and returns the user if it is right. This takes the time and the
    /// memory that the hash demands, perhaps a second.
    #[must_use]
    pub fn run(self) -> Option<Arc<str>> {
        // A browser sends several requests at once: another one may have been verified while this
        // one was queued.
        if let Some(user) = self.verified_user() {
            return Some(user);
        }
        let (user, hash) = self.candidate();
        // Verify in any case: the time must not reveal whether the name exists.
        let fits = hash.verify(&self.credentials.password);
        let user = user.filter(|_| fits)?;
        self.state.verified.insert(self.tag(hash), self.clock.now());
        Some(user)
    }

    fn verified_user(&self) -> Option<Arc<str>> {
        let (user, hash) = self.candidate();
        let is_recent = self.state.verified.contains(&self.tag(hash), self.clock.now());
        user.filter(|_| is_recent)
    }

    fn tag(&self, hash: &StoredHash) -> CredentialTag {
        self.state.verified.tag(&self.credentials.user, &self.credentials.password, hash.text())
    }

    /// Returns the user of the given name, if it exists, and the hash to verify against.
    fn candidate(&self) -> (Option<Arc<str>>, &StoredHash) {
        let AuthState { users, decoy_key, .. } = &*self.state;
        // Computed in any case: the time must not reveal whether the name exists.
        let decoy_hash = users.decoy_hash(decoy_key, &self.credentials.user);
        match users.find(&self.credentials.user) {
            Some((user, hash)) => (Some(user.clone()), hash),
            None => (None, decoy_hash),
        }
    }
}

/// Returns the challenge with `realm` as a quoted-string (RFC 9110, section 5.6.4). User names and
/// passwords are UTF-8 (RFC 7617, section 2.1).
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

    fn authenticator() -> Authenticator {
        let users = [("alice", ARGON2ID), ("bob", BCRYPT)];
        let users = users.into_iter().map(|(name, hash)| (name.to_owned(), hash.to_owned())).collect();
        Authenticator::load(&config::AuthConfig { users, ..config::AuthConfig::default() }, "site").unwrap()
    }

    fn header(user: &str, password: &str) -> Vec<u8> {
        format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))).into_bytes()
    }

    fn begin(authenticator: &Authenticator, authorization: Option<&[u8]>) -> AuthDecision {
        authenticator.begin(authorization, &Clock::default())
    }

    fn run(authenticator: &Authenticator, user: &str, password: &str) -> Option<Arc<str>> {
        match begin(authenticator, Some(&header(user, password))) {
            AuthDecision::Verify(check) => check.run(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_user_is_verified_once_and_then_known_for_a_while() {
        let (authenticator, clock) = (authenticator(), Clock::held());
        for user in ["alice", "bob"] {
            let ask = || authenticator.begin(Some(&header(user, "secret")), &clock);
            let AuthDecision::Verify(check) = ask() else { panic!("{user} was not verified yet") };
            assert_eq!(check.run().as_deref(), Some(user));
            assert!(matches!(ask(), AuthDecision::Known(name) if &*name == user));
            clock.advance(verified::LIFETIME);
            assert!(matches!(ask(), AuthDecision::Verify(_)));
        }
    }

    #[test]
    fn a_wrong_password_and_a_wrong_name_are_refused() {
        let authenticator = authenticator();
        run(&authenticator, "alice", "secret").unwrap();
        for (user, password) in
            [("alice", "secreT"), ("bob", ""), ("carol", "secret"), ("", ""), ("alic", "esecret")]
        {
            assert_eq!(run(&authenticator, user, password), None);
            assert_eq!(
                run(&authenticator, user, password),
                None,
                "a refusal is not remembered as anything else"
            );
        }
    }

    #[test]
    fn no_header_and_another_scheme_are_missing_and_nonsense_is_refused() {
        let authenticator = authenticator();
        for missing in [None, Some(b"Bearer YTpi".as_slice()), Some(b"Basic"), Some(b"")] {
            assert!(matches!(begin(&authenticator, missing), AuthDecision::Missing), "{missing:?}");
        }
        for refused in [b"Basic ".as_slice(), b"Basic !!", b"basic YWxpY2U=", b"Basic YWxpY2U6AA=="] {
            assert!(matches!(begin(&authenticator, Some(refused)), AuthDecision::Refused), "{refused:?}");
        }
    }

    #[test]
    fn a_reload_forgets_verifications() {
        run(&authenticator(), "alice", "secret").unwrap();
        assert!(matches!(begin(&authenticator(), Some(&header("alice", "secret"))), AuthDecision::Verify(_)));
    }

    #[test]
    fn a_check_queued_behind_an_equal_one_does_not_hash_again() {
        let authenticator = authenticator();
        let twin = || match begin(&authenticator, Some(&header("bob", "secret"))) {
            AuthDecision::Verify(check) => check,
            other => panic!("{other:?}"),
        };
        let [first, second] = [twin(), twin()];
        assert!(first.verified_user().is_none());
        first.run().unwrap();
        assert!(second.verified_user().is_some());
    }

    #[test]
    fn an_unknown_name_has_the_same_decoy_hash_after_a_reload() {
        let hash = |name: &str| {
            let authenticator = authenticator();
            let AuthDecision::Verify(check) = begin(&authenticator, Some(&header(name, "x"))) else {
                panic!("no user is known")
            };
            let (user, hash) = check.candidate();
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
        let authenticator = authenticator();
        let shown = format!("{:?}", begin(&authenticator, Some(&header("alice", "hunter2"))));
        assert!(shown.contains("alice") && !shown.contains("hunter2"));
    }
}
