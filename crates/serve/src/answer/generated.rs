//! Responses that the program generates: their status and headers.

use std::path::Path;

use bytes::Bytes;
use fathom_files::FileError;
use fathom_files::pool::Resource;
use http::{HeaderValue, StatusCode, header};
use tokio::sync::OwnedSemaphorePermit;

use super::{Answer, RequestContext};
use crate::body::Content;
use crate::compress::{self, coder};
use crate::generator::{BODY_BYTES_MAX, GenerateError, GeneratedAnswer};
use crate::log::ErrorCategory;
use crate::negotiate::{AcceptedCodings, Coding};
use crate::places::PlaceRefusal;

/// The resource of generated answers, which has a limit of its own in the pool: they read files, on
/// a device that only the generator knows, and no password and no compression waits for that.
const GENERATED: Resource = Resource::Listing(0);

/// A generated body, which may be compressed.
struct GeneratedBody {
    answer: GeneratedAnswer,
    bytes: Bytes,
    coding: Option<Coding>,
}

impl RequestContext<'_> {
    /// Returns the generated response for `path` below a site whose directory `root` is explored.
    /// Only the root itself has one.
    pub(super) async fn generated(&self, root: &Path, path: &[u8], is_dir: bool) -> Answer {
        if !path.is_empty() {
            return self.error(StatusCode::NOT_FOUND).await;
        }
        if !is_dir {
            return self.redirect_to_directory(path);
        }
        let place = match self.worker.shared.generated.enter(self.peer.place_client()).await {
            Ok(place) => place,
            Err(PlaceRefusal::Full) => return self.failed(FileError::Busy).await,
            Err(PlaceRefusal::ClientFull) => return self.refuse_client(path),
        };
        match self.generate(root, place).await {
            Ok(Ok(body)) => self.with_body(body),
            Ok(Err(GenerateError::BadRequest)) => self.error(StatusCode::BAD_REQUEST).await,
            Ok(Err(GenerateError::NotFound)) => self.error(StatusCode::NOT_FOUND).await,
            Ok(Err(GenerateError::Replaced)) => self.error(StatusCode::CONFLICT).await,
            Ok(Err(GenerateError::Absent(why))) => {
                self.worker.report(ErrorCategory::Files, || why);
                self.error(StatusCode::NOT_FOUND).await
            }
            Ok(Err(GenerateError::Failed(why))) => {
                self.worker.report(ErrorCategory::Files, || why);
                self.error(StatusCode::INTERNAL_SERVER_ERROR).await
            }
            Err(failure) => self.failed(failure).await,
        }
    }

    /// Generates the body on the pool. The number of such calls and their memory are bounded.
    async fn generate(
        &self,
        root: &Path,
        place: OwnedSemaphorePermit,
    ) -> Result<Result<GeneratedBody, GenerateError>, FileError> {
        let shared = &self.worker.shared;
        let Some(generator) = shared.generator.clone() else { return Ok(Err(GenerateError::NotFound)) };
        let mut charge = shared.listings.budget().charge(self.plan.limits.listing_bytes);
        charge.grow_to(BODY_BYTES_MAX)?;
        let (root, query) = (root.to_owned(), self.request.uri.query().unwrap_or_default().to_owned());
        let accepted = AcceptedCodings::parse(self.headers.accept_encoding.as_deref());
        let coding = accepted.best(&self.site.codings);
        let compress_min = self.site.compress.min_bytes;
        let run = move || {
            let _place = place;
            let mut answer = generator.answer(&root, &query)?;
            let body = std::mem::take(&mut answer.body).into_bytes();
            if body.len() > BODY_BYTES_MAX {
                return Err(GenerateError::Failed("a generated body is too long".to_owned()));
            }
            let coding = coding.filter(|_| body.len() as u64 >= compress_min);
            let coded =
                coding.and_then(|coding| Some((compress::smaller(coder(coding), &body).ok()??, coding)));
            let (body, coding) = coded.map_or((body, None), |(coded, coding)| (coded, Some(coding)));
            Ok(GeneratedBody { answer, bytes: charge.attach(body), coding })
        };
        let pool = self.worker.files.pool().clone();
        Ok(pool.run(self.peer.client, GENERATED, run).await?)
    }

    fn with_body(&self, GeneratedBody { answer: generated, bytes, coding }: GeneratedBody) -> Answer {
        let mut answer = Answer { content: Content::Long(bytes), ..Answer::empty(StatusCode::OK) }
            .with(header::CONTENT_TYPE, HeaderValue::from_static(generated.content_type))
            .with(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
            // It has the names of files, and the next one may be of another inventory.
            .with(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let policy = generated.policy.and_then(|policy| HeaderValue::try_from(policy).ok());
        if let Some(policy) = policy {
            answer.fields.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        if let Some(coding) = coding {
            answer.fields.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.token()));
        }
        let mut answer = self.with_site_headers(answer, b"");
        if !self.site.codings.is_empty() {
            answer.fields.append(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        answer
    }
}
