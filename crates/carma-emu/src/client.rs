//! The interface for scripts on emulated GPUs: C functions beside NVML's, for `carma.emu` in Python.
//!
//! A process is one program. Every function returns a status; the error text is in `carmaEmuError`.

#![expect(unsafe_code, unreachable_pub, reason = "a C interface")]

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use carma_core::{Fraction, MiB, Seconds};
use carma_sim::{Catalogue, RankProfile, Workload};
use thiserror::Error;

use crate::cuda::{CudaError, Program, Rank, launch};
use crate::machine::{Machine, MachineError};
use crate::nvml::own_folder;
use crate::train::error_message;

/// Errors of a script.
#[derive(Debug, Error)]
enum ClientError {
    #[error(transparent)]
    Cuda(#[from] CudaError),
    #[error("{name:?} is not a workload of the catalogue{} (`carma catalogue list` has all)", nearest.as_ref().map(|name| format!("; did you mean {name:?}?")).unwrap_or_default())]
    NoSuchWorkload { name: String, nearest: Option<String> },
    #[error("this process uses its GPUs already")]
    Attached,
    #[error("this process uses no GPU")]
    NotAttached,
    #[error("a null pointer was given")]
    Null,
    #[error("the emulation failed")]
    Panicked,
}

impl From<MachineError> for ClientError {
    fn from(error: MachineError) -> Self {
        Self::Cuda(error.into())
    }
}

impl ClientError {
    /// Out of memory, another CUDA error, or an invalid request.
    const fn code(&self) -> c_int {
        match self {
            Self::Cuda(CudaError::OutOfMemory { .. }) => 1,
            Self::Cuda(_) => 2,
            _ => 3,
        }
    }

    fn message(&self) -> String {
        if let Self::Cuda(error) = self { error_message(error) } else { self.to_string() }
    }
}

/// A program and its activity.
struct Client {
    program: Program<'static>,
    ranks: Vec<RankProfile>,
    seconds: Seconds,
}

static CLIENT: Mutex<Option<Client>> = Mutex::new(None);

thread_local! {
    static ERROR: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs a call: returns its status, and keeps the error text.
fn answer(act: impl FnOnce(&mut Option<Client>) -> Result<(), ClientError>) -> c_int {
    let mut client = CLIENT.lock().unwrap_or_else(PoisonError::into_inner);
    let result = catch_unwind(AssertUnwindSafe(|| act(&mut client))).unwrap_or(Err(ClientError::Panicked));
    result.map_or_else(
        |error| {
            ERROR.set(error.message());
            error.code()
        },
        |()| 0,
    )
}

fn with(act: impl FnOnce(&Client) -> Result<(), ClientError>) -> c_int {
    answer(|client| act(client.as_ref().ok_or(ClientError::NotAttached)?))
}

/// Writes an answer to the caller's pointer.
unsafe fn put<T>(out: *mut T, value: T) -> Result<(), ClientError> {
    // SAFETY: the caller gives null or a place for one value.
    unsafe { out.as_mut() }.map(|out| *out = value).ok_or(ClientError::Null)
}

fn attach(client: &mut Option<Client>, workload: Option<&Workload>, ranks: Vec<RankProfile>) -> Result<(), ClientError> {
    if client.is_some() {
        return Err(ClientError::Attached);
    }
    let machine = Machine::open(&own_folder().unwrap_or_else(Machine::default_folder))?;
    let profiles: Vec<Rank<'_>> = ranks.iter().map(|profile| Rank { profile, workload }).collect();
    // It lives as long as the process: a script attaches to its GPUs once or twice.
    let program = launch(Box::leak(Box::new(machine)), &profiles)?;
    let seconds = workload.map_or(Seconds::ZERO, |workload| workload.seconds);
    *client = Some(Client { program, ranks, seconds });
    Ok(())
}

/// Attaches to the GPUs as a workload of the catalogue, by name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carmaEmuAttach(workload: *const c_char) -> c_int {
    answer(|client| {
        if workload.is_null() {
            return Err(ClientError::Null);
        }
        // SAFETY: the caller gives a text with a closing zero.
        let name = unsafe { CStr::from_ptr(workload) }.to_string_lossy();
        let catalogue = Catalogue::shipped();
        let unknown =
            || ClientError::NoSuchWorkload { name: name.clone().into_owned(), nearest: catalogue.nearest(&name).map(str::to_owned) };
        let workload = catalogue.get(catalogue.find(&name).ok_or_else(unknown)?);
        attach(client, Some(workload), workload.ranks.clone())
    })
}

/// Attaches to one GPU with its own peak in bytes, SMACT, SMOCC, DRAMA and GPU utilisation.
#[unsafe(no_mangle)]
pub extern "C" fn carmaEmuAttachAs(peak: u64, smact: f64, smocc: f64, drama: f64, utilisation: f64) -> c_int {
    let [smact, smocc, drama, utilisation] = [smact, smocc, drama, utilisation].map(Fraction::clamped);
    answer(|client| attach(client, None, vec![RankProfile { peak: MiB(peak >> 20), smact, smocc, drama, utilisation, power: None }]))
}

/// Leaves the GPUs.
#[unsafe(no_mangle)]
pub extern "C" fn carmaEmuDetach() -> c_int {
    answer(|client| {
        *client = None;
        Ok(())
    })
}

/// The number of its GPUs, and its seconds alone if it is a workload of the catalogue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carmaEmuWorkload(gpus: *mut u32, seconds: *mut f64) -> c_int {
    with(|client| {
        // SAFETY: the caller gives places for both.
        unsafe { put(gpus, client.ranks.len() as u32).and_then(|()| put(seconds, client.seconds.get())) }
    })
}

