//! Bracket expressions in a pattern: `[a-c]`, `[!x]`, `[[:alpha:]]`, `[[=a=]]`, `[[.-.]]`, and
//! malformed ones. An expression is parsed again for each symbol that it is matched against,
//! because the meaning of a malformed one depends on the symbol.

use super::class::CharClass;
use super::{BACKSLASH, OPEN, Pattern};

const CLOSE: u32 = b']' as u32;
const HYPHEN: u32 = b'-' as u32;
const COLON: u32 = b':' as u32;
const EQUALS: u32 = b'=' as u32;
const DOT: u32 = b'.' as u32;

/// The result of looking a symbol up in a bracket list.
pub(super) enum Lookup {
    /// The list contains the symbol. Holds the position behind the matching item.
    Found(usize),
    /// The list does not contain the symbol. Holds the position behind the bracket.
    Missing(usize),
    /// The list does not contain the symbol, and the bracket is never closed.
    Unclosed,
}

/// One item of a bracket list.
enum BracketItem {
    Range(u32, u32),
    CharClass(CharClass),
    /// `[.x.]` in front of a final hyphen: glibc lets it match nothing, not even `x`.
    Nothing,
}

/// The error for a list that matches nothing, whether the bracket is negated or not.
pub(super) struct MalformedBracket;

impl Pattern {
    /// Matches `symbol` against the bracket whose list starts at `inside` and returns the position
    /// of the next pattern element.
    pub(super) fn match_bracket(&self, inside: usize, symbol: u32) -> Option<usize> {
        let first = self.get(inside);
        let negated = first == Some(b'!'.into()) || self.caret_negates && first == Some(b'^'.into());
        let closed = match self.find(inside + usize::from(negated), symbol).ok()? {
            Lookup::Found(rest) => self.skip_list(rest).ok()?.map(|end| (!negated, end)),
            Lookup::Missing(end) => Some((negated, end)),
            Lookup::Unclosed => None,
        };
        match closed {
            Some((matched, end)) => matched.then_some(end),
            // A bracket that is never closed is a literal `[`, and its list is ordinary pattern
            // text.
            None => (symbol == OPEN).then_some(inside),
        }
    }

    /// Looks `symbol` up in the list that starts at `list`, behind the negation sign.
    pub(super) fn find(&self, list: usize, symbol: u32) -> Result<Lookup, MalformedBracket> {
        let mut at = list;
        while let Some(first) = self.get(at) {
            // A `]` in the first place is an item, not the end of the list.
            if first == CLOSE && at > list {
                return Ok(Lookup::Missing(at + 1));
            }
            let (item, next) = self.item(at, first)?;
            let found = match item {
                BracketItem::Range(low, high) => (low..=high).contains(&symbol),
                BracketItem::CharClass(class) => self.class_contains(class, symbol),
                BracketItem::Nothing => false,
            };
            if found {
                return Ok(Lookup::Found(next));
            }
            at = next;
        }
        Ok(Lookup::Unclosed)
    }

    fn class_contains(&self, class: CharClass, symbol: u32) -> bool {
        match u8::try_from(symbol) {
            Ok(byte) if !self.in_chars => class.contains_byte(byte),
            _ => char::from_u32(symbol).is_some_and(|c| class.contains(c)),
        }
    }

    /// Parses the list item at `at`, whose first symbol is `first`. Returns the item and the
    /// position of the next one.
    fn item(&self, at: usize, first: u32) -> Result<(BracketItem, usize), MalformedBracket> {
        let second = self.get(at + 1);
        if first == OPEN
            && second == Some(COLON)
            && let Some((name, next)) = self.class_name(at + 2)
        {
            return CharClass::named(&name)
                .map(|class| (BracketItem::CharClass(class), next))
                .ok_or(MalformedBracket);
        }
        if first == OPEN
            && second == Some(EQUALS)
            && let Some((symbol, next)) = self.equivalence(at + 2)
        {
            return Ok((BracketItem::Range(symbol, symbol), next));
        }
        let is_named = first == OPEN && second == Some(DOT);
        let (low, next) = match first {
            BACKSLASH => (second.ok_or(MalformedBracket)?, at + 2),
            _ if is_named => self.collating_symbol(at + 2)?,
            _ => (first, at + 1),
        };
        match (self.get(next), self.get(next + 1)) {
            (Some(HYPHEN), Some(CLOSE)) if is_named => Ok((BracketItem::Nothing, next)),
            (Some(HYPHEN), high) if high != Some(CLOSE) => {
                let (high, next) = self.range_end(next + 1)?;
                Ok((BracketItem::Range(low, high), next))
            }
            _ => Ok((BracketItem::Range(low, low), next)),
        }
    }

