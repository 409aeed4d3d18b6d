//! Brackets in a pattern: `[a-c]`, `[!x]`, `[[:alpha:]]`, `[[=a=]]`, `[[.-.]]`, and all that is nearly one of them.
//! They are read again for each symbol they are held against, because what a broken one means depends on it.

use super::class::Class;
use super::{BACKSLASH, OPEN, Pattern};

const CLOSE: u32 = b']' as u32;
const HYPHEN: u32 = b'-' as u32;
const COLON: u32 = b':' as u32;
const EQUALS: u32 = b'=' as u32;
const DOT: u32 = b'.' as u32;

/// What a bracket's list has to say about a symbol.
pub(super) enum Listed {
    /// It is in the list, by the item that ends here.
    Yes(usize),
    /// It is not, and the bracket ends here.
    No(usize),
    /// It is not in what there is of a list that is never closed.
    Unclosed,
}

/// One item of a bracket's list.
enum Item {
    Range(u32, u32),
    Class(Class),
    /// `[.x.]` in front of a last hyphen, which matches nothing, not even `x`.
    Nothing,
}

/// A list that matches nothing, whatever the bracket's sense.
pub(super) struct Malformed;

impl Pattern {
    /// Where the pattern goes on if the bracket whose list starts at `inside` matches `symbol`.
    pub(super) fn match_bracket(&self, inside: usize, symbol: u32) -> Option<usize> {
        let first = self.get(inside);
        let negated = first == Some(b'!'.into()) || self.caret_negates && first == Some(b'^'.into());
        let closed = match self.find(inside + usize::from(negated), symbol).ok()? {
            Listed::Yes(rest) => self.skip_list(rest).ok()?.map(|end| (!negated, end)),
            Listed::No(end) => Some((negated, end)),
            Listed::Unclosed => None,
        };
        match closed {
            Some((matched, end)) => matched.then_some(end),
            // A bracket that is never closed stands for itself, and its list is ordinary pattern again.
            None => (symbol == OPEN).then_some(inside),
        }
    }

    /// Looks `symbol` up in the list that starts at `list`, behind any sign of negation.
    pub(super) fn find(&self, list: usize, symbol: u32) -> Result<Listed, Malformed> {
        let mut at = list;
        while let Some(first) = self.get(at) {
            // In the first place it is an item.
            if first == CLOSE && at > list {
                return Ok(Listed::No(at + 1));
            }
            let (item, next) = self.item(at, first)?;
            let found = match item {
                Item::Range(low, high) => (low..=high).contains(&symbol),
                Item::Class(class) => self.class_contains(class, symbol),
                Item::Nothing => false,
            };
            if found {
                return Ok(Listed::Yes(next));
            }
            at = next;
        }
        Ok(Listed::Unclosed)
    }

    fn class_contains(&self, class: Class, symbol: u32) -> bool {
        match u8::try_from(symbol) {
            Ok(byte) if !self.in_chars => class.contains_byte(byte),
            _ => char::from_u32(symbol).is_some_and(|c| class.contains(c)),
        }
    }

    /// The list's item at `at`, which starts with `first`, and where the next one starts.
    fn item(&self, at: usize, first: u32) -> Result<(Item, usize), Malformed> {
        let second = self.get(at + 1);
        if first == OPEN
            && second == Some(COLON)
            && let Some((name, next)) = self.class_name(at + 2)
        {
            return Class::named(&name).map(|class| (Item::Class(class), next)).ok_or(Malformed);
        }
        if first == OPEN
            && second == Some(EQUALS)
            && let Some((symbol, next)) = self.equivalence(at + 2)
        {
            return Ok((Item::Range(symbol, symbol), next));
        }
        let is_named = first == OPEN && second == Some(DOT);
        let (low, next) = match first {
            BACKSLASH => (second.ok_or(Malformed)?, at + 2),
            _ if is_named => self.collating_symbol(at + 2)?,
            _ => (first, at + 1),
        };
        match (self.get(next), self.get(next + 1)) {
            (Some(HYPHEN), Some(CLOSE)) if is_named => Ok((Item::Nothing, next)),
            (Some(HYPHEN), high) if high != Some(CLOSE) => {
                let (high, next) = self.range_end(next + 1)?;
                Ok((Item::Range(low, high), next))
            }
            _ => Ok((Item::Range(low, low), next)),
        }
    }

