//! Limits the number of connections: in total, and per user or address. Some are reserved for operators, so that they can act when users have
//! taken the rest.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The owner of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ConnectionOwner {
    /// A user of this machine.
    User(u32),
    /// A client at this address.
    Address(IpAddr),
}

/// The limits, and the connections in use.
#[derive(Debug)]
pub(super) struct ConnectionLimit {
    most: usize,
    most_of_one: usize,
    /// For operators, in addition.
    reserved: usize,
    taken: Mutex<HashMap<ConnectionOwner, usize>>,
}

/// The right to a connection, until it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    of: ConnectionOwner,
    limit: Arc<ConnectionLimit>,
}

/// The slot of a connection, shared with the terminal that an upgraded connection becomes.
#[derive(Debug, Clone)]
pub(super) struct SharedSlot(Arc<Mutex<ConnectionSlot>>);

impl SharedSlot {
    pub(super) fn new(slot: ConnectionSlot) -> Self {
        Self(Arc::new(Mutex::new(slot)))
    }

    /// Gives the slot of an address back for one of a user, whose name is known now. False if the user has too many.
    pub(super) fn move_to(&self, limit: &Arc<ConnectionLimit>, user: u32) -> bool {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = ConnectionOwner::User(user);
        if slot.of == of {
            return true;
        }
        limit.take(of).map(|taken| *slot = taken).is_some()
    }
}

impl ConnectionLimit {
    pub(super) fn new(most: usize, most_of_one: usize, reserved: usize) -> Arc<Self> {
        Arc::new(Self { most, most_of_one, reserved, taken: Mutex::default() })
    }

    /// Takes a slot, if one is free.
    pub(super) fn take(self: &Arc<Self>, of: ConnectionOwner) -> Option<ConnectionSlot> {
        self.take_of(of, self.most, self.most_of_one)
    }

    /// Takes a slot for an operator: a reserved one if need be.
    pub(super) fn take_reserved(self: &Arc<Self>, of: ConnectionOwner) -> Option<ConnectionSlot> {
        self.take_of(of, self.most + self.reserved, self.most_of_one + self.reserved)
    }

    fn take_of(self: &Arc<Self>, of: ConnectionOwner, most: usize, most_of_one: usize) -> Option<ConnectionSlot> {
        let mut taken = self.taken();
        if taken.values().sum::<usize>() >= most || taken.get(&of).is_some_and(|own| *own >= most_of_one) {
            return None;
        }
        *taken.entry(of).or_default() += 1;
        Some(ConnectionSlot { of, limit: Arc::clone(self) })
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<ConnectionOwner, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut taken = self.limit.taken();
        if let Some(own) = taken.get_mut(&self.of) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_counts_for_its_address_until_its_user_is_known() {
        let (unknown, known) = (ConnectionLimit::new(1, 1, 0), ConnectionLimit::new(2, 1, 0));
        let address = ConnectionOwner::Address(std::net::Ipv4Addr::LOCALHOST.into());
        let first = SharedSlot::new(unknown.take(address).unwrap());
        assert!(unknown.take(address).is_none());
        assert!(first.move_to(&known, 7) && first.move_to(&known, 7), "once for many requests");
        let second = SharedSlot::new(unknown.take(address).unwrap());
        assert!(!second.move_to(&known, 7) && second.move_to(&known, 8), "another user on the same connection");
        drop((first, second));
        assert!(unknown.taken().is_empty() && known.taken().is_empty());
    }

    #[test]
    fn no_user_takes_all_connections_and_closed_ones_are_free_again() {
        let limit = ConnectionLimit::new(3, 2, 1);
        let (alice, bob) = (ConnectionOwner::User(1), ConnectionOwner::User(2));
        let first = limit.take(alice).unwrap();
        let _second = limit.take(alice).unwrap();
        assert!(limit.take(alice).is_none());
        let _third = limit.take(bob).unwrap();
        assert!(limit.take(bob).is_none(), "all three are taken");
        let fourth = limit.take_reserved(ConnectionOwner::User(0)).unwrap();
        assert!(limit.take_reserved(ConnectionOwner::User(0)).is_none(), "and the one that is reserved for operators");
        drop((first, fourth));
        assert!(limit.take(bob).is_some());
        assert_eq!(limit.taken().len(), 2);
    }
}
