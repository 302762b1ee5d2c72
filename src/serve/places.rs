//! Places for connections: of all, and of each address, which may have half of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The open connections, by the network of their client.
#[derive(Clone, Default)]
pub struct Places {
    open: Arc<Mutex<HashMap<u128, usize>>>,
}

/// The place of a connection, which is free when it is dropped.
pub struct Place {
    places: Places,
    network: u128,
}

impl Places {
    /// A place for a connection of this client, if it and all have fewer than they may; `most` is for all. Clients of a Unix socket count
    /// as one.
    pub fn take(&self, client: Option<IpAddr>, most: usize) -> Option<Place> {
        let network = client.map_or(0, network);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = open.values().sum();
        let own = open.get(&network).copied().unwrap_or_default();
        // A Unix socket has no addresses to tell clients apart: what stands before it does.
        let most_own = if client.is_none() { most } else { most.div_ceil(2) };
        if all >= most || own >= most_own {
            return None;
        }
        open.insert(network, own + 1);
        Some(Place { places: self.clone(), network })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.places.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(&self.network) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(open.remove(&self.network)),
        }
    }
}

/// One client usually has a whole /64 network.
fn network(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits() >> 64 << 64 | 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_leaves_half_of_the_places_to_others() {
        let places = Places::default();
        let address = |last: u8| Some(IpAddr::from([10, 0, 0, last]));
        let held: Vec<Place> = (0..9).filter_map(|_| places.take(address(1), 4)).collect();
        assert_eq!(held.len(), 2);
        let other = places.take(address(2), 4).unwrap();
        assert!(places.take(address(3), 4).is_some());
        drop(held);
        assert!(places.take(address(1), 4).is_some());
        drop(other);
        assert!(places.open.lock().unwrap().is_empty());
        // All addresses of one /64 are one; a Unix socket has all places.
        let six = |last: u16| Some(IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]));
        let held: Vec<Place> = (0..9).filter_map(|last| places.take(six(last), 4)).collect();
        assert_eq!(held.len(), 2);
        drop(held);
        let held: Vec<Place> = (0..9).filter_map(|_| places.take(None, 4)).collect();
        assert_eq!(held.len(), 4);
    }
}
