//! The page of a benchmark.

use crate::page::PageAssets;

pub(crate) const RUN_PAGE: PageAssets = PageAssets {
    markup: include_str!("../assets/run/page.html"),
    style: include_str!("../assets/run/style.css"),
    script: concat!(
        "(() => {\n",
        include_str!("../assets/elements.js"),
        include_str!("../assets/run/run.js"),
        include_str!("../assets/run/numbers.js"),
        include_str!("../assets/run/axis.js"),
        include_str!("../assets/run/drawing.js"),
        include_str!("../assets/run/figures.js"),
        include_str!("../assets/run/flight.js"),
        include_str!("../assets/run/tables.js"),
        include_str!("../assets/run/page.js"),
        "})();\n"
    ),
};

/// Returns the page of a run of `fathom bench`, which draws itself from `run`, the JSON of
/// `fathom_bench::report`. `lead` is the JSON of what stands before it: an object of `title`,
/// `sentences` and `lists`, which are pairs of a title and texts.
///
/// ```
/// let page = fathom_report::run_page(r#"{"command": "</script>"}"#, None);
/// assert!(page.contains(r#"id="run">{"command": "\u003c/script>"}</script>"#));
/// assert!(page.contains(r#"id="lead">null</script>"#));
/// ```
#[must_use]
pub fn run_page(run: &str, lead: Option<&str>) -> String {
    let [lead, run] = [lead.unwrap_or("null"), run].map(within_script);
    RUN_PAGE.page(&[("lead", &lead), ("data", &run)], false)
}

/// Escapes JSON for a `script` element. `<` occurs within strings of JSON alone, where `\u003c`
/// means the same.
fn within_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}
