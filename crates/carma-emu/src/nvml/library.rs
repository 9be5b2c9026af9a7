//! The library as a whole: it is opened, used and shut down.

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nvml_wrapper_sys::bindings::nvmlReturn_t;

use super::answer::{Answer, Code, finish, of_system, put, put_text};
use crate::machine::Machine;

/// What we claim to be: the driver whose interface this follows, marked as emulated in the text that people see.
pub(crate) const DRIVER: &str = "575.57.08";
const NVML: &str = "12.575.57.08";
/// CUDA 12.9.
pub(crate) const CUDA: c_int = 12_090;

/// The machine, and how often the library was opened.
static OPEN: Mutex<(Option<Arc<Machine>>, u32)> = Mutex::new((None, 0));

/// The machine that calls are about.
pub(super) fn machine() -> Answer<Arc<Machine>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner).0.clone().ok_or(Code::UNINITIALIZED)
}

/// The folder of the machine this library lies in, by where it was loaded from.
fn own_folder() -> Option<PathBuf> {
    let address: *const () = own_folder as fn() -> Option<PathBuf> as *const ();
    // SAFETY: the address is one of ours, and what is found out about it stays valid while we are loaded.
    let file = unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(address.cast(), &raw mut found) == 0 || found.dli_fname.is_null() {
            return None;
        }
        CStr::from_ptr(found.dli_fname).to_owned()
    };
    let folder = Path::new(OsStr::from_bytes(file.as_bytes())).parent()?.parent()?.to_owned();
    folder.join("state").exists().then_some(folder)
}

fn open() -> Answer<()> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if open.0.is_none() {
        let folder = own_folder().unwrap_or_else(Machine::default_folder);
        let machine = Machine::open(&folder).map_err(|_| Code::DRIVER_NOT_LOADED)?;
        open.0 = Some(Arc::new(machine));
    }
    open.1 += 1;
    Ok(())
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> nvmlReturn_t {
    finish(open().and_then(|()| of_system("nvmlInit_v2", |_| Ok(()))))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> nvmlReturn_t {
    finish(open().and_then(|()| of_system("nvmlInitWithFlags", |_| Ok(()))))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> nvmlReturn_t {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if open.1 == 0 {
        return Code::UNINITIALIZED.0;
    }
    open.1 -= 1;
    if open.1 == 0 {
        open.0 = None;
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(version: *mut c_char, length: c_uint) -> nvmlReturn_t {
    // SAFETY: as NVML demands of its callers.
    unsafe { put_text(version, length, of_system("nvmlSystemGetDriverVersion", |_| Ok(DRIVER))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetNVMLVersion(version: *mut c_char, length: c_uint) -> nvmlReturn_t {
    // SAFETY: as NVML demands of its callers.
    unsafe { put_text(version, length, of_system("nvmlSystemGetNVMLVersion", |_| Ok(NVML))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetCudaDriverVersion(version: *mut c_int) -> nvmlReturn_t {
    // SAFETY: as NVML demands of its callers.
    unsafe { put(version, of_system("nvmlSystemGetCudaDriverVersion", |_| Ok(CUDA))) }
}
