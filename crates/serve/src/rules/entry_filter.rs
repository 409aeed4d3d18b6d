//! The filter of directory entries in responses whose request does not name each path: listings and
//! archives.

use std::sync::Arc;

use crate::auth::AudienceRules;
use crate::rules::access::AccessRules;

/// The access rules of a site, applied to the entries of one response.
#[derive(Clone, Debug, Default)]
pub(crate) struct EntryFilter {
    access: Arc<AccessRules>,
    /// `None` if the site requires no password.
    paths: Option<Arc<AudienceRules>>,
    user: Option<Box<str>>,
}

impl EntryFilter {
    /// Creates the filter for an authenticated `user`, or for clients in general. `paths` is `None`
    /// if the site requires no password.
    pub(crate) fn new(
        access: Arc<AccessRules>,
        paths: Option<Arc<AudienceRules>>,
        user: Option<&str>,
    ) -> Self {
        Self { access, paths, user: user.map(Box::from) }
    }

    /// Returns whether a listing names the decoded `path` below the root.
    pub(crate) fn lists(&self, path: &[u8]) -> bool {
        !self.access.unlists(path)
    }

    /// Returns whether a listing of the directory `dir` may show the contents of the file `path`.
    /// All clients with access to `dir` get the same listing, so both must have the same audience.
    pub(crate) fn includes(&self, path: &[u8], dir: &[u8]) -> bool {
        let is_as_dir = self.paths.as_ref().is_none_or(|paths| paths.audience(path) == paths.audience(dir));
        is_as_dir && !self.access.hides(path) && !self.access.denies(path)
    }

    /// Returns whether a request of the client for `path` would be served.
    pub(crate) fn admits(&self, path: &[u8]) -> bool {
        let may = |paths: &Arc<AudienceRules>| {
            let audience = paths.audience(path);
            audience.is_everybody() || self.user.as_ref().is_some_and(|user| audience.includes(user))
        };
        self.paths.as_ref().is_none_or(may) && !self.access.hides(path) && !self.access.denies(path)
    }
}