    fn range_end(&self, at: usize) -> Result<(u32, usize), MalformedBracket> {
        match (self.get(at).ok_or(MalformedBracket)?, self.get(at + 1)) {
            (OPEN, Some(DOT)) => self.collating_symbol(at + 2),
            (BACKSLASH, quoted) => Ok((quoted.ok_or(MalformedBracket)?, at + 2)),
            (high, _) => Ok((high, at + 1)),
        }
    }

    /// Parses the name of `[:name:]` that starts at `at`. Returns the name and the position behind
    /// the closing `:]`, or `None` if the symbols cannot be a class name.
    fn class_name(&self, at: usize) -> Option<(String, usize)> {
        // `z` is excluded: no class name contains it, and glibc thereby tells names from lists such
        // as `[[:z]`.
        let is_letter = |&&symbol: &&u32| (u32::from(b'a')..u32::from(b'z')).contains(&symbol);
        let letters = self.symbols[at..].iter().take_while(is_letter);
        let name: String = letters.filter_map(|&symbol| char::from_u32(symbol)).collect();
        let end = at + name.len();
        (self.get(end) == Some(COLON) && self.get(end + 1) == Some(CLOSE)).then_some((name, end + 2))
    }

    /// Parses the symbol of `[=x=]` that starts at `at`. Returns it and the position behind the
    /// closing `=]`.
    fn equivalence(&self, at: usize) -> Option<(u32, usize)> {
        let closed = self.get(at + 1) == Some(EQUALS) && self.get(at + 2) == Some(CLOSE);
        self.get(at).filter(|_| closed).map(|symbol| (symbol, at + 3))
    }

    /// Parses the symbol of `[.x.]` that starts at `at`. In the supported locales only single
    /// characters have collating names.
    fn collating_symbol(&self, at: usize) -> Result<(u32, usize), MalformedBracket> {
        match self.end_of_collating(at) {
            Some(end) if end == at + 3 => Ok((self.symbols[at], end)),
            _ => Err(MalformedBracket),
        }
    }

    fn end_of_collating(&self, at: usize) -> Option<usize> {
        let pairs = self.symbols.get(at..)?.windows(2);
        pairs.zip(at..).find(|(pair, _)| pair == &[DOT, CLOSE]).map(|(_, dot)| dot + 2)
    }

    /// Returns the position behind the bracket whose list continues at `at`, or `None` if the
    /// bracket is not closed. Items are parsed more coarsely than in [`Pattern::item`]: like glibc,
    /// this pass skips them without evaluating them.
    fn skip_list(&self, mut at: usize) -> Result<Option<usize>, MalformedBracket> {
        while let Some(first) = self.get(at) {
            at = match (first, self.get(at + 1)) {
                (CLOSE, _) => return Ok(Some(at + 1)),
                (BACKSLASH, quoted) => quoted.map(|_| at + 2).ok_or(MalformedBracket)?,
                (OPEN, Some(COLON)) => self.class_name(at + 2).map_or(at + 1, |(_, next)| next),
                (OPEN, Some(EQUALS)) => self.equivalence(at + 2).ok_or(MalformedBracket)?.1,
                (OPEN, Some(DOT)) => self.end_of_collating(at + 2).ok_or(MalformedBracket)?,
                _ => at + 1,
            };
        }
        Ok(None)
    }

    /// Returns whether the list ends at the same position for every symbol and does not match a
    /// slash.
    pub(super) fn is_plain_list(&self, inside: usize, end: usize) -> bool {
        let list = &self.symbols[inside..end];
        let negates = |&symbol: &u32| symbol == u32::from(b'!') || symbol == u32::from(b'^');
        !list.iter().any(|&symbol| symbol == OPEN || symbol == BACKSLASH)
            && !list.first().is_some_and(negates)
    }
}
