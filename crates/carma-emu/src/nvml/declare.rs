//! Macros that declare calls of the C interface: the name once, and the answer.

/// Calls in full: `fn name(arguments) { what it answers }`. Within it `CALL` is its name, by which faults are set.
macro_rules! calls {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => { $(
        #[unsafe(no_mangle)]
        #[allow(unused_unsafe, reason = "some only set something")]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            const CALL: &str = stringify!($name);
            // SAFETY: pointers are null or what NVML demands of its callers.
            $crate::nvml::answer::guarded(|| unsafe { $body })
        }
    )* };
}

/// Other names of a call: `other(arguments) = name;`
macro_rules! aliases {
    ($($name:ident($($argument:ident: $type:ty),*) = $same:path;)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            // SAFETY: as NVML demands of its callers.
            unsafe { $same($($argument),*) }
        }
    )* };
}

macro_rules! values {
    ($of:ident: $($name:ident($type:ty) = $act:expr;)*) => {
        $crate::nvml::declare::calls! { $(
            fn $name(device: nvml_wrapper_sys::bindings::nvmlDevice_t, out: *mut $type) {
                $crate::nvml::answer::put(out, $crate::nvml::answer::$of(CALL, device, $act))
            }
        )* }
    };
}

/// Calls that answer one value about a device: `name(type) = |state, place| value;`
macro_rules! device_values {
    ($($calls:tt)*) => { $crate::nvml::declare::values! { of_device: $($calls)* } };
}

/// Calls that answer one value about a whole GPU: `name(type) = |state, gpu| value;`
macro_rules! gpu_values {
    ($($calls:tt)*) => { $crate::nvml::declare::values! { of_gpu: $($calls)* } };
}

/// Calls that answer a text about a device: `name = |state, place| text;`
macro_rules! device_texts {
    ($($name:ident = $act:expr;)*) => {
        $crate::nvml::declare::calls! { $(
            fn $name(device: nvml_wrapper_sys::bindings::nvmlDevice_t, out: *mut std::ffi::c_char, room: std::ffi::c_uint) {
                $crate::nvml::answer::put_text(out, room, $crate::nvml::answer::of_device(CALL, device, $act))
            }
        )* }
    };
}

pub(super) use {aliases, calls, device_texts, device_values, gpu_values, values};
