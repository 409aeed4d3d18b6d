//! Filter for the entries of a directory in responses whose request does not name each path:
//! listings and archives.

use std::sync::Arc;

use crate::auth::Paths;
use crate::plan::Site;
use crate::rules::access::Access;

/// The rules of a site as they are for one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    access: Arc<Access>,
    /// `None` if the site requires no password.
    paths: Option<Arc<Paths>>,
    user: Option<Box<str>>,
}

impl Shown {
    /// Those of `site` for a client that is `user`, if it is known which.
    pub(crate) fn new(site: &Site, user: Option<&str>) -> Self {
        Self {
            access: Arc::clone(&site.rules.access),
            paths: site.auth.as_ref().map(crate::auth::Checker::paths),
            user: user.map(Box::from),
        }
    }

    /// Whether a list names the decoded `path` below the root.
    pub(crate) fn lists(&self, path: &[u8]) -> bool {
        !self.access.unlists(path)
    }

    /// Whether the list of the directory `dir`, which all who may have that are shown, may have
    /// contents of the file `path` on it.
    pub(crate) fn includes(&self, path: &[u8], dir: &[u8]) -> bool {
        let is_as_dir = self.paths.as_ref().is_none_or(|paths| paths.who(path) == paths.who(dir));
        is_as_dir && !self.access.hides(path) && !self.access.denies(path)
    }

    /// Whether the client would get `path` if it asked for it.
    pub(crate) fn admits(&self, path: &[u8]) -> bool {
        let may = |paths: &Arc<Paths>| {
            let who = paths.who(path);
            who.is_everybody() || self.user.as_ref().is_some_and(|user| who.includes(user))
        };
        self.paths.as_ref().is_none_or(may) && !self.access.hides(path) && !self.access.denies(path)
    }
}