    fn range_end(&self, at: usize) -> Result<(u32, usize), Malformed> {
        match (self.get(at).ok_or(Malformed)?, self.get(at + 1)) {
            (OPEN, Some(DOT)) => self.collating_symbol(at + 2),
            (BACKSLASH, quoted) => Ok((quoted.ok_or(Malformed)?, at + 2)),
            (high, _) => Ok((high, at + 1)),
        }
    }

    /// The name in `[:name:]` that starts at `at`, if it can be one, and where the list goes on.
    fn class_name(&self, at: usize) -> Option<(String, usize)> {
        // Not up to z, which no name has: so glibc tells names from lists such as `[[:z]`.
        let is_letter = |&&symbol: &&u32| (u32::from(b'a')..u32::from(b'z')).contains(&symbol);
        let letters = self.symbols[at..].iter().take_while(is_letter);
        let name: String = letters.filter_map(|&symbol| char::from_u32(symbol)).collect();
        let end = at + name.len();
        (self.get(end) == Some(COLON) && self.get(end + 1) == Some(CLOSE)).then_some((name, end + 2))
    }

    /// The symbol in `[=x=]` that starts at `at`, and where the list goes on.
    fn equivalence(&self, at: usize) -> Option<(u32, usize)> {
        let closed = self.get(at + 1) == Some(EQUALS) && self.get(at + 2) == Some(CLOSE);
        self.get(at).filter(|_| closed).map(|symbol| (symbol, at + 3))
    }

    /// The symbol in `[.x.]` that starts at `at`: in these locales, only single ones have names.
    fn collating_symbol(&self, at: usize) -> Result<(u32, usize), Malformed> {
        match self.end_of_collating(at) {
            Some(end) if end == at + 3 => Ok((self.symbols[at], end)),
            _ => Err(Malformed),
        }
    }

    fn end_of_collating(&self, at: usize) -> Option<usize> {
        let pairs = self.symbols.get(at..)?.windows(2);
        pairs.zip(at..).find(|(pair, _)| pair == &[DOT, CLOSE]).map(|(_, dot)| dot + 2)
    }

    /// The end, if there is one, of a bracket whose list goes on at `at`. Items are told apart more coarsely than in
    /// [`Pattern::item`], as in glibc, which no longer looks at what they mean.
    fn skip_list(&self, mut at: usize) -> Result<Option<usize>, Malformed> {
        while let Some(first) = self.get(at) {
            at = match (first, self.get(at + 1)) {
                (CLOSE, _) => return Ok(Some(at + 1)),
                (BACKSLASH, quoted) => quoted.map(|_| at + 2).ok_or(Malformed)?,
                (OPEN, Some(COLON)) => self.class_name(at + 2).map_or(at + 1, |(_, next)| next),
                (OPEN, Some(EQUALS)) => self.equivalence(at + 2).ok_or(Malformed)?.1,
                (OPEN, Some(DOT)) => self.end_of_collating(at + 2).ok_or(Malformed)?,
                _ => at + 1,
            };
        }
        Ok(None)
    }

    /// Whether the bracket's list ends at the same place whatever it is held against, and takes in no slash.
    pub(super) fn is_plain_list(&self, inside: usize, end: usize) -> bool {
        let list = &self.symbols[inside..end];
        let negates = |&symbol: &u32| symbol == u32::from(b'!') || symbol == u32::from(b'^');
        !list.iter().any(|&symbol| symbol == OPEN || symbol == BACKSLASH)
            && !list.first().is_some_and(negates)
    }
}
