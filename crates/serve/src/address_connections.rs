//! The open connections of each client address, which the workers count together.
//!
//! Memory grows with the open connections of clients, whose number has a limit of its own. Does not
//! own: which address a connection is counted for, and the end of one that is refused.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::rate::client;

/// The shards of the table, so that workers seldom contend for a lock.
const SHARDS: usize = 16;

/// The table: by client, the number of its connections.
#[derive(Debug, Default)]
pub(crate) struct AddressConnections {
    hasher: RandomState,
    shards: [Mutex<HashMap<IpAddr, usize>>; SHARDS],
}

/// A connection of a client, counted until this guard is dropped.
#[derive(Debug)]
pub(crate) struct AddressConnection {
    table: Arc<AddressConnections>,
    client: IpAddr,
}

impl AddressConnections {
    /// Counts a connection from `address`; `None` if its client has `most` already. Addresses of
    /// an IPv6 /64 are one client.
    pub(crate) fn open(self: &Arc<Self>, address: IpAddr, most: usize) -> Option<AddressConnection> {
        let client = client(address);
        let mut shard = self.shard(client);
        let count = shard.get(&client).copied().unwrap_or_default();
        if count >= most {
            return None;
        }
        shard.insert(client, count + 1);
        drop(shard);
        Some(AddressConnection { table: Arc::clone(self), client })
    }

    fn shard(&self, client: IpAddr) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        let at = usize::try_from(self.hasher.hash_one(client) % SHARDS as u64).unwrap_or_default();
        self.shards[at].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AddressConnection {
    fn drop(&mut self) {
        let mut shard = self.table.shard(self.client);
        match shard.get_mut(&self.client) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(shard.remove(&self.client)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_so_many_connections_and_leaves_nothing_behind() {
        let table = Arc::new(AddressConnections::default());
        let open = |address: &str| table.open(address.parse().unwrap(), 2);
        let (first, second) = (open("192.0.2.1"), open("::ffff:192.0.2.1"));
        assert!(first.is_some() && second.is_some() && open("192.0.2.1").is_none());
        assert!(open("192.0.2.2").is_some(), "another client");
        drop(first);
        let third = open("192.0.2.1");
        assert!(third.is_some() && open("192.0.2.1").is_none());
        let network = [open("2001:db8::1"), open("2001:db8::2:1")];
        assert!(open("2001:db8::3").is_none() && open("2001:db8:0:1::1").is_some());
        drop((second, third, network));
        assert!(table.shards.iter().all(|shard| shard.lock().unwrap().is_empty()));
    }
}
