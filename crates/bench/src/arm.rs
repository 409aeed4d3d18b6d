//! What an arm is called.

use std::fmt;

use crate::Row;

/// What the second copy of an arm has behind its method.
const AGAIN: &str = " (again)";

/// Language and method of an arm, which no other arm of its cell has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArmName {
    /// As in [`Row::lang`].
    pub lang: String,
    /// As in [`Row::method`].
    pub method: String,
}

impl ArmName {
    /// The arm `method` of `lang`.
    #[must_use]
    pub fn new(lang: &str, method: &str) -> Self {
        Self { lang: lang.to_owned(), method: method.to_owned() }
    }

    /// The arm that a sample is of.
    #[must_use]
    pub fn of(row: &Row) -> Self {
        Self::new(&row.lang, &row.method)
    }

    /// What its second copy is called, which shows the noise.
    #[must_use]
    pub fn again(&self) -> Self {
        Self::new(&self.lang, &format!("{}{AGAIN}", self.method))
    }

    /// Whether it is such a copy.
    #[must_use]
    pub fn is_again(&self) -> bool {
        self.method.ends_with(AGAIN)
    }
}

impl fmt::Display for ArmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.lang, self.method)
    }
}
