//! Places for work that waits or runs: how many there are in all, and for one client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlaceRefusal {
    /// All places are taken: 503.
    Full,
    /// The client has as many as one may have: 429.
    ClientFull,
}

/// The client that has a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlaceClient {
    /// The client's key in fair queues.
    pub(crate) key: u64,
    /// Whether it may be many clients, perhaps behind a proxy. These are limited all together only.
    pub(crate) are_many: bool,
}

/// The places of all workers, as the number that each client has. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(Arc<Mutex<HashMap<u64, usize>>>);

impl Places {
    /// Returns one of `all` places, of which a client has at most the `part`-th part.
    pub(crate) fn enter(&self, client: PlaceClient, all: usize, part: usize) -> Result<Place, PlaceRefusal> {
        let mut places = self.lock();
        // The map has an entry for each client with a place, so its sum is as short as it is
        // bounded.
        if places.values().sum::<usize>() >= all {
            return Err(PlaceRefusal::Full);
        }
        let own = places.get(&client.key).copied().unwrap_or(0);
        if !client.are_many && own >= all.div_ceil(part) {
            return Err(PlaceRefusal::ClientFull);
        }
        places.insert(client.key, own + 1);
        Ok(Place { places: self.clone(), client: client.key })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place. It is free when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    client: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.places.lock();
        match places.get_mut(&self.client) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(places.remove(&self.client)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_limited_for_a_client_and_in_all() {
        let places = Places::default();
        let enter = |client| places.enter(PlaceClient { key: client, are_many: false }, 16, 8);
        let first = [enter(1).unwrap(), enter(1).unwrap()];
        assert_eq!(enter(1).unwrap_err(), PlaceRefusal::ClientFull);
        let others: Vec<_> =
            (2..9).flat_map(|client| [enter(client).unwrap(), enter(client).unwrap()]).collect();
        assert_eq!(enter(9).unwrap_err(), PlaceRefusal::Full);
        drop(first);
        let again = enter(1).unwrap();
        drop((others, again));
        assert!(places.lock().is_empty());
    }

    #[test]
    fn many_clients_behind_one_share_all_places() {
        let places = Places::default();
        let enter = || places.enter(PlaceClient { key: 7, are_many: true }, 16, 8);
        let _held: Vec<_> = (0..16).map(|_| enter().unwrap()).collect();
        assert_eq!(enter().unwrap_err(), PlaceRefusal::Full);
    }
}
