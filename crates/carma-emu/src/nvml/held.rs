//! Things that callers hold by a handle: sets of events, samples of counters.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::answer::{Answer, Code};

/// Objects by handle. A handle is a number that is never used again, so one that was freed is recognised instead of being followed.
pub(super) struct HandleTable<T>(Mutex<(Option<HashMap<usize, T>>, usize)>);

impl<T: Clone> HandleTable<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new((None, 0)))
    }

    fn all(&self) -> MutexGuard<'_, (Option<HashMap<usize, T>>, usize)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps something, and gives the handle of it.
    pub(super) fn keep<H>(&self, thing: T) -> *mut H {
        let mut all = self.all();
        all.1 += 1;
        let number = all.1;
        all.0.get_or_insert_default().insert(number, thing);
        std::ptr::without_provenance_mut(number)
    }

    /// The value of a handle.
    pub(super) fn get<H>(&self, handle: *mut H) -> Answer<T> {
        self.with(handle, |thing| thing.clone())
    }

    /// Runs a closure on the value of a handle.
    pub(super) fn with<H, R>(&self, handle: *mut H, act: impl FnOnce(&mut T) -> R) -> Answer<R> {
        self.all().0.as_mut().and_then(|all| all.get_mut(&handle.addr())).map(act).ok_or(Code::INVALID_ARGUMENT)
    }

    /// Drops the value of a handle.
    pub(super) fn free<H>(&self, handle: *mut H) -> Answer<()> {
        self.all().0.as_mut().and_then(|all| all.remove(&handle.addr())).map(drop).ok_or(Code::INVALID_ARGUMENT)
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.all().0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_released_handle_is_never_reused() {
        let held = HandleTable::new();
        let (first, second): (*mut u8, *mut u8) = (held.keep("first"), held.keep("second"));
        assert_eq!((held.get(first), held.get(second)), (Ok("first"), Ok("second")));
        assert_eq!(
            (held.free(first), held.free(first), held.get(first)),
            (Ok(()), Err(Code::INVALID_ARGUMENT), Err(Code::INVALID_ARGUMENT))
        );
        assert_ne!(held.keep::<u8>("third"), first);
        held.clear();
        assert_eq!(held.get(second), Err(Code::INVALID_ARGUMENT));
    }
}
