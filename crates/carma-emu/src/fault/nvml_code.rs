//! Errors of NVML by their names.

use std::fmt;
use std::str::FromStr;

use super::FaultError;

/// The names of `NVML_ERROR_*`, numbered from 1.
const NAMES: [&str; 30] = [
    "UNINITIALIZED",
    "INVALID_ARGUMENT",
    "NOT_SUPPORTED",
    "NO_PERMISSION",
    "ALREADY_INITIALIZED",
    "NOT_FOUND",
    "INSUFFICIENT_SIZE",
    "INSUFFICIENT_POWER",
    "DRIVER_NOT_LOADED",
    "TIMEOUT",
    "IRQ_ISSUE",
    "LIBRARY_NOT_FOUND",
    "FUNCTION_NOT_FOUND",
    "CORRUPTED_INFOROM",
    "GPU_IS_LOST",
    "RESET_REQUIRED",
    "OPERATING_SYSTEM",
    "LIB_RM_VERSION_MISMATCH",
    "IN_USE",
    "MEMORY",
    "NO_DATA",
    "VGPU_ECC_NOT_SUPPORTED",
    "INSUFFICIENT_RESOURCES",
    "FREQ_NOT_SUPPORTED",
    "ARGUMENT_VERSION_MISMATCH",
    "DEPRECATED",
    "NOT_READY",
    "GPU_NOT_FOUND",
    "INVALID_STATE",
    "RESET_TYPE_NOT_SUPPORTED",
];
/// The one beyond them.
const UNKNOWN: (&str, u32) = ("UNKNOWN", 999);

/// An error of NVML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvmlCode(u32);

impl NvmlCode {
    /// All names, without their common beginning.
    pub(super) fn names() -> Vec<&'static str> {
        NAMES.into_iter().chain([UNKNOWN.0]).collect()
    }

    /// The error of a number; 0 is none.
    pub const fn from_number(number: u32) -> Option<Self> {
        if number == 0 { None } else { Some(Self(number)) }
    }

    /// NVML's number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl FromStr for NvmlCode {
    type Err = FaultError;
    fn from_str(text: &str) -> Result<Self, FaultError> {
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("NVML_ERROR_").unwrap_or(&upper);
        let numbered = NAMES.into_iter().zip(1..).chain([UNKNOWN]).find(|(known, _)| *known == name);
        numbered.map(|(_, number)| Self(number)).ok_or_else(|| FaultError::NoSuchCode(text.to_owned()))
    }
}

impl fmt::Display for NvmlCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str((self.0 as usize).checked_sub(1).and_then(|place| NAMES.get(place)).unwrap_or(&UNKNOWN.0))
    }
}

#[cfg(test)]
mod tests {
    use nvml_wrapper_sys::bindings as nvml;

    use super::*;

    #[test]
    fn names_have_nvmls_numbers() {
        let numbers = ["NOT_SUPPORTED", "nvml_error_gpu_is_lost", "reset_type_not_supported", "UNKNOWN"].map(str::parse);
        let expected = [
            nvml::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED,
            nvml::nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST,
            nvml::nvmlReturn_enum_NVML_ERROR_RESET_TYPE_NOT_SUPPORTED,
            nvml::nvmlReturn_enum_NVML_ERROR_UNKNOWN,
        ];
        assert_eq!(numbers, expected.map(|number| Ok(NvmlCode(number))));
        assert!(NvmlCode::names().into_iter().all(|name| name.parse::<NvmlCode>().unwrap().to_string() == name));
        assert!("BROKEN".parse::<NvmlCode>().unwrap_err().to_string().contains("not an NVML error: give one of UNINITIALIZED,"));
    }
}
