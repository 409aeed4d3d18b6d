//! Inherited settings of mounts, and the prefixes of their globs and targets.

use super::*;
use crate::Config;
use crate::config::CacheControlRule;

/// Returns the first mount of `text` as a site.
fn mount(text: &str) -> SiteConfig {
    let site = Config::from_toml(text).unwrap().site;
    site.mounted("site").next().unwrap().1
}

#[test]
fn what_a_mount_does_not_say_is_as_the_site_says() {
    let text = "[site]\nnames = ['n']\nbase = '/app'\nindex = ['i']\nlisting = true\narchives = ['zip']\ntry = ['.t']\n\
                clean-urls = 'yes'\nhide = ['/h']\ndeny = ['/d']\nallow-from = ['::1']\ndeny-from = ['unix']\ndotfiles = true\n\
                symlinks = 'never'\nprecompressed = true\ncompress = { codings = ['br'] }\netag = 'inode'\ncharset = 'c'\n\
                types = { a = 'b/c' }\nsecurity-headers = true\nheaders = [{ path = '/p', set = { A = 'b' } }]\n\
                cache-control = [{ path = '/p', value = 'v' }]\ncors = { origins = ['*'] }\nauth = { users = { u = 'h' } }\n\
                maintenance = { enabled = true, page = '/503.html' }\nfallback = '/f'\nerror-pages = { 404 = '/e' }\n\
                redirects = [{ from = '/a', to = '/b' }]\nrewrites = [{ from = '/a', to = '/b' }]\nroot = 'r'\n\
                [[site.mounts]]\npath = '/docs/'\nroot = 'm'\n";
    let site = Config::from_toml(text).unwrap().site;
    let mut expected =
        SiteConfig { root: "m".into(), at: "/docs".to_owned(), mounts: Vec::new(), ..site.clone() };
    (expected.fallback, expected.redirects, expected.rewrites) = (None, Vec::new(), Vec::new());
    expected.error_pages.clear();
    expected.maintenance.page = None;
    assert_eq!(mount(text), expected);
    // Every key of the site is listed: a key that is not set above would have its default.
    assert_ne!(site.etag, None);
}

#[test]
fn own_paths_of_a_mount_are_prefixed() {
    let own = mount(
        "[[site.mounts]]\npath = '/a*b'\nroot = 'm'\nhide = ['*.bak', '/x/**', 'x/y']\ndeny = ['{/p,/q}']\n\
         headers = [{ path = '/h', set = {} }]\ncache-control = [{ path = '*.js', value = 'v' }]\n\
         auth = { paths = [{ path = '/**', users = ['*'] }] }\n\
         redirects = [{ from = '/o/*', to = '/n/$1' }, { from = 'x', to = 'https://h/$1' }, { from = '/y', to = '//h/z' }]\n\
         rewrites = [{ from = '/**', to = '/i' }]\n",
    );
    assert_eq!(own.hide, ["*.bak", r"/a\*b/x/**", r"/a\*b/x/y"]);
    assert_eq!(own.deny, [r"/a\*b{/p,/q}"]);
    assert_eq!(own.headers[0].path, r"/a\*b/h");
    assert_eq!(
        own.cache_control,
        [CacheControlRule { path: "*.js".to_owned(), value: "v".to_owned(), always: false }]
    );
    assert_eq!(own.auth.unwrap().paths[0].path, r"/a\*b/**");
    let redirects: Vec<_> = own
        .redirects
        .iter()
        .map(|rule| (rule.from.as_deref().unwrap(), rule.to.as_deref().unwrap()))
        .collect();
    assert_eq!(redirects, [(r"/a\*b/o/*", "/a*b/n/$1"), ("x", "https://h/$1"), (r"/a\*b/y", "//h/z")]);
    assert_eq!((&own.rewrites[0].from[..], &own.rewrites[0].to[..]), (r"/a\*b/**", "/a*b/i"));
}

#[test]
fn a_mount_knows_those_below_it() {
    let own = mount(
        "site.mounts = [{ path = '/a', root = '1' }, { path = '/a/b', root = '2' }, { path = '/ab', root = '3' }]",
    );
    assert_eq!(own.mounts.iter().map(MountConfig::at).collect::<Vec<_>>(), ["/a/b"]);
}

#[test]
fn a_target_on_this_host_is_below_the_base() {
    let text = "[site]\nbase = '/a$b/'\nredirects = [{ from = '/x', to = '/y' }, { from = '/z', to = '//h/' }]\n\
                [[site.mounts]]\npath = '/m'\nroot = '.'\nredirects = [{ from = '/x', to = '/y' }]\n";
    let site = Config::from_toml(text).unwrap().site;
    let targets = |site: &SiteConfig| {
        site.redirects_below_base().into_iter().map(|rule| rule.to.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(targets(&site), ["/a$$b/y", "//h/"]);
    assert_eq!(targets(&mount(text)), ["/a$$b/m/y"]);
}
