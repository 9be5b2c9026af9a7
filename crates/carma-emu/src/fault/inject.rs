//! Faults are injected, last and are cleared.

use bytemuck::Zeroable;
use nvml_wrapper_sys::bindings as nvml;

use super::{CallAnswer, Fault, FaultError, NvmlCode, ThrottleReason};
use crate::state::{CallFault, ContextRecord, EventRecord, NONE, Place, State, Text};

/// NVML's bits for events, and NVIDIA's numbers of the driver's reports.
const CORRECTED_EVENT: u64 = nvml::nvmlEventTypeSingleBitEccError as u64;
const UNCORRECTED_EVENT: u64 = nvml::nvmlEventTypeDoubleBitEccError as u64;
const XID_EVENT: u64 = nvml::nvmlEventTypeXidCriticalError as u64;
const XID_LOST: u64 = 79;
const XID_UNCORRECTED: u64 = 48;
/// CUDA's error numbers of programs under these faults.
const LAUNCH_FAILURE: u32 = 719;
const ECC_UNCORRECTABLE: u32 = 214;

impl Fault {
    /// Lets it happen.
    pub fn inject(&self, state: &mut State<'_>) -> Result<(), FaultError> {
        match self {
            Self::Lost { gpu } => {
                state.gpus[*gpu].lost = 1;
                fail(state, |context| context.gpu as usize == *gpu, LAUNCH_FAILURE);
                report(state, *gpu, XID_EVENT, XID_LOST);
            }
            Self::Xid { gpu, code, pid } => {
                if let Some(pid) = *pid {
                    let error = application_error(*code).ok_or(FaultError::NotOfAProcess(*code))?;
                    let its = |context: &ContextRecord| (context.gpu as usize, context.pid) == (*gpu, pid);
                    if fail(state, its, error) == 0 {
                        return Err(FaultError::NoSuchProcess { pid, gpu: *gpu });
                    }
                }
                report(state, *gpu, XID_EVENT, *code);
            }
            Self::Ecc { gpu, .. } if !state.profile(*gpu).facts.ecc => return Err(FaultError::NoEcc(*gpu)),
            Self::Ecc { gpu, corrected: true, count } => {
                state.gpus[*gpu].ecc_corrected += count;
                report(state, *gpu, CORRECTED_EVENT, 0);
            }
            Self::Ecc { gpu, corrected: false, count } => {
                state.gpus[*gpu].ecc_uncorrected += count;
                fail(state, |context| context.gpu as usize == *gpu, ECC_UNCORRECTABLE);
                report(state, *gpu, UNCORRECTED_EVENT, 0);
                report(state, *gpu, XID_EVENT, XID_UNCORRECTED);
            }
            Self::Call { gpu, call, answer } => {
                let free = state.faults.iter_mut().find(|fault| fault.used == 0).ok_or(FaultError::TooMany)?;
                let code = if let CallAnswer::Fails(code) = answer { code.number() } else { 0 };
                let (gpu, call) = (gpu.map_or(NONE, |gpu| gpu as u32), Text::new(call.as_deref().unwrap_or_default()));
                (free.used, free.gpu, free.code, free.call) = (1, gpu, code, call);
            }
            Self::Throttle { gpu, reason } => state.gpus[*gpu].throttle = reason.bits(),
            Self::Leak { gpu, bytes } => {
                let free = state.memory(Place::gpu(*gpu)).free();
                if *bytes > free {
                    return Err(FaultError::TooLargeALeak { gpu: *gpu, free });
                }
                state.gpus[*gpu].leaked += bytes;
            }
        }
        state.touch();
        Ok(())
    }

