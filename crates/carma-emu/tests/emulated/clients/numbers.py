"""Prints what nvidia-ml-py and nvitop show of each GPU, as JSON."""

import json
import sys

import nvitop
import pynvml as nvml


def answer(call, *arguments):
    """The answer of a call, or nothing where the GPU does not support it."""
    try:
        return call(*arguments)
    except nvml.NVMLError_NotSupported:
        return None


def processes(listed):
    return sorted([process.pid, process.usedGpuMemory] for process in listed)


def by_nvml(index):
    device = nvml.nvmlDeviceGetHandleByIndex(index)
    pci = nvml.nvmlDeviceGetPciInfo(device)
    memory = nvml.nvmlDeviceGetMemoryInfo(device)
    memory_v2 = nvml.nvmlDeviceGetMemoryInfo(device, version=nvml.nvmlMemory_v2)
    busy = answer(nvml.nvmlDeviceGetUtilizationRates, device)
    field = nvml.nvmlDeviceGetFieldValues(device, [nvml.NVML_FI_DEV_POWER_INSTANT])[0]
    return {
        "name": nvml.nvmlDeviceGetName(device),
        "uuid": nvml.nvmlDeviceGetUUID(device),
        "bus": pci.busId,
        "device_id": pci.pciDeviceId,
        "capability": list(nvml.nvmlDeviceGetCudaComputeCapability(device)),
        "architecture": nvml.nvmlDeviceGetArchitecture(device),
        "cores": nvml.nvmlDeviceGetNumGpuCores(device),
        "memory": [memory.total, memory.used, memory.free],
        "memory_v2": [memory_v2.total, memory_v2.reserved, memory_v2.used, memory_v2.free],
        "utilisation": [busy.gpu, busy.memory],
        "decoder": nvml.nvmlDeviceGetDecoderUtilization(device)[0],
        "power": nvml.nvmlDeviceGetPowerUsage(device),
        "power_field": field.value.uiVal,
        "power_limit": nvml.nvmlDeviceGetEnforcedPowerLimit(device),
        "power_limits": list(nvml.nvmlDeviceGetPowerManagementLimitConstraints(device)),
        "energy": nvml.nvmlDeviceGetTotalEnergyConsumption(device),
        "temperature": nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU),
        "temperature_v": nvml.nvmlDeviceGetTemperatureV(device, nvml.NVML_TEMPERATURE_GPU),
        "clocks": [nvml.nvmlDeviceGetClockInfo(device, kind) for kind in (nvml.NVML_CLOCK_SM, nvml.NVML_CLOCK_MEM)],
        "performance_state": nvml.nvmlDeviceGetPerformanceState(device),
        "fan": answer(nvml.nvmlDeviceGetFanSpeed, device),
        "ecc": answer(nvml.nvmlDeviceGetTotalEccErrors, device, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC),
        "compute_mode": nvml.nvmlDeviceGetComputeMode(device),
        "persistence": nvml.nvmlDeviceGetPersistenceMode(device),
        "display": nvml.nvmlDeviceGetDisplayActive(device),
        "compute": processes(nvml.nvmlDeviceGetComputeRunningProcesses(device)),
        "compute_v2": processes(nvml.nvmlDeviceGetComputeRunningProcesses_v2(device)),
        "graphics": processes(nvml.nvmlDeviceGetGraphicsRunningProcesses(device)),
        "clients": processes(nvml.nvmlDeviceGetMPSComputeRunningProcesses(device)),
        "throughput": answer(nvml.nvmlDeviceGetPcieThroughput, device, nvml.NVML_PCIE_UTIL_TX_BYTES),
    }


def shown(value):
    """What nvitop has no number for, it calls NaN-like `N/A`."""
    return None if nvitop.NA == value else value


def by_nvitop(device):
    return {
        "name": device.name(),
        "uuid": device.uuid(),
        "bus": device.bus_id(),
        "memory": [device.memory_total(), device.memory_used(), device.memory_free()],
        "utilisation": [device.gpu_utilization(), device.memory_utilization()],
        "power": device.power_usage(),
        "power_limit": device.power_limit(),
        "temperature": device.temperature(),
        "clocks": [device.sm_clock(), device.memory_clock()],
        "performance_state": device.performance_state(),
        "fan": shown(device.fan_speed()),
        "ecc": shown(device.total_volatile_uncorrected_ecc_errors()),
        "compute_mode": device.compute_mode(),
        "persistence": device.persistence_mode(),
        "display": device.display_active(),
        "processes": sorted([process.pid, process.gpu_memory(), process.type] for process in device.processes().values()),
    }


nvml.nvmlInit()
system = {
    "driver": nvml.nvmlSystemGetDriverVersion(),
    "cuda": nvml.nvmlSystemGetCudaDriverVersion(),
    "nvml": [by_nvml(index) for index in range(nvml.nvmlDeviceGetCount())],
    "nvitop": [by_nvitop(device) for device in nvitop.Device.all()],
}
nvml.nvmlShutdown()
json.dump(system, sys.stdout)
