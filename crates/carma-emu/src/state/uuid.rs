//! UUIDs of emulated devices.

/// A UUID (version 8) that is the same for the same name.
pub(crate) fn uuid(name: &str) -> String {
    let hash = |seed: u64| name.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3).rotate_left(23));
    let (high, low) = (hash(0xCBF2_9CE4_8422_2325), hash(0x9E37_79B9_7F4A_7C15));
    let (a, b, c) = (high >> 32, high >> 16 & 0xFFFF, high & 0x0FFF);
    format!("{a:08x}-{b:04x}-8{c:03x}-{:04x}-{:012x}", low >> 48 & 0x3FFF | 0x8000, low & 0xFFFF_FFFF_FFFF)
}
