//! A run as one self-contained HTML page, without external requests and without executable scripts.
//! All names are treated as hostile. Every number of the run appears with its exact value
//! (`data-value`) and its position in the JSON: `data-key`, relative to the `data-at` of an
//! enclosing element.

mod cells;
mod depth;
mod figure;
mod figures;
mod markup;
mod number;
mod scale;
mod table;
mod verdict;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::Run;
use cells::CellSection;
use depth::ModelKey;
use markup::Escaped;
use number::{interval, number};

const STYLE: &str = include_str!("html/style.css");
/// Content-Security-Policy: no requests and no scripts, even if hostile markup passed the escaping.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// Formats the page. The output is a deterministic function of `run`.
#[must_use]
pub fn html(run: &Run) -> String {
    html_with(run, None)
}

/// A section of texts that a page begins with.
#[derive(Clone, Debug)]
pub(crate) struct LeadSection {
    pub(crate) title: &'static str,
    pub(crate) sentences: Vec<String>,
    /// Lists with their titles. One without items is absent.
    pub(crate) lists: Vec<(&'static str, Vec<String>)>,
}

impl LeadSection {
    fn html(&self) -> String {
        let item = |text: &String| format!("<li>{}</li>\n", Escaped(text));
        let list = |texts: &[String]| texts.iter().map(item).collect::<String>();
        let mut body = format!("<ul class=\"verdicts\">\n{}</ul>\n", list(&self.sentences));
        for (title, texts) in self.lists.iter().filter(|(_, texts)| !texts.is_empty()) {
            body += &format!("<h3>{}</h3>\n<ul>\n{}</ul>\n", Escaped(title), list(texts));
        }
        section("", self.title, &body)
    }
}

/// Formats the page with a section `lead` before what the run alone shows.
#[must_use]
pub(crate) fn html_with(run: &Run, lead: Option<&LeadSection>) -> String {
    let json = serde_json::to_value(run).expect("a run has numbers, texts and lists of them only");
    let (cells, unassigned) = cells::cells(run, &json);
    let title = Escaped(&workloads(&cells)).to_string();
    let palette = depth::palette(run);
    let body = [
        header(run, &cells, &json, &title),
        lead.map_or_else(String::new, LeadSection::html),
        summary(&cells),
        cells.iter().enumerate().map(|(at, cell)| cell_section(at, cell, &palette, &json)).collect(),
        section(" id=\"warm-cold\"", "Warm against cold", &figures::warm_cold(&cells)),
        conditions(run, &json),
        all_samples(&cells, &unassigned, &json),
    ];
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>I/O models: {title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{}\
         <script type=\"application/json\" id=\"run\">{}</script>\n</body>\n</html>\n",
        body.concat(),
        markup::json_for_script(&json.to_string())
    )
}

/// Returns the distinct workloads of the cells.
fn workloads(cells: &[CellSection]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for cell in cells {
        if !names.contains(&cell.workload()) {
            names.push(cell.workload());
        }
    }
    match names.as_slice() {
        [] => "nothing measured".to_owned(),
        [name] => (*name).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn header(run: &Run, cells: &[CellSection], json: &Value, title: &str) -> String {
    let discarded = run.rows.iter().filter(|row| !row.discarded.is_empty()).count();
    let arms: BTreeSet<_> =
        run.arms.iter().map(|arm| (&arm.lang, &arm.method, arm.threads, arm.depth)).collect();
    let facts = [
        ("started", Escaped(&run.started).to_string()),
        ("with", Escaped(&run.program).to_string()),
        ("cells", cells.len().to_string()),
        ("arms", arms.len().to_string()),
        // An advice has another number in each cell.
        ("repetitions", if run.blocks > 0 { number(json, "blocks") } else { String::new() }),
        ("samples", run.rows.len().to_string()),
        ("discarded", discarded.to_string()),
    ];
    let known = facts.iter().filter(|(_, value)| !value.is_empty());
    let facts: String =
        known.map(|(name, value)| format!("<div><dt>{name}</dt><dd>{value}</dd></div>")).collect();
    format!(
        "<header>\n<p class=\"eyebrow\">I/O models compared</p>\n<h1>{title}</h1>\n<dl class=\"facts\" data-at=\"\">{facts}</dl>\n</header>\n<main>\n"
    )
}

/// Formats a section; empty if it has no `body`. `attributes` and `body` are HTML.
fn section(attributes: &str, title: &str, body: &str) -> String {
    if body.is_empty() {
        return String::new();
    }
    format!("<section{attributes}>\n<h2>{}</h2>\n{body}</section>\n", Escaped(title))
}

fn summary(cells: &[CellSection]) -> String {
    let item = |(at, cell): (usize, &CellSection)| {
        let sentence = verdict::sentence(cell);
        format!("<li><a href=\"#cell-{at}\">{}</a> {sentence}</li>\n", Escaped(cell.name))
    };
    let items: String = cells.iter().enumerate().map(item).collect();
    let body = match items.as_str() {
        "" => "<p>This run has no arms: nothing was measured.</p>\n".to_owned(),
        items => format!(
            "<ul class=\"verdicts\">\n{items}</ul>\n<p class=\"note\">Ratios are of times: below 1 is faster. Brackets \
             hold 95\u{a0}% confidence intervals.</p>\n"
        ),
    };
    section("", "In short", &body)
}

fn cell_section(at: usize, cell: &CellSection, palette: &[ModelKey<'_>], json: &Value) -> String {
    let parts = [
        format!("<p class=\"verdict\">{}</p>\n", verdict::sentence(cell)),
        noise(cell, json),
        figures::ratios(cell),
        figures::latencies(cell),
        figures::histograms(cell),
        depth::figure(cell, palette),
        figures::samples(cell),
        table::arms(cell),
    ];
    section(&format!(" id=\"cell-{at}\""), cell.name, &parts.concat())
}

fn noise(cell: &CellSection, json: &Value) -> String {
    let Some((at, noise)) = cell.noise else { return String::new() };
    let at = format!("/noise/{at}");
    let object = json.pointer(&at).unwrap_or(&Value::Null);
    format!(
        "<p class=\"note\" data-at=\"{at}\">Two copies of <code>{}</code> differ by a ratio of {}: differences of less than {} are not ranked.</p>\n",
        Escaped(&noise.method),
        interval(object, "ratio"),
        number(object, "floor")
    )
}

/// Formats the conditions of the measurement.
fn conditions(run: &Run, json: &Value) -> String {
    let list = |tag: &str, items: String| match items.as_str() {
        "" => String::new(),
        items => format!("<{tag}>\n{items}</{}>\n", &tag[..2]),
    };
    let notes = run.notes.iter().map(|note| format!("<li>{}</li>\n", Escaped(note))).collect();
    let machine = run.machine.iter();
    let machine = machine
        .map(|(name, value)| format!("<div><dt>{}</dt><dd>{}</dd></div>\n", Escaped(name), Escaped(value)))
        .collect();
    [
        section("", "Notes", &list("ul", notes)),
        section("", "Not available", &table::unavailable(&run.unavailable)),
        section("", "Discarded", &table::discards(run)),
        section("", "Machine", &list("dl class=\"machine\"", machine)),
        section("", "Run it again", &reproduction(run, json)),
    ]
    .concat()
}

fn reproduction(run: &Run, json: &Value) -> String {
    let command = match run.command.as_str() {
        "" => String::new(),
        command => format!("<pre><code>{}</code></pre>\n", Escaped(command)),
    };
    let [seed, schema] = ["seed", "schema"].map(|key| number(json, key));
    format!(
        "{command}<p class=\"note\" data-at=\"\">Seed {seed}. The page contains the run as JSON, format {schema}, in the element \
         <code>run</code>.</p>\n"
    )
}

/// Formats the tables of all samples, collapsed.
fn all_samples(cells: &[CellSection], unassigned: &[usize], json: &Value) -> String {
    let of_cells = cells.iter().map(|cell| (cell.name, cell.rows.as_slice()));
    let tables = of_cells.chain([("Samples of no cell", unassigned)]).filter(|(_, rows)| !rows.is_empty());
    let tables: String = tables
        .map(|(name, rows)| {
            let summary = format!("{} <small>{}</small>", Escaped(name), rows.len());
            format!("<details><summary>{summary}</summary>\n{}</details>\n", table::samples(name, rows, json))
        })
        .collect();
    section("", "All samples", &tables) + "</main>\n"
}
