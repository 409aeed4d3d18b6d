//! Answers that the program generates in place of the files of a site.
//!
//! Owns: the interface. Does not own: the meaning of the answers, and access to them: a generated
//! answer passes the site's users, limits, headers and logs as a file does.

use std::path::Path;

/// Generates the answers of sites with the setting `explore`.
///
/// The calls run on threads of the server's pool, few at a time, and may wait.
///
/// ```
/// use std::path::Path;
/// use fathom_serve::generator::{GenerateError, GeneratedAnswer, Generator};
///
/// struct Greeting;
///
/// impl Generator for Greeting {
///     fn answer(&self, _root: &Path, query: &str) -> Result<GeneratedAnswer, GenerateError> {
///         match query {
///             "" => Ok(GeneratedAnswer::json("\"hello\"".to_owned())),
///             _ => Err(GenerateError::NotFound),
///         }
///     }
/// }
///
/// let answer = Greeting.answer(Path::new("/srv"), "").unwrap();
/// assert_eq!(answer.body, "\"hello\"");
/// ```
pub trait Generator: Send + Sync {
    /// Returns the answer to a request for the directory `root` of a site with a query, which is as
    /// the client sent it.
    ///
    /// # Errors
    /// If there is no such answer.
    fn answer(&self, root: &Path, query: &str) -> Result<GeneratedAnswer, GenerateError>;
}

/// A generated answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedAnswer {
    /// The media type.
    pub content_type: &'static str,
    /// The Content-Security-Policy, if the answer is a page.
    pub policy: Option<String>,
    /// The body, of at most [`BODY_BYTES_MAX`] bytes.
    pub body: String,
}

/// The most bytes of a generated body.
pub const BODY_BYTES_MAX: usize = 2_000_000;

impl GeneratedAnswer {
    /// Returns an answer in JSON.
    #[must_use]
    pub fn json(body: String) -> Self {
        Self { content_type: "application/json", policy: None, body }
    }

    /// Returns a page.
    #[must_use]
    pub fn page(body: String, policy: String) -> Self {
        Self { content_type: "text/html; charset=utf-8", policy: Some(policy), body }
    }
}

/// The reason why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GenerateError {
    /// The query has no meaning: 400.
    BadRequest,
    /// There is no such thing: 404.
    NotFound,
    /// There is nothing to show, perhaps not any more: 404. The text is for the error log.
    Absent(String),
    /// The query refers to something that has been replaced: 409.
    Replaced,
    /// The answer cannot be generated: 500. The text is for the error log.
    Failed(String),
}
