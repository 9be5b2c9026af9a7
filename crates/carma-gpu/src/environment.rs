//! What a job finds in its environment, so that it runs on its devices and no others.

use crate::identity::DeviceUuid;

/// The variables of a job that may use these devices. Devices are named by UUID, and numbers follow the PCI bus for those who insist on them, so
/// that nobody can mean another GPU than we do.
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
