//! The limits on responses that the program generates.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::places::{PlaceClient, PlaceRefusal, Places};

/// The most answers that are generated, or wait for the pool, at a time.
const GENERATED_MAX: usize = 16;
/// The most requests that wait for one of these places, and the part of them that is of one client.
const WAITING_MAX: usize = 256;
const CLIENT_PART: usize = 4;

/// The places of answers that are being generated, and of requests that wait for one, in their
/// order.
#[derive(Debug)]
pub(crate) struct GeneratedPlaces {
    places: Arc<Semaphore>,
    waiting: Places,
}

impl Default for GeneratedPlaces {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(GENERATED_MAX)), waiting: Places::default() }
    }
}

impl GeneratedPlaces {
    /// Waits for a place, which is free again when the result is dropped.
    ///
    /// # Errors
    /// If too many requests wait, in all or of the client.
    pub(crate) async fn enter(&self, client: PlaceClient) -> Result<OwnedSemaphorePermit, PlaceRefusal> {
        let _waiting = self.waiting.enter(client, WAITING_MAX, CLIENT_PART)?;
        Arc::clone(&self.places).acquire_owned().await.map_err(|_closed| PlaceRefusal::Full)
    }
}
