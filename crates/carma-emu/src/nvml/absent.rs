//! Calls that exist, and answer "not supported": values that no model gives are not made up.

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

use super::answer::{Answer, Code, finish, guarded, of_device, of_system};

/// Callers pass more arguments, which C does not let us read.
macro_rules! absent {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(device: nvmlDevice_t) -> nvmlReturn_t {
            guarded(|| finish(of_device(stringify!($name), device, |_, _| -> Answer<()> { Err(Code::NOT_SUPPORTED) })))
        }
    )* };
}

macro_rules! absent_of_system {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> nvmlReturn_t {
            guarded(|| finish(of_system(stringify!($name), |_| -> Answer<()> { Err(Code::NOT_SUPPORTED) })))
        }
    )* };
}

absent! {
    // PCIe traffic.
    nvmlDeviceGetPcieThroughput
    // Only Windows has driver models.
    nvmlDeviceGetDriverModel_v2 nvmlDeviceGetDriverModel nvmlDeviceSetDriverModel
    // Accounting of processes that have ended.
    nvmlDeviceGetAccountingStats nvmlDeviceGetAccountingPids nvmlDeviceGetAccountingBufferSize nvmlDeviceSetAccountingMode
    nvmlDeviceClearAccountingPids
    // Setting clocks.
    nvmlDeviceSetApplicationsClocks nvmlDeviceResetApplicationsClocks nvmlDeviceSetGpuLockedClocks nvmlDeviceResetGpuLockedClocks
    nvmlDeviceSetMemoryLockedClocks nvmlDeviceResetMemoryLockedClocks nvmlDeviceGetAutoBoostedClocksEnabled
    nvmlDeviceSetAutoBoostedClocksEnabled nvmlDeviceGetGpcClkVfOffset nvmlDeviceSetGpcClkVfOffset nvmlDeviceGetMemClkVfOffset
    nvmlDeviceSetMemClkVfOffset nvmlDeviceGetClockOffsets nvmlDeviceSetClockOffsets nvmlDeviceGetAPIRestriction nvmlDeviceSetAPIRestriction
    // Setting fans.
    nvmlDeviceSetFanSpeed_v2 nvmlDeviceSetDefaultFanSpeed_v2 nvmlDeviceGetFanControlPolicy_v2 nvmlDeviceSetFanControlPolicy
    nvmlDeviceGetFanSpeedRPM nvmlDeviceSetTemperatureThreshold
    // Parts of boards.
    nvmlDeviceGetInforomVersion nvmlDeviceGetInforomImageVersion nvmlDeviceGetInforomConfigurationChecksum nvmlDeviceValidateInforom
    nvmlDeviceGetBridgeChipInfo nvmlDeviceGetGspFirmwareVersion nvmlDeviceGetGspFirmwareMode nvmlDeviceGetIrqNum
    nvmlDeviceGetMemoryBusWidth nvmlDeviceGetPowerSource nvmlDeviceGetGpuOperationMode nvmlDeviceSetGpuOperationMode
    nvmlDeviceSetEccMode
    // Video.
    nvmlDeviceGetEncoderCapacity nvmlDeviceGetEncoderSessions nvmlDeviceGetFBCStats nvmlDeviceGetFBCSessions
    // CPU affinity.
    nvmlDeviceGetCpuAffinity nvmlDeviceGetCpuAffinityWithinScope nvmlDeviceGetMemoryAffinity nvmlDeviceSetCpuAffinity
    nvmlDeviceClearCpuAffinity nvmlDeviceGetNumaNodeId
    // Virtual machines and confidential computing.
    nvmlDeviceGetVirtualizationMode nvmlDeviceSetVirtualizationMode nvmlDeviceGetConfComputeMemSizeInfo
    nvmlDeviceGetConfComputeProtectedMemoryUsage nvmlDeviceGetGpuFabricInfo nvmlDeviceGetGpuFabricInfoV
    // Traffic on NVLink.
    nvmlDeviceGetNvLinkUtilizationCounter nvmlDeviceGetNvLinkUtilizationControl
    // Streaming profiling.
    nvmlGpmQueryIfStreamingEnabled nvmlGpmSetStreamingEnabled
    nvmlDeviceGetPerformanceModes nvmlDeviceGetPowerMizerMode_v1 nvmlDeviceSetPowerMizerMode_v1 nvmlDeviceGetDynamicPstatesInfo
}

absent_of_system! {
    nvmlSystemGetHicVersion nvmlSystemGetConfComputeCapabilities nvmlSystemGetConfComputeState nvmlSystemGetConfComputeSettings
    nvmlSystemGetNvlinkBwMode nvmlSystemSetNvlinkBwMode nvmlSystemGetTopologyGpuSet nvmlDeviceDiscoverGpus nvmlDeviceModifyDrainState
    nvmlDeviceQueryDrainState nvmlDeviceRemoveGpu nvmlDeviceRemoveGpu_v2 nvmlGetExcludedDeviceInfoByIndex
}
