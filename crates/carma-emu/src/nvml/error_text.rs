//! NVML's texts of its error numbers.

use std::ffi::{CStr, c_char};

use nvml_wrapper_sys::bindings::nvmlReturn_t;

/// The texts by number, from 0.
const MESSAGES: [&CStr; 28] = [
    c"Success",
    c"Uninitialized",
    c"Invalid Argument",
    c"Not Supported",
    c"Insufficient Permissions",
    c"Already Initialized",
    c"Not Found",
    c"Insufficient Size",
    c"Insufficient External Power",
    c"Driver Not Loaded",
    c"Timeout",
    c"Interrupt Request Issue",
    c"NVML Shared Library Not Found",
    c"Function Not Found",
    c"Corrupted infoROM",
    c"GPU is lost",
    c"GPU requires reset",
    c"The operating system has blocked the request.",
    c"RM has detected an NVML/RM version mismatch.",
    c"In use by another client",
    c"Insufficient Memory",
    c"No data",
    c"The requested vgpu operation is not available on target device, because ECC is enabled",
    c"Ran out of critical resources, other than memory",
    c"Ran out of critical resources, other than memory",
    c"Argument version mismatch",
    c"Deprecated",
    c"Not Ready",
];

#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(code: nvmlReturn_t) -> *const c_char {
    MESSAGES.get(code as usize).unwrap_or(&c"Unknown Error").as_ptr()
}
