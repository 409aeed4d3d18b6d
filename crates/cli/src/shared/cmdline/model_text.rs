//! Names and descriptions of I/O models in the texts of commands, from the list in `fathom-io`.

use fathom_io::{Model, Use};

/// Replaces `{names:USE}` in `text` by the names of the models with a use, and `{lines:USE}` by a
/// line about each: name and mechanism. With `all` in place of a use, lines have the uses as well.
pub(crate) fn with_models(text: &str) -> String {
    let mut written = text.to_owned();
    for wanted in [None, Some(Use::Metadata), Some(Use::Serve)] {
        let name = wanted.map_or("all", Use::name);
        for (place, models) in [("names", names as fn(Option<Use>) -> String), ("lines", lines)] {
            let place = format!("{{{place}:{name}}}");
            if written.contains(&place) {
                written = written.replace(&place, &models(wanted));
            }
        }
    }
    written
}

fn models(wanted: Option<Use>) -> impl Iterator<Item = Model> {
    Model::ALL.into_iter().filter(move |model| wanted.is_none_or(|wanted| model.has(wanted)))
}

fn names(wanted: Option<Use>) -> String {
    let name = |model: Model| match model.parameter().filter(|_| wanted == Some(Use::Metadata)) {
        Some(parameter) => format!("`{}[={parameter}]`", model.name()),
        None => format!("`{}`", model.name()),
    };
    models(wanted).map(name).collect::<Vec<_>>().join(", ")
}

fn lines(wanted: Option<Use>) -> String {
    let line = |model: Model| {
        let name = model.name();
        let parameter = model.parameter().filter(|_| wanted != Some(Use::Serve));
        let number = parameter.map_or_else(String::new, |parameter| format!(" or `{name}={parameter}`"));
        let uses = if wanted.is_none() { uses(model) } else { String::new() };
        format!("`{name}`{number}: {}{uses}.", model.summary())
    };
    models(wanted).map(line).collect::<Vec<_>>().join("\n")
}

fn uses(model: Model) -> String {
    let names: Vec<_> = model.uses().iter().map(|wanted| wanted.name()).collect();
    let before = if model.is_for_benchmarks_only() { "for benchmarks only:" } else { "for" };
    format!("; {before} {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_is_where_a_text_asks_for_it() {
        let all = with_models("a {names:all}. {lines:all}");
        for model in Model::ALL {
            assert_eq!(all.matches(&format!("`{}`", model.name())).count(), 2, "{all}");
        }
        let walking = with_models("{names:metadata}; x");
        assert!(
            walking.starts_with("`sync`, ") && walking.contains("`threads[=N]`") && walking.ends_with("; x")
        );
        assert!(with_models("{lines:serving}").lines().all(|line| line.ends_with('.')));
        assert_eq!(with_models("{x} {names:y}"), "{x} {names:y}");
    }
}
