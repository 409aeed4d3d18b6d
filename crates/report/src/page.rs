//! The page around the data: markup, style, script and policy.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};

/// The length that no page reaches, in bytes.
pub const PAGE_BYTES_MAX: usize = 1_500_000;

const MARKUP: &str = include_str!("../assets/page.html");
const STYLE: &str = include_str!("../assets/style.css");
/// The script, as one function: its names are no names of the page.
const SCRIPT: &str = concat!(
    "(() => {\n",
    include_str!("../assets/model.js"),
    include_str!("../assets/layout.js"),
    include_str!("../assets/colours.js"),
    include_str!("../assets/map.js"),
    include_str!("../assets/tables.js"),
    include_str!("../assets/fetch.js"),
    include_str!("../assets/page.js"),
    "})();\n"
);

/// Returns the page with its data, which is JSON without `<`. A page that `fetches` may read from
/// its own server.
pub(crate) fn page(data: &str, fetches: bool) -> String {
    let policy = policy(fetches);
    let parts = [("policy", &policy[..]), ("style", STYLE), ("data", data), ("script", SCRIPT)];
    let mut page = String::with_capacity(MARKUP.len() + STYLE.len() + SCRIPT.len() + data.len() + 1024);
    let mut rest = MARKUP;
    // The parts are in the order of the markup, so none is searched for the name of another.
    for (name, part) in parts {
        let (before, after) = rest.split_once(&format!("{{{name}}}")).expect("the markup has each part");
        page.push_str(before);
        page.push_str(part);
        rest = after;
    }
    page.push_str(rest);
    page
}

/// Returns the Content-Security-Policy of a page, which it has in its head as well: nothing but its
/// style and its script, and if it `fetches`, requests to its own server.
#[must_use]
pub fn policy(fetches: bool) -> String {
    let connect = if fetches { " connect-src 'self';" } else { "" };
    let [style, script] = [STYLE, SCRIPT].map(|text| STANDARD.encode(digest(&SHA256, text.as_bytes())));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; img-src data:;{connect} \
         base-uri 'none'; form-action 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_each_part_once_and_unchanged() {
        let page = page("{\"a\":\"{script}\"}", false);
        for part in
            [STYLE, SCRIPT, "<script type=\"application/json\" id=\"data\">{\"a\":\"{script}\"}</script>"]
        {
            assert_eq!(page.matches(part).count(), 1);
        }
        assert!(!page.contains("{policy}") && !page.contains("connect-src"));
        assert!(super::page("{}", true).contains("; connect-src 'self';"));
    }

    #[test]
    fn the_assets_leave_room_for_the_data() {
        assert!(page("", true).len() < 100_000);
    }

    /// Data must not become markup, and a style attribute would be refused by the policy.
    #[test]
    fn the_script_uses_no_sink_of_markup() {
        for sink in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "setAttribute(\"style",
            "new Function",
        ] {
            assert!(!SCRIPT.contains(sink), "{sink}");
        }
        assert!(!MARKUP.contains(" style=") && !MARKUP.contains(" on"), "inline style or handler");
        assert!(!STYLE.contains("url(") && !SCRIPT.contains("https:") && !MARKUP.contains("//"));
    }
}
