//! A run as one page of HTML: complete in itself, without a request and without a script that runs. Every name in it is
//! taken for hostile; every number of the run stands in it with its exact value (`data-value`) and its place in the JSON
//! (`data-key`, below the `data-at` of an element around it).

mod cells;
mod depth;
mod figure;
mod latency;
mod markup;
mod number;
mod ratios;
mod samples;
mod scale;
mod table;
mod verdict;
mod warmth;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::Run;
use cells::Cell;
use markup::Text;
use number::{interval, number};

const STYLE: &str = include_str!("html/style.css");
/// Nothing may be fetched and no script may run, whatever gets into the page.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// The page. The same run always gives the same text.
#[must_use]
pub fn html(run: &Run) -> String {
    let json = serde_json::to_value(run).expect("a run has numbers, texts and lists of them only");
    let (cells, strays) = cells::cells(run);
    let is_polyglot = run.arms.iter().any(|arm| arm.lang != run.arms[0].lang);
    let title = Text(&workloads(&cells)).to_string();
    let body = [
        header(run, &cells, &json, &title),
        in_short(&cells, &json, is_polyglot),
        cells.iter().enumerate().map(|(at, cell)| section(at, cell, &json, is_polyglot)).collect(),
        warmth(&cells, is_polyglot),
        conditions(run, &json),
        all_samples(&cells, &strays, &json),
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

/// The workloads of all cells, each once.
fn workloads(cells: &[Cell]) -> String {
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

fn header(run: &Run, cells: &[Cell], json: &Value, title: &str) -> String {
    let discarded = run.rows.iter().filter(|row| !row.discarded.is_empty()).count();
    let arms: BTreeSet<_> =
        run.arms.iter().map(|arm| (&arm.lang, &arm.method, arm.threads, arm.depth)).collect();
    let facts = [
        ("started", Text(&run.started).to_string()),
        ("with", Text(&run.program).to_string()),
        ("cells", cells.len().to_string()),
        ("arms", arms.len().to_string()),
        ("blocks", number(json, "blocks")),
        ("samples", run.rows.len().to_string()),
        ("discarded", discarded.to_string()),
    ];
    let facts = facts.map(|(name, value)| format!("<div><dt>{name}</dt><dd>{value}</dd></div>")).concat();
    format!(
        "<header>\n<p class=\"eyebrow\">I/O models compared</p>\n<h1>{title}</h1>\n<dl class=\"facts\" data-at=\"\">{facts}</dl>\n</header>\n<main>\n"
    )
}

fn in_short(cells: &[Cell], json: &Value, is_polyglot: bool) -> String {
    if cells.is_empty() {
        return "<section>\n<h2>In short</h2>\n<p>This run has no arms: nothing was measured.</p>\n</section>\n".to_owned();
    }
    let items = cells.iter().enumerate().map(|(at, cell)| {
        let sentence = verdict::sentence(cell, json, is_polyglot);
        format!("<li><a href=\"#cell-{at}\">{}</a> {sentence}</li>\n", Text(cell.name))
    });
    format!(
        "<section>\n<h2>In short</h2>\n<ul class=\"verdicts\">\n{}</ul>\n<p class=\"note\">Ratios are of times: below 1 is faster. Brackets \
         hold 95\u{a0}% confidence intervals.</p>\n</section>\n",
        items.collect::<String>()
    )
}

fn section(at: usize, cell: &Cell, json: &Value, is_polyglot: bool) -> String {
    let figures = [
        ratios::figure(cell, json, is_polyglot),
        latency::figure(cell, json, is_polyglot),
        depth::figure(cell),
        samples::figure(cell, json, is_polyglot),
    ];
    format!(
        "<section id=\"cell-{at}\">\n<h2>{}</h2>\n<p class=\"verdict\">{}</p>\n{}{}{}</section>\n",
        Text(cell.name),
        verdict::sentence(cell, json, is_polyglot),
        noise(cell, json),
        figures.concat(),
        table::arms(cell, json)
    )
}

fn noise(cell: &Cell, json: &Value) -> String {
    let Some((at, noise)) = cell.noise else { return String::new() };
    let at = format!("/noise/{at}");
    let object = json.pointer(&at).unwrap_or(&Value::Null);
    format!(
        "<p class=\"note\" data-at=\"{at}\">Two copies of <code>{}</code> differ by a ratio of {}: a difference below {} is not ranked.</p>\n",
        Text(&noise.method),
        interval(object, "ratio"),
        number(object, "floor")
    )
}

fn warmth(cells: &[Cell], is_polyglot: bool) -> String {
    let figures = warmth::figures(cells, is_polyglot);
    if figures.is_empty() {
        return figures;
    }
    format!("<section id=\"warm-cold\">\n<h2>Warm against cold</h2>\n{figures}</section>\n")
}

/// Under which conditions all this holds.
fn conditions(run: &Run, json: &Value) -> String {
    let part = |title: &str, is_there: bool, body: String| match is_there {
        true => format!("<section>\n<h2>{title}</h2>\n{body}</section>\n"),
        false => String::new(),
    };
    let notes: String = run.notes.iter().map(|note| format!("<li>{}</li>\n", Text(note))).collect();
    let machine = run.machine.iter();
    let machine: String = machine
        .map(|(name, value)| format!("<div><dt>{}</dt><dd>{}</dd></div>\n", Text(name), Text(value)))
        .collect();
    let has_discards = run.rows.iter().any(|row| !row.discarded.is_empty());
    [
        part("Notes", !notes.is_empty(), format!("<ul>\n{notes}</ul>\n")),
        part("Not available", !run.unavailable.is_empty(), table::unavailable(&run.unavailable)),
        part("Discarded", has_discards, table::discards(run)),
        part("Machine", !machine.is_empty(), format!("<dl class=\"machine\">\n{machine}</dl>\n")),
        part("Run it again", true, again(run, json)),
    ]
    .concat()
}

fn again(run: &Run, json: &Value) -> String {
    let command = match run.command.as_str() {
        "" => String::new(),
        command => format!("<pre><code>{}</code></pre>\n", Text(command)),
    };
    let [seed, schema] = ["seed", "schema"].map(|key| number(json, key));
    format!(
        "{command}<p class=\"note\" data-at=\"\">Seed {seed}. The page contains the run as JSON, format {schema}, in the element \
         <code>run</code>.</p>\n"
    )
}

/// Every sample, folded away.
fn all_samples(cells: &[Cell], strays: &[usize], json: &Value) -> String {
    let of_cells = cells.iter().map(|cell| (cell.name, cell.rows.as_slice()));
    let tables = of_cells.chain([("Samples of no cell", strays)]).filter(|(_, rows)| !rows.is_empty());
    let tables: String = tables
        .map(|(name, rows)| {
            let summary = format!("{} <small>{}</small>", Text(name), rows.len());
            format!("<details><summary>{summary}</summary>\n{}</details>\n", table::samples(name, rows, json))
        })
        .collect();
    if tables.is_empty() {
        return "</main>\n".to_owned();
    }
    format!("<section>\n<h2>All samples</h2>\n{tables}</section>\n</main>\n")
}
