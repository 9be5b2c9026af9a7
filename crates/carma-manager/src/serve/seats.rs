//! How many connections there may be at once: of all, and of one user or address, so that nobody takes all of them. Some are kept for operators, who
//! have to see to it when others have taken the rest.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whose connection it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SeatOf {
    /// A user's of this machine.
    User(u32),
    /// One from this address.
    Address(IpAddr),
}

/// Connections there may be.
#[derive(Debug)]
pub(super) struct Seats {
    most: usize,
    most_of_one: usize,
    /// Beside those that anybody may take.
    kept: usize,
    taken: Mutex<HashMap<SeatOf, usize>>,
}

/// The right to a connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    of: SeatOf,
    seats: Arc<Seats>,
}

impl Seats {
    pub(super) fn new(most: usize, most_of_one: usize, kept: usize) -> Arc<Self> {
        Arc::new(Self { most, most_of_one, kept, taken: Mutex::default() })
    }

    /// Takes a seat, if there is one for anybody.
    pub(super) fn take(self: &Arc<Self>, of: SeatOf) -> Option<Seat> {
        self.take_of(of, self.most, self.most_of_one)
    }

    /// Takes a seat for an operator, if there is any.
    pub(super) fn take_kept(self: &Arc<Self>, of: SeatOf) -> Option<Seat> {
        self.take_of(of, self.most + self.kept, self.most_of_one + self.kept)
    }

    fn take_of(self: &Arc<Self>, of: SeatOf, most: usize, most_of_one: usize) -> Option<Seat> {
        let mut taken = self.taken();
        if taken.values().sum::<usize>() >= most || taken.get(&of).is_some_and(|own| *own >= most_of_one) {
            return None;
        }
        *taken.entry(of).or_default() += 1;
        Some(Seat { of, seats: Arc::clone(self) })
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<SeatOf, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken();
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
    fn nobody_takes_all_seats_and_left_ones_are_free_again() {
        let seats = Seats::new(3, 2, 1);
        let (alice, bob) = (SeatOf::User(1), SeatOf::User(2));
        let first = seats.take(alice).unwrap();
        let _second = seats.take(alice).unwrap();
        assert!(seats.take(alice).is_none());
        let _third = seats.take(bob).unwrap();
        assert!(seats.take(bob).is_none(), "all three are taken");
        let fourth = seats.take_kept(SeatOf::User(0)).unwrap();
        assert!(seats.take_kept(SeatOf::User(0)).is_none(), "and the one that is kept for operators");
        drop((first, fourth));
        assert!(seats.take(bob).is_some());
        assert_eq!(seats.taken().len(), 2);
    }
}
