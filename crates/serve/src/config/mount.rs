//! Directories that are served below a path of a site, each with settings of its own.
//!
//! Owns: which settings a mount inherits, and that paths and globs of a mount are below it. Does not
//! own: which mount has a path (`rules::mounts`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::{Auth, CacheRule, Compress, Cors, HeaderRule, Maintenance, Redirect, Rewrite, Site};
use crate::path::is_below;

/// Characters that a glob takes for something else than themselves.
const GLOB: [char; 8] = ['*', '?', '[', ']', '{', '}', ',', '\\'];

/// Defines [`Mount`] and the site that it comes to from one list of the settings that it inherits.
macro_rules! mount {
    ($($(#[$attribute:meta])* $field:ident: $kind:ty,)*) => {
        /// A directory that is served below a path of a site. A setting that it does not have is that
        /// of the site, except for those that name files below the site's root or other addresses.
        #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct Mount {
            /// The path, like `/docs`.
            pub path: String,
            /// The directory.
            pub root: PathBuf,
            /// As that of a site, below the mount's root; not inherited.
            pub fallback: Option<String>,
            /// As those of a site, below the mount's root; not inherited.
            #[serde(default)]
            pub error_pages: BTreeMap<String, String>,
            /// As those of a site, with paths below the mount; not inherited.
            #[serde(default)]
            pub redirects: Vec<Redirect>,
            /// As those of a site, with paths below the mount; not inherited.
            #[serde(default)]
            pub rewrites: Vec<Rewrite>,
            $(
                #[doc = concat!("As `", stringify!($field), "` of the site, in its place.")]
                $(#[$attribute])*
                pub $field: Option<$kind>,
            )*
        }

        impl Mount {
            /// Returns the settings of the mount as those of a site, with inherited settings as they
            /// are in `site`.
            fn inherit(&self, site: &Site) -> Site {
                Site {
                    names: site.names.clone(),
                    base: site.base.clone(),
                    root: self.root.clone(),
                    at: self.at().to_owned(),
                    mounts: site.mounts.iter().filter(|other| other.is_below(self)).cloned().collect(),
                    fallback: self.fallback.clone(),
                    error_pages: self.error_pages.clone(),
                    redirects: self.redirects.clone(),
                    rewrites: self.rewrites.clone(),
                    $($field: self.$field.clone().unwrap_or_else(|| site.$field.clone()),)*
                }
            }
        }
    };
}

mount! {
    index: Vec<String>,
    listing: bool,
    archives: Vec<String>,
    #[serde(rename = "try")]
    suffixes: Vec<String>,
    clean_urls: Option<String>,
    hide: Vec<String>,
    deny: Vec<String>,
    allow_from: Vec<String>,
    deny_from: Vec<String>,
    dotfiles: bool,
    symlinks: Option<String>,
    precompressed: bool,
    compress: Compress,
    etag: Option<String>,
    charset: String,
    types: BTreeMap<String, String>,
    security_headers: bool,
    headers: Vec<HeaderRule>,
    cache_control: Vec<CacheRule>,
    cors: Option<Cors>,
    auth: Option<Auth>,
    maintenance: Maintenance,
}

impl Mount {
    /// Returns the path without a slash at its end.
    #[must_use]
    pub fn at(&self) -> &str {
        without_slash(&self.path)
    }

    fn is_below(&self, other: &Self) -> bool {
        self.at().strip_prefix(other.at()).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Returns the settings of the mount as those of a site. Paths and globs of the mount's own are
    /// made to be below the site, as inherited ones are.
    #[must_use]
    pub fn as_site(&self, site: &Site) -> Site {
        let mut own = self.inherit(site);
        for globs in [self.hide.as_ref().map(|_| &mut own.hide), self.deny.as_ref().map(|_| &mut own.deny)] {
            globs.into_iter().flatten().for_each(|glob| self.move_glob(glob));
        }
        let headers = self.headers.as_ref().map(|_| &mut own.headers);
        headers.into_iter().flatten().for_each(|rule| self.move_glob(&mut rule.path));
        let cache_control = self.cache_control.as_ref().map(|_| &mut own.cache_control);
        cache_control.into_iter().flatten().for_each(|rule| self.move_glob(&mut rule.path));
        let auth = own.auth.as_mut().filter(|_| self.auth.is_some());
        auth.into_iter().flat_map(|auth| &mut auth.paths).for_each(|rule| self.move_glob(&mut rule.path));
        for redirect in &mut own.redirects {
            self.move_glob(&mut redirect.from);
            redirect.to = below_url(self.at(), &redirect.to);
        }
        for rewrite in &mut own.rewrites {
            self.move_glob(&mut rewrite.from);
            rewrite.to = below_url(self.at(), &rewrite.to);
        }
        if self.maintenance.is_none() {
            // The page is a file below the site's root.
            own.maintenance.page = None;
        }
        own
    }

    /// Makes `glob`, which is of paths below the mount, one of paths below the site. A glob without a
    /// slash is of names, and stays.
    fn move_glob(&self, glob: &mut String) {
        if !glob.contains('/') {
            return;
        }
        let escape = |c: char| GLOB.contains(&c).then_some('\\').into_iter().chain([c]);
        let at: String = self.at().chars().flat_map(escape).collect();
        let slash = if glob.starts_with('/') || glob.starts_with("{/") { "" } else { "/" };
        *glob = format!("{at}{slash}{glob}");
    }
}

impl Site {
    /// Returns the settings of each mount as those of a site, with their keys; `key` is that of this
    /// site.
    pub fn mounted(&self, key: &str) -> impl Iterator<Item = (String, Self)> {
        let mounts = self.mounts.iter().enumerate();
        mounts.map(move |(number, mount)| (format!("{key}.mounts[{number}]"), mount.as_site(self)))
    }

    /// Returns the path that all paths of the site are below, without a slash at its end; empty for
    /// none.
    #[must_use]
    pub fn base(&self) -> &str {
        without_slash(self.base.as_deref().unwrap_or_default())
    }

    /// Returns the redirects with targets on this host below the base.
    pub(crate) fn redirects_below_base(&self) -> Vec<Redirect> {
        let below =
            |redirect: &Redirect| Redirect { to: below_url(self.base(), &redirect.to), ..redirect.clone() };
        self.redirects.iter().map(below).collect()
    }
}

fn without_slash(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

/// The template `to` of a target with `prefix` before it if it is a path.
fn below_url(prefix: &str, to: &str) -> String {
    match to.starts_with('/') && !to.starts_with("//") {
        true => prefix.replace('$', "$$") + to,
        false => to.to_owned(),
    }
}

/// Why `path` cannot be the beginning of paths, if it cannot.
pub(super) fn refuse_prefix(path: &str) -> Option<&'static str> {
    let Some(names) = without_slash(path).strip_prefix('/') else {
        return Some("a path begins with '/' and has at least one name");
    };
    if names.contains(['%', '?', '#', '\\']) || names.chars().any(char::is_control) {
        return Some(
            "it is written as it is, not percent-encoded, without '?', '#', '\\' and control characters",
        );
    }
    (!is_below(names.as_bytes()) || names.is_empty())
        .then_some("each part between slashes is a name, and neither '.' nor '..'")
}

#[cfg(test)]
mod tests;
