//! Directories mounted below a path of a site, each with settings of its own.
//!
//! Owns: which settings a mount inherits, and the prefix of its paths and globs. Does not own: the
//! lookup of the mount for a path (`rules::mounts`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::words::{CleanUrlMode, Etag, Symlinks};
use super::{
    AuthConfig, CacheControlRule, CompressionConfig, CorsConfig, HeaderRule, MaintenanceConfig, RedirectRule,
    RewriteRule, SiteConfig,
};
use crate::archive::format::ArchiveFormat;
use crate::path::is_below;

/// The characters with a special meaning in globs.
const GLOB: [char; 8] = ['*', '?', '[', ']', '{', '}', ',', '\\'];

/// Defines [`MountConfig`] and its conversion to a site from one list of the inherited settings.
macro_rules! mount {
    ($($(#[$attribute:meta])* $field:ident: $kind:ty,)*) => {
        /// A directory mounted below a path of a site. A missing setting is inherited from the
        /// site, except for settings that name files below the site's root or other addresses.
        #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
        pub struct MountConfig {
            /// The path, like `/docs`.
            pub path: String,
            /// The root directory.
            pub root: PathBuf,
            /// As `fallback` of a site, below the mount's root; not inherited.
            pub fallback: Option<String>,
            /// As `error_pages` of a site, below the mount's root; not inherited.
            #[serde(default)]
            pub error_pages: BTreeMap<String, String>,
            /// As `redirects` of a site, with paths below the mount; not inherited.
            #[serde(default)]
            pub redirects: Vec<RedirectRule>,
            /// As `rewrites` of a site, with paths below the mount; not inherited.
            #[serde(default)]
            pub rewrites: Vec<RewriteRule>,
            $(
                #[doc = concat!("As `", stringify!($field), "` of the site, in its place.")]
                $(#[$attribute])*
                pub $field: Option<$kind>,
            )*
        }

        impl MountConfig {
            /// Returns the mount as a site, with the missing settings from `site`.
            fn inherit(&self, site: &SiteConfig) -> SiteConfig {
                SiteConfig {
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
    explore: bool,
    archives: Vec<ArchiveFormat>,
    #[serde(rename = "try")]
    suffixes: Vec<String>,
    clean_urls: Option<CleanUrlMode>,
    hide: Vec<String>,
    deny: Vec<String>,
    allow_from: Vec<String>,
    deny_from: Vec<String>,
    dotfiles: bool,
    symlinks: Option<Symlinks>,
    precompressed: bool,
    compress: CompressionConfig,
    etag: Option<Etag>,
    charset: String,
    types: BTreeMap<String, String>,
    security_headers: bool,
    headers: Vec<HeaderRule>,
    cache_control: Vec<CacheControlRule>,
    cors: Option<CorsConfig>,
    auth: Option<AuthConfig>,
    maintenance: MaintenanceConfig,
}

impl MountConfig {
    /// Returns the path without a slash at its end.
    #[must_use]
    pub fn at(&self) -> &str {
        strip_slash(&self.path)
    }

    fn is_below(&self, other: &Self) -> bool {
        self.at().strip_prefix(other.at()).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Returns the mount as a site. The mount's own paths and globs get its path as a prefix, so
    /// that all are relative to the site.
    #[must_use]
    pub fn as_site(&self, site: &SiteConfig) -> SiteConfig {
        let mut own = self.inherit(site);
        for globs in [self.hide.as_ref().map(|_| &mut own.hide), self.deny.as_ref().map(|_| &mut own.deny)] {
            globs.into_iter().flatten().for_each(|glob| self.prefix_glob(glob));
        }
        let headers = self.headers.as_ref().map(|_| &mut own.headers);
        headers.into_iter().flatten().for_each(|rule| self.prefix_glob(&mut rule.path));
        let cache_control = self.cache_control.as_ref().map(|_| &mut own.cache_control);
        cache_control.into_iter().flatten().for_each(|rule| self.prefix_glob(&mut rule.path));
        let auth = own.auth.as_mut().filter(|_| self.auth.is_some());
        auth.into_iter().flat_map(|auth| &mut auth.paths).for_each(|rule| self.prefix_glob(&mut rule.path));
        for redirect in &mut own.redirects {
            redirect.from.iter_mut().for_each(|glob| self.prefix_glob(glob));
            redirect.below = self.at().to_owned();
            redirect.to = redirect.to.as_ref().map(|to| prefix_url(self.at(), to));
        }
        for rewrite in &mut own.rewrites {
            self.prefix_glob(&mut rewrite.from);
            rewrite.to = prefix_url(self.at(), &rewrite.to);
        }
        if self.maintenance.is_none() {
            // An inherited page would be a file below the site's root.
            own.maintenance.page = None;
        }
        own
    }

    /// Prefixes `glob`, which matches paths below the mount, with the path of the mount. A glob
    /// without a slash matches names and stays as it is.
    fn prefix_glob(&self, glob: &mut String) {
        if !glob.contains('/') {
            return;
        }
        let escape = |c: char| GLOB.contains(&c).then_some('\\').into_iter().chain([c]);
        let at: String = self.at().chars().flat_map(escape).collect();
        let slash = if glob.starts_with('/') || glob.starts_with("{/") { "" } else { "/" };
        *glob = format!("{at}{slash}{glob}");
    }
}

impl SiteConfig {
    /// Returns each mount as a site, with its key. `key` is the key of this site.
    pub fn mounted(&self, key: &str) -> impl Iterator<Item = (String, Self)> {
        let mounts = self.mounts.iter().enumerate();
        mounts.map(move |(number, mount)| (format!("{key}.mounts[{number}]"), mount.as_site(self)))
    }

    /// Returns the base path without a slash at its end; empty for no base.
    #[must_use]
    pub fn base(&self) -> &str {
        strip_slash(self.base.as_deref().unwrap_or_default())
    }

    /// Returns the redirects, with targets on this host below the base.
    pub(crate) fn redirects_below_base(&self) -> Vec<RedirectRule> {
        let below = |redirect: &RedirectRule| RedirectRule {
            to: redirect.to.as_ref().map(|to| prefix_url(self.base(), to)),
            ..redirect.clone()
        };
        self.redirects.iter().map(below).collect()
    }
}

fn strip_slash(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

/// Returns the target template `to` with `prefix` before it if `to` is a path.
fn prefix_url(prefix: &str, to: &str) -> String {
    match to.starts_with('/') && !to.starts_with("//") {
        true => prefix.replace('$', "$$") + to,
        false => to.to_owned(),
    }
}

/// Returns the reason why `path` cannot be a prefix of paths, if there is one.
pub(super) fn prefix_error(path: &str) -> Option<&'static str> {
    let Some(names) = strip_slash(path).strip_prefix('/') else {
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
