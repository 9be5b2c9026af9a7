//! Keys that are an address and a port.

use std::net::SocketAddr;

use carma_core::{Checker, KeyInfo, Kind, Setting};

/// An address and a port to listen on.
pub(super) struct Address;

impl Setting for Address {
    type Written = SocketAddr;
    type Value = SocketAddr;
    const KIND: Kind = Kind::Other("an address and port, such as 127.0.0.1:7070");

    fn read(written: &SocketAddr, _: Option<&SocketAddr>, _: &KeyInfo, _: &mut Checker) -> Option<SocketAddr> {
        Some(*written)
    }

    fn write(value: &SocketAddr) -> Option<SocketAddr> {
        Some(*value)
    }
}
