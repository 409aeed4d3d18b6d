//! A TOML document with the positions of its entries, which can be removed one by one.
//!
//! Does not own: the meaning of keys and values.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error};

use super::Config;

/// The bytes of the text that an entry takes: the offsets of its start and its end.
pub(super) type Span = Range<usize>;

/// The positions of an entry. An element of a list has no key: there, `key` is the element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntrySpans {
    pub(super) key: Span,
    pub(super) value: Span,
    /// The table or list that contains the entry.
    pub(super) parent: Span,
}

/// A parsed document.
pub(super) struct Document<'t> {
    root: Spanned<DeTable<'t>>,
}

impl<'t> Document<'t> {
    /// Parses `text`.
    ///
    /// # Errors
    /// All syntax errors.
    pub(super) fn parse(text: &'t str) -> Result<Self, Vec<Error>> {
        let (root, errors) = DeTable::parse_recoverable(text);
        if errors.is_empty() { Ok(Self { root }) } else { Err(errors) }
    }

    /// Converts the document to a configuration.
    ///
    /// # Errors
    /// The first unknown key, missing key or value of a wrong type.
    pub(super) fn config(&self) -> Result<Config, Error> {
        Config::deserialize(Deserializer::from(self.root.clone()))
    }

    /// Returns the positions of the entry `key`, such as `site.redirects[2].from`, or else of the
    /// innermost table or list on the way to it, and whether it is the entry itself.
    pub(super) fn find(&self, key: &str) -> Option<(EntrySpans, bool)> {
        let mut parent = self.root.span();
        let mut at = Some(Container::Table(self.root.get_ref()));
        let mut found = None;
        for step in steps(key) {
            let next = at.and_then(|container| container.entry(step, &parent));
            let Some((entry, value)) = next else { return found.map(|entry| (entry, false)) };
            parent = entry.value.clone();
            found = Some(entry);
            at = Container::of(value);
        }
        found.map(|entry| (entry, true))
    }

    /// Removes the innermost entry whose key or value is at `span`. Returns the positions of what
    /// may lack something now: the table that contained it, or the list and the table of that.
    /// Nothing requires a table in a list, so there are no positions for one.
    pub(super) fn remove(&mut self, span: &Span) -> Option<Vec<Span>> {
        let own = self.root.span();
        remove_from_table(self.root.get_mut(), own, span)
    }
}

/// A step from a table or list to one of its entries.
#[derive(Clone, Copy)]
enum Step<'k> {
    Name(&'k str),
    Index(usize),
}

fn steps(key: &str) -> impl Iterator<Item = Step<'_>> {
    key.split(['.', '[']).map(|part| match part.strip_suffix(']').map(str::parse) {
        Some(Ok(index)) => Step::Index(index),
        _ => Step::Name(part),
    })
}

#[derive(Clone, Copy)]
enum Container<'d, 't> {
    Table(&'d DeTable<'t>),
    List(&'d [Spanned<DeValue<'t>>]),
}

impl<'d, 't> Container<'d, 't> {
    fn of(value: &'d DeValue<'t>) -> Option<Self> {
        match value {
            DeValue::Table(table) => Some(Self::Table(table)),
            DeValue::Array(list) => Some(Self::List(list)),
            _ => None,
        }
    }

    fn entry(self, step: Step<'_>, parent: &Span) -> Option<(EntrySpans, &'d DeValue<'t>)> {
        let (key, value) = match (self, step) {
            (Self::Table(table), Step::Name(name)) => {
                let (key, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
                (key.span(), value)
            }
            (Self::List(list), Step::Index(index)) => {
                let value = list.get(index)?;
                (value.span(), value)
            }
            _ => return None,
        };
        Some((EntrySpans { key, value: value.span(), parent: parent.clone() }, value.get_ref()))
    }
}

fn remove_from_table(table: &mut DeTable<'_>, own: Span, span: &Span) -> Option<Vec<Span>> {
    for (_, value) in table.iter_mut() {
        let is_list = value.get_ref().as_array().is_some_and(|list| !has_tables(list));
        if let Some(mut parents) = remove_below(value, span) {
            parents.extend(is_list.then_some(own));
            return Some(parents);
        }
    }
    let is_at = |key: &Spanned<_>, value: &Spanned<_>| key.span() == *span || value.span() == *span;
    let key = table.iter().find(|(key, value)| is_at(key, value)).map(|(key, _)| key.clone())?;
    table.remove(&key).map(|_| vec![own])
}

fn remove_below(value: &mut Spanned<DeValue<'_>>, span: &Span) -> Option<Vec<Span>> {
    let own = value.span();
    match value.get_mut() {
        DeValue::Table(table) => remove_from_table(table, own, span),
        DeValue::Array(list) => {
            if let Some(parents) = list.iter_mut().find_map(|element| remove_below(element, span)) {
                return Some(parents);
            }
            let is_of_tables = has_tables(list);
            let kept = list.clone().into_iter().filter(|element| element.span() != *span);
            let (before, kept) = (list.len(), kept.collect());
            *list = kept;
            (list.len() < before).then(|| if is_of_tables { Vec::new() } else { vec![own] })
        }
        _ => None,
    }
}

fn has_tables(list: &[Spanned<DeValue<'_>>]) -> bool {
    list.iter().any(|element| element.get_ref().is_table())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "health = '/h'\n[site]\nhide = ['a', 'b']\n[[site.redirects]]\nfrom = '/a'\nto = '/b'\n\
                        [[site.redirects]]\nfrom = '/c'\nto = '/d'\n";

    fn found(document: &Document<'_>, key: &str) -> Option<(&'static str, bool)> {
        document.find(key).map(|(entry, is_exact)| (&TEXT[entry.value], is_exact))
    }

    #[test]
    fn entries_are_found_by_their_keys() {
        let document = Document::parse(TEXT).unwrap();
        assert_eq!(found(&document, "health"), Some(("'/h'", true)));
        assert_eq!(found(&document, "site.hide[1]"), Some(("'b'", true)));
        assert_eq!(found(&document, "site.redirects[1].from"), Some(("'/c'", true)));
        assert_eq!(found(&document, "site.hide[2]"), Some(("['a', 'b']", false)));
        assert!(found(&document, "site.root").is_some_and(|(_, is_exact)| !is_exact));
        assert_eq!(found(&document, "metrics"), None);
    }

    #[test]
    fn removed_entries_are_gone_and_the_others_stay() {
        let mut document = Document::parse(TEXT).unwrap();
        let (second, _) = document.find("site.redirects[1]").unwrap();
        assert_eq!(document.remove(&second.value), Some(Vec::new()));
        let (list, _) = document.find("site.hide").unwrap();
        let (first, _) = document.find("site.hide[0]").unwrap();
        let (site, _) = document.find("site").unwrap();
        assert_eq!(document.remove(&first.value), Some(vec![list.value, site.value]));
        let (health, _) = document.find("health").unwrap();
        assert!(document.remove(&health.key).is_some());
        assert_eq!(document.remove(&health.key), None);
        let config = document.config().unwrap();
        assert_eq!(
            (config.health, config.site.hide, config.site.redirects.len()),
            (None, vec!["b".to_owned()], 1)
        );
    }

    #[test]
    fn all_syntax_errors_are_returned() {
        let errors = Document::parse("a = \nb = 1\nc = ]\n").err().unwrap();
        assert!(errors.len() > 1, "{errors:?}");
    }
}