/// The memory it holds on a GPU and its peak there, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carmaEmuMemory(gpu: u32, held: *mut u64, peak: *mut u64) -> c_int {
    with(|client| {
        let most = client.ranks.get(gpu as usize).ok_or(CudaError::from_code(101))?.peak.0 << 20;
        let now = client.program.held(gpu as usize)?;
        // SAFETY: the caller gives places for both.
        unsafe { put(held, now).and_then(|()| put(peak, most)) }
    })
}

/// Sets the memory held on a GPU to this many bytes: allocates or frees the difference.
#[unsafe(no_mangle)]
pub extern "C" fn carmaEmuHold(gpu: u32, bytes: u64) -> c_int {
    with(|client| Ok(client.program.hold(gpu as usize, bytes)?))
}

/// Begins or ends running kernels.
#[unsafe(no_mangle)]
pub extern "C" fn carmaEmuRun(busy: c_int) -> c_int {
    with(|client| Ok(client.program.run(busy != 0)?))
}

/// Seconds of work done so far, and the present rate per second.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carmaEmuWork(done: *mut f64, rate: *mut f64) -> c_int {
    with(|client| {
        let (work, speed) = client.program.work()?;
        // SAFETY: the caller gives places for both.
        unsafe { put(done, work).and_then(|()| put(rate, speed)) }
    })
}

/// Emulated seconds since the machine was made, and how many pass per real second.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carmaEmuNow(now: *mut f64, speed: *mut f64) -> c_int {
    with(|client| {
        let (time, factor) = client.program.clock()?;
        // SAFETY: the caller gives places for both.
        unsafe { put(now, time).and_then(|()| put(speed, factor)) }
    })
}

/// The text of this thread's last error, truncated to the given room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carmaEmuError(text: *mut c_char, room: usize) {
    if text.is_null() || room == 0 {
        return;
    }
    ERROR.with_borrow(|error| {
        let length = error.len().min(room - 1);
        // SAFETY: the caller gives room for that many characters.
        let out = unsafe { std::slice::from_raw_parts_mut(text.cast::<u8>(), length + 1) };
        out[..length].copy_from_slice(&error.as_bytes()[..length]);
        out[length] = 0;
    });
}