    /// All active faults, in the order of GPUs.
    pub fn active(state: &State<'_>) -> Vec<Self> {
        let of_gpu = |gpu: usize| {
            let record = &state.gpus[gpu];
            let lost = (record.lost != 0).then_some(Self::Lost { gpu });
            let ecc = [(true, record.ecc_corrected), (false, record.ecc_uncorrected)];
            let ecc = ecc.into_iter().filter(|(_, count)| *count > 0).map(move |(corrected, count)| Self::Ecc { gpu, corrected, count });
            let leak = (record.leaked > 0).then_some(Self::Leak { gpu, bytes: record.leaked });
            let reason = ThrottleReason::ALL.into_iter().find(|reason| reason.bits() == record.throttle);
            let throttle = reason.map(|reason| Self::Throttle { gpu, reason });
            lost.into_iter().chain(ecc).chain(throttle).chain(leak)
        };
        let calls = state.faults.iter().filter(|fault| fault.used != 0).map(|fault| Self::Call {
            gpu: (fault.gpu != NONE).then_some(fault.gpu as usize),
            call: Some(fault.call.get()).filter(|call| !call.is_empty()).map(str::to_owned),
            answer: NvmlCode::from_number(fault.code).map_or(CallAnswer::Hangs, CallAnswer::Fails),
        });
        (0..state.gpus.len()).flat_map(of_gpu).chain(calls).collect()
    }
}

/// A lost GPU comes back empty.
pub fn recover_gpu(state: &mut State<'_>, gpu: usize) {
    state.gpus[gpu].lost = 0;
    state.touch();
}

/// Clears all active faults, or those of one GPU. Errors that programs already met remain.
pub fn clear(state: &mut State<'_>, gpu: Option<usize>) {
    for mended in gpu.map_or(0..state.gpus.len(), |gpu| gpu..gpu + 1) {
        let record = &mut state.gpus[mended];
        (record.ecc_corrected, record.ecc_uncorrected, record.leaked, record.throttle) = (0, 0, 0, 0);
        recover_gpu(state, mended);
    }
    let its = |fault: &&mut CallFault| gpu.is_none_or(|gpu| fault.gpu as usize == gpu);
    state.faults.iter_mut().filter(its).for_each(|fault| *fault = CallFault::zeroed());
}

/// The next call of these processes returns a CUDA error. Returns the number of affected contexts.
fn fail(state: &mut State<'_>, selected: impl Fn(&ContextRecord) -> bool, error: u32) -> usize {
    state.contexts_mut().iter_mut().filter(|context| selected(context)).map(|context| (context.fault, context.busy) = (error, 0)).count()
}

fn report(state: &mut State<'_>, gpu: usize, kind: u64, data: u64) {
    state.report(EventRecord { gpu: gpu as u32, instance: NONE, kind, data });
}

