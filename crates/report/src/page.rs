//! Pages around their data: markup, style, script and policy.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};

/// The parts of a kind of page that are the same for all data.
pub(crate) struct PageAssets {
    /// With `{policy}`, `{style}`, `{script}` and the names of the data, each once.
    pub(crate) markup: &'static str,
    pub(crate) style: &'static str,
    /// One function: its names are no names of the page.
    pub(crate) script: &'static str,
}

impl PageAssets {
    /// Returns the page with its `data`: name and JSON of each part, in the order of the markup. A
    /// page that `fetches` may read from its own server.
    pub(crate) fn page(&self, data: &[(&str, &str)], fetches: bool) -> String {
        let policy = self.policy(fetches);
        let (before, after) = ([("policy", &policy[..]), ("style", self.style)], [("script", self.script)]);
        let parts = before.iter().chain(data).chain(&after);
        let bytes: usize = data.iter().map(|(_, json)| json.len()).sum();
        let mut page =
            String::with_capacity(self.markup.len() + self.style.len() + self.script.len() + bytes + 1024);
        let mut rest = self.markup;
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

    /// Returns the Content-Security-Policy of a page: nothing but its style and its script, and if
    /// it `fetches`, requests to its own server.
    pub(crate) fn policy(&self, fetches: bool) -> String {
        let connect = if fetches { " connect-src 'self';" } else { "" };
        let [style, script] =
            [self.style, self.script].map(|text| STANDARD.encode(digest(&SHA256, text.as_bytes())));
        format!(
            "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; img-src data:;{connect} \
             base-uri 'none'; form-action 'none'"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::INVENTORY_PAGE;
    use crate::run::RUN_PAGE;

    #[test]
    fn the_page_has_each_part_once_and_unchanged() {
        let page = INVENTORY_PAGE.page(&[("data", "{\"a\":\"{script}\"}")], false);
        for part in [
            INVENTORY_PAGE.style,
            INVENTORY_PAGE.script,
            "<script type=\"application/json\" id=\"data\">{\"a\":\"{script}\"}</script>",
        ] {
            assert_eq!(page.matches(part).count(), 1);
        }
        assert!(!page.contains("{policy}") && !page.contains("connect-src"));
        assert!(INVENTORY_PAGE.page(&[("data", "{}")], true).contains("; connect-src 'self';"));
    }

    #[test]
    fn the_assets_leave_room_for_the_data() {
        assert!(INVENTORY_PAGE.page(&[("data", "")], true).len() < 100_000);
    }

    /// Data must not become markup, and a style attribute would be refused by the policy.
    #[test]
    fn no_script_uses_a_sink_of_markup() {
        for PageAssets { markup, style, script } in [INVENTORY_PAGE, RUN_PAGE] {
            for sink in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "setAttribute(\"style",
                "new Function",
            ] {
                assert!(!script.contains(sink), "{sink}");
            }
            assert!(!markup.contains(" style=") && !markup.contains(" on"), "inline style or handler");
            assert!(!style.contains("url(") && !script.contains("https:") && !markup.contains("//"));
        }
    }
}
