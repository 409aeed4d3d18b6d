//! The name of an arm: its language and its method.

use std::fmt;

use crate::Row;

/// The suffix of the method name of the baseline's second copy.
const SECOND_COPY_SUFFIX: &str = " (again)";

/// Language and method of an arm, unique within its cell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArmName {
    /// See [`Row::lang`].
    pub lang: String,
    /// See [`Row::method`].
    pub method: String,
}

impl ArmName {
    /// Names the arm `method` of `lang`.
    #[must_use]
    pub fn new(lang: &str, method: &str) -> Self {
        Self { lang: lang.to_owned(), method: method.to_owned() }
    }

    /// Returns the name of the arm that produced `row`.
    #[must_use]
    pub fn of(row: &Row) -> Self {
        Self::new(&row.lang, &row.method)
    }

    /// Returns the name of the second copy of this arm. The runner executes the baseline under both
    /// names; their difference is the noise.
    #[must_use]
    pub fn second_copy(&self) -> Self {
        Self::new(&self.lang, &format!("{}{SECOND_COPY_SUFFIX}", self.method))
    }

    /// Returns the method; for a second copy, the baseline's.
    #[must_use]
    pub(crate) fn without_copy(&self) -> String {
        self.method.strip_suffix(SECOND_COPY_SUFFIX).unwrap_or(&self.method).to_owned()
    }

    /// Returns whether a run has `method` for samples of its own: second copies, and the loop
    /// around calls.
    #[must_use]
    pub fn is_reserved(method: &str) -> bool {
        method.ends_with(SECOND_COPY_SUFFIX) || method == crate::workload::NULL
    }

    /// Returns whether this name belongs to such a second copy.
    #[must_use]
    pub fn is_second_copy(&self) -> bool {
        self.method.ends_with(SECOND_COPY_SUFFIX)
    }
}

impl fmt::Display for ArmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.lang, self.method)
    }
}
