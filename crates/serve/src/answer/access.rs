//! The access of a user to a path: who the client is, and whether the rules of the site let it.
//!
//! Owns: the responses to clients that are refused. Does not own: passwords and their limits
//! ([`crate::auth`]), and the rules.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fathom_files::pool::Resource;
use http::{HeaderValue, StatusCode, header};

use super::{Answer, RequestContext, plain, whole_seconds};
use crate::auth::{AuthDecision, Authenticator, CheckClient, CheckRefusal, PasswordCheck};
use crate::log::ErrorCategory;

impl RequestContext<'_> {
    /// Checks whether the client may access `path` under the rules of the site, and returns the
    /// refusal otherwise. This is called for the path of the request, and again for each path that
    /// a rewrite, an index or a suffix makes of it.
    pub(super) async fn authorize(&self, path: &[u8]) -> Result<(), Answer> {
        if let Some(authenticator) = &self.site.auth {
            let audience = authenticator.audience(path);
            if !audience.is_everybody() {
                let user = Box::pin(self.authenticate(authenticator)).await?;
                if !audience.includes(&user) {
                    return Err(Box::pin(self.error(StatusCode::FORBIDDEN)).await);
                }
            }
        }
        let access = &self.site.rules.access;
        if access.denies(path) {
            return Err(Box::pin(self.error(StatusCode::FORBIDDEN)).await);
        }
        if access.hides(path) {
            return Err(Box::pin(self.not_found(path)).await);
        }
        Ok(())
    }

    /// Returns whether [`RequestContext::authorize`] can refuse any path. Most sites are open, and
    /// their requests are spared the boxed future of `authorize`.
    pub(super) fn needs_authorization(&self) -> bool {
        self.site.auth.is_some() || !self.site.rules.access.is_open()
    }

    /// Returns the authenticated user, or the response that refuses the client.
    pub(super) async fn authenticate(&self, authenticator: &Authenticator) -> Result<Rc<str>, Answer> {
        if let Some(user) = self.user.get() {
            return Ok(Rc::clone(user));
        }
        let authorization = self.headers.authorization.map(HeaderValue::as_bytes);
        let user = match authenticator.begin(authorization, &self.worker.shared.clock) {
            AuthDecision::Known(user) => Some(user),
            AuthDecision::Missing | AuthDecision::Refused => None,
            AuthDecision::Verify(check) => self.verify(check).await?,
        };
        match user {
            Some(user) => Ok(Rc::clone(self.user.get_or_init(|| Rc::from(&*user)))),
            None => {
                let challenge = authenticator.challenge().clone();
                let page = self.error(StatusCode::UNAUTHORIZED).await;
                Err(page.with(header::WWW_AUTHENTICATE, challenge))
            }
        }
    }

    /// Runs `check` on the pool within the limits of checks, and returns the user if the password
    /// is right.
    async fn verify(&self, check: PasswordCheck) -> Result<Option<Arc<str>>, Answer> {
        let address = self.peer.address.map(|address| address.ip());
        let client = CheckClient { key: self.peer.client, address };
        let (checks, limits) = (&self.worker.shared.password_checks, self.plan.password_checks);
        let place = match checks.enter(client, limits, self.worker.now()) {
            Ok(place) => place,
            Err(refusal) => return Err(self.refuse_check(refusal)),
        };
        let (checks, clock) = (checks.clone(), self.worker.shared.clock.clone());
        let run = move || {
            let _place = place;
            let user = check.run();
            if user.is_none() {
                // On the pool: a client may reset its request meanwhile, which drops this future.
                checks.record_wrong(client, limits, clock.now());
            }
            user
        };
        let verified = self.worker.files.pool().run(client.key, Resource::Cpu, run).await;
        match verified {
            Ok(user) => Ok(user),
            Err(busy) => Err(self.failed(busy.into()).await),
        }
    }

    /// Returns the response to a client whose password is not checked.
    fn refuse_check(&self, refusal: CheckRefusal) -> Answer {
        let client = self.peer.address.map(|address| address.ip().to_canonical());
        let client = client.map_or_else(|| "a Unix socket".to_owned(), |address| address.to_string());
        let (status, wait, cause) = match refusal {
            CheckRefusal::Full => (StatusCode::SERVICE_UNAVAILABLE, Duration::ZERO, "too many checks wait"),
            CheckRefusal::ClientFull => {
                (StatusCode::TOO_MANY_REQUESTS, Duration::ZERO, "too many checks of this client wait")
            }
            CheckRefusal::WrongPasswords(wait) => {
                (StatusCode::TOO_MANY_REQUESTS, wait, "too many passwords were wrong")
            }
        };
        self.worker.report(ErrorCategory::Passwords, || {
            format!("a password from {client} was not checked: {cause}")
        });
        let after = HeaderValue::from(whole_seconds(wait).max(1));
        self.with_site_headers(plain(status).with(header::RETRY_AFTER, after), &self.path())
    }
}
