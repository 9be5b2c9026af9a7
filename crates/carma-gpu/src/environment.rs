//! Environments: the variables that restrict a job to its devices, and the search for programs in `PATH`.

use std::env;
use std::path::{Path, PathBuf};

use crate::identity::DeviceUuid;

/// The variables of a job that may use these devices. Devices are named by UUID, and numbers follow the PCI bus for programs that use them, so
/// that both always mean the same GPU.
///
/// ```
/// let uuid = "GPU-5fd15f35-e148-2992-4ecb-9825e534f253".parse().unwrap();
/// let variables = carma_gpu::environment(&[uuid]);
/// assert_eq!(variables[0], ("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned()));
/// // A job without GPUs must not see any.
/// assert_eq!(carma_gpu::environment(&[])[1], ("CUDA_VISIBLE_DEVICES", String::new()));
/// ```
pub fn environment(devices: &[DeviceUuid]) -> Vec<(&'static str, String)> {
    let visible: Vec<&str> = devices.iter().map(DeviceUuid::as_str).collect();
    vec![("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned()), ("CUDA_VISIBLE_DEVICES", visible.join(","))]
}

/// The file of a program: by its path, or in `PATH` if it is a bare name.
pub fn find_program(program: &Path) -> Option<PathBuf> {
    let bare = program.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    let folders = if bare { env::split_paths(&env::var_os("PATH")?).collect() } else { vec![PathBuf::new()] };
    folders.into_iter().map(|folder| folder.join(program)).find(|file| file.is_file())
}