/// The CUDA error of a program that caused an Xid itself.
const fn application_error(xid: u64) -> Option<u32> {
    match xid {
        13 => Some(715),
        31 => Some(700),
        43 => Some(LAUNCH_FAILURE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{find_gpu, mps_server};
    use super::*;
    use crate::profile::Profile;
    use crate::state::{ContextKind, GpuRecord, SharedState, started};

    /// Three GPUs, the last without ECC, and this process on the second.
    fn machine(folder: &std::path::Path) -> SharedState {
        let gpu = |(place, kind): (usize, &str)| {
            let kind = carma_sim::GpuType::find(kind).unwrap();
            GpuRecord { uuid: Text::new(&format!("GPU-{place}")), profile: Profile::place(kind) as u32, ..GpuRecord::zeroed() }
        };
        let gpus: Vec<GpuRecord> = ["A100-40GB", "A100-40GB", "RTX-3090-24GB"].into_iter().enumerate().map(gpu).collect();
        let machine = SharedState::create(&folder.join("state"), &gpus, 1.0).unwrap();
        let pid = std::process::id();
        let context = ContextRecord { pid, gpu: 1, bytes: 1 << 30, busy: 1, ..ContextRecord::new(ContextKind::Compute) };
        machine.with(|state| state.attach(context, started(pid).unwrap())).unwrap().unwrap();
        machine
    }

    fn events(state: &State<'_>) -> Vec<(u32, u64, u64)> {
        let all = (0..).map_while(|number| state.event_from(number)).map(|(_, event)| event);
        all.map(|event| (event.gpu, event.kind, event.data)).collect()
    }

    #[test]
    fn faults_last_until_cleared_and_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let hang = Fault::Call { gpu: Some(0), call: Some("nvmlDeviceGetName".to_owned()), answer: CallAnswer::Hangs };
        let error = Fault::Call { gpu: None, call: None, answer: CallAnswer::Fails("not_supported".parse().unwrap()) };
        let all = [
            Fault::Lost { gpu: 0 },
            Fault::Ecc { gpu: 1, corrected: true, count: 7 },
            Fault::Ecc { gpu: 1, corrected: false, count: 1 },
            Fault::Throttle { gpu: 2, reason: ThrottleReason::Thermal },
            Fault::Leak { gpu: 2, bytes: 4 << 30 },
            hang.clone(),
            error.clone(),
        ];
        let check = |state: &mut State<'_>| {
            for fault in &all {
                fault.inject(state).unwrap();
            }
            assert_eq!(Fault::active(state), all);
            assert_eq!(events(state), [(0, 8, 79), (1, 1, 0), (1, 2, 0), (1, 8, 48)]);
            assert_eq!((state.contexts()[0].fault, state.contexts()[0].busy), (214, 0), "programs there fail");
            assert_eq!(state.memory(Place::gpu(2)).used, 4 << 30);
            clear(state, Some(0));
            assert!(!Fault::active(state).contains(&hang), "it was about this GPU alone");
            assert!(Fault::active(state).contains(&error), "and this one about all");
            clear(state, None);
            assert_eq!(Fault::active(state), []);
        };
        machine(folder.path()).with(check).unwrap();
    }

    #[test]
    fn an_xid_can_be_a_process_own_fault() {
        let folder = tempfile::tempdir().unwrap();
        let pid = std::process::id();
        let check = |state: &mut State<'_>| {
            let xid = |gpu, code, pid| Fault::Xid { gpu, code, pid };
            assert_eq!(xid(1, 79, Some(pid)).inject(state), Err(FaultError::NotOfAProcess(79)));
            assert_eq!(xid(0, 31, Some(pid)).inject(state), Err(FaultError::NoSuchProcess { pid, gpu: 0 }));
            assert_eq!(events(state), []);
            xid(1, 13, None).inject(state).unwrap();
            assert_eq!(state.contexts()[0].fault, 0, "no process is at fault");
            xid(1, 31, Some(pid)).inject(state).unwrap();
            assert_eq!(state.contexts()[0].fault, 700);
            assert_eq!(events(state), [(1, 8, 13), (1, 8, 31)]);
        };
        machine(folder.path()).with(check).unwrap();
    }

    #[test]
    fn a_lost_gpu_comes_back_without_what_was_on_it() {
        let folder = tempfile::tempdir().unwrap();
        let check = |state: &mut State<'_>| {
            Fault::Lost { gpu: 1 }.inject(state).unwrap();
            recover_gpu(state, 1);
            assert_eq!((state.gpus[1].lost, state.contexts()[0].fault), (0, 719));
        };
        machine(folder.path()).with(check).unwrap();
    }

    #[test]
    fn impossible_faults_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let check = |state: &mut State<'_>| {
            assert_eq!(find_gpu(state, "2"), Ok(2));
            assert_eq!(find_gpu(state, state.gpus[1].uuid.get()), Ok(1));
            assert!(find_gpu(state, "3").unwrap_err().to_string().starts_with("GPU 3 does not exist: give a number from 0 to 2 or a UUID"));
            let ecc = Fault::Ecc { gpu: 2, corrected: true, count: 1 };
            assert_eq!(ecc.inject(state), Err(FaultError::NoEcc(2)));
            let leak = Fault::Leak { gpu: 0, bytes: 1 << 40 };
            assert_eq!(leak.inject(state).unwrap_err().to_string(), "GPU 0 has only 40536 MiB left to leak");
            assert_eq!(mps_server(state, 0), Err(FaultError::NoMpsServer(0)));
            let hang = Fault::Call { gpu: None, call: None, answer: CallAnswer::Hangs };
            while Fault::active(state).len() < state.faults.len() {
                hang.inject(state).unwrap();
            }
            assert_eq!(hang.inject(state), Err(FaultError::TooMany));
        };
        machine(folder.path()).with(check).unwrap();
    }
}
