//! The library as a whole: it is opened, used and shut down.

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nvml_wrapper_sys::bindings::nvmlReturn_t;

use super::answer::{Answer, Code, finish, of_system, put, put_text};
use super::declare::{aliases, calls};
use super::{events, gpm};
use crate::driver_version::DriverVersion;
use crate::machine::Machine;
use crate::state::State;

/// The driver that the machine plays.
const fn played(state: &State<'_>) -> DriverVersion {
    DriverVersion::from_number(state.header.driver)
}

/// The machine, and how often the library was opened.
static OPEN: Mutex<(Option<Arc<Machine>>, u32)> = Mutex::new((None, 0));

/// The machine that calls are about.
pub(super) fn machine() -> Answer<Arc<Machine>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner).0.clone().ok_or(Code::UNINITIALIZED)
}

/// The folder of this library's machine, by the path it was loaded from.
pub(crate) fn own_folder() -> Option<PathBuf> {
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

fn shut() -> Answer<()> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.1 = open.1.checked_sub(1).ok_or(Code::UNINITIALIZED)?;
    if open.1 == 0 {
        open.0 = None;
        events::forget();
        gpm::forget();
    }
    Ok(())
}

/// Opens the library, unless a fault is set for the call.
fn init(call: &str) -> nvmlReturn_t {
    let opened = open();
    let answer = opened.and_then(|()| of_system(call, |_| Ok(())));
    if opened.is_ok() && answer.is_err() {
        let _ = shut();
    }
    finish(answer)
}

calls! {
    fn nvmlInit_v2() { init(CALL) }

    fn nvmlInitWithFlags(_flags: c_uint) { init(CALL) }

    fn nvmlShutdown() {
        finish(match of_system(CALL, |_| Ok(())) {
            // Also when the machine is gone.
            Ok(()) | Err(Code::DRIVER_NOT_LOADED) => shut(),
            Err(code) => Err(code),
        })
    }

    fn nvmlSystemGetDriverVersion(version: *mut c_char, room: c_uint) { put_text(version, room, of_system(CALL, |state| Ok(played(state).driver()))) }

    fn nvmlSystemGetNVMLVersion(version: *mut c_char, room: c_uint) { put_text(version, room, of_system(CALL, |state| Ok(played(state).nvml()))) }

    fn nvmlSystemGetCudaDriverVersion(version: *mut c_int) { put(version, of_system(CALL, |state| Ok(played(state).cuda()))) }

    fn nvmlSystemGetProcessName(pid: c_uint, name: *mut c_char, room: c_uint) {
        let answer = of_system(CALL, |_| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).map_err(|_| Code::NOT_FOUND)?;
            let program = line.split(|byte| *byte == 0).next().unwrap_or_default();
            let text = String::from_utf8_lossy(program).into_owned();
            // The driver truncates text that does not fit.
            Ok(text.chars().scan(0, |length, each| { *length += each.len_utf8(); (*length < room as usize).then_some(each) }).collect::<String>())
        });
        put_text(name, room, answer)
    }
}

aliases! {
    nvmlInit() = nvmlInit_v2;
    nvmlSystemGetCudaDriverVersion_v2(version: *mut c_int) = nvmlSystemGetCudaDriverVersion;
}
