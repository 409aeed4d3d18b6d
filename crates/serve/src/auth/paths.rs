//! Access of users by path.

use crate::config;
use crate::error::Error;
use crate::rules::glob::SubtreeGlob;

/// The clients with access to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Audience {
    /// All clients, without a password.
    Everybody,
    /// All users.
    Users,
    /// The users with these names.
    Some(Vec<String>),
}

static EVERY_USER: Audience = Audience::Users;

impl Audience {
    /// Returns whether access requires no password.
    #[must_use]
    pub fn is_everybody(&self) -> bool {
        *self == Self::Everybody
    }

    /// Returns whether the authenticated `user` has access.
    #[must_use]
    pub fn includes(&self, user: &str) -> bool {
        match self {
            Self::Everybody | Self::Users => true,
            Self::Some(names) => names.iter().any(|name| name == user),
        }
    }
}

/// The access rules of a site or of a mount. The last rule that matches a path applies.
#[derive(Clone, Debug)]
pub(crate) struct AudienceRules {
    rules: Vec<(SubtreeGlob, Audience)>,
    /// The prefix of all paths below the site, with a slash at both ends.
    at: Vec<u8>,
}

impl AudienceRules {
    /// Compiles `rules` of the site with the key `key`. `is_user` returns whether a user exists.
    ///
    /// # Errors
    /// If a glob is invalid, or a rule names no user or an unknown one. The error names its key.
    pub(super) fn new(
        rules: &[config::AuthRule],
        key: &str,
        is_user: impl Fn(&str) -> bool,
    ) -> Result<Self, Error> {
        let compile = |(at, rule): (usize, &config::AuthRule)| {
            let refused = |field: &str, cause: String| {
                Error::configure(format!("{key}.auth.paths[{at}].{field}"), cause)
            };
            let path = SubtreeGlob::new(&rule.path).map_err(|cause| refused("path", cause))?;
            // A misspelt name would silently lock its user out.
            let unknown = rule.users.iter().find(|name| *name != "*" && !is_user(name));
            let audience = match (rule.public, unknown) {
                (true, _) if !rule.users.is_empty() => {
                    return Err(refused("public", "it is for users, or public".to_owned()));
                }
                (true, _) => Audience::Everybody,
                (false, Some(name)) => {
                    return Err(refused("users", format!("unknown user '{}'", name.escape_debug())));
                }
                (false, None) if rule.users.is_empty() => {
                    return Err(refused(
                        "users",
                        "the list is empty; use '*' for all origins, and 'public = true' for everybody"
                            .to_owned(),
                    ));
                }
                (false, None) if rule.users.iter().any(|name| name == "*") => Audience::Users,
                (false, None) => Audience::Some(rule.users.clone()),
            };
            Ok((path, audience))
        };
        let rules = rules.iter().enumerate().map(compile).collect::<Result<_, _>>()?;
        Ok(Self { rules, at: b"/".to_vec() })
    }

    /// Returns the same rules for paths below the mount at `at`, which has no slash at its end.
    pub(super) fn mounted(&self, at: &str) -> Self {
        Self { at: format!("{at}/").into_bytes(), ..self.clone() }
    }

    /// Returns the clients with access to the decoded `path` below the root: every user, unless a
    /// rule matches.
    pub(crate) fn audience(&self, path: &[u8]) -> &Audience {
        self.find(path).unwrap_or(&EVERY_USER)
    }

    /// Returns the clients named by the last rule that matches the decoded `path` below the root,
    /// or `None` if no rule matches.
    fn find(&self, path: &[u8]) -> Option<&Audience> {
        if self.rules.is_empty() {
            return None;
        }
        let path = [&self.at[..], path].concat();
        self.rules.iter().rev().find(|(covers, _)| covers.matches(&path)).map(|(_, audience)| audience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Result<AudienceRules, Error> {
        let config = crate::Config::from_toml(&format!("site.auth.paths = [{text}]")).unwrap();
        AudienceRules::new(&config.site.auth.unwrap().paths, "site", |name| ["anna", "bob"].contains(&name))
    }

    #[test]
    fn the_last_rule_that_fits_counts() {
        let paths = paths(
            "{ path = '/**', public = true }, { path = '/admin', users = ['anna'] }, { path = '/admin/all/**', users = ['*'] }",
        )
        .unwrap();
        for (path, audience) in [
            ("", Audience::Everybody),
            ("a/b", Audience::Everybody),
            ("admin", Audience::Some(vec!["anna".to_owned()])),
            ("admin/x", Audience::Some(vec!["anna".to_owned()])),
            ("admin/all", Audience::Users),
            ("admin/all/x", Audience::Users),
            ("administration", Audience::Everybody),
        ] {
            assert_eq!(paths.find(path.as_bytes()), Some(&audience), "{path}");
        }
        assert!(Audience::Users.includes("bob") && !Audience::Some(vec!["anna".to_owned()]).includes("bob"));
    }

    #[test]
    fn mistakes_are_refused_with_their_key() {
        for (text, refusal) in [
            ("{ path = '[', public = true }", "'site.auth.paths[0].path': unclosed '['"),
            ("{ path = '/a', users = ['ana'] }", "'site.auth.paths[0].users': unknown user 'ana'"),
            (
                "{ path = '/a' }",
                "'site.auth.paths[0].users': the list is empty; use '*' for all origins, and 'public = true' for everybody",
            ),
            (
                "{ path = '/a', users = ['anna'], public = true }",
                "'site.auth.paths[0].public': it is for users, or public",
            ),
        ] {
            assert_eq!(paths(text).unwrap_err().to_string(), format!("cannot use {refusal}"));
        }
    }
}
