//! GPUs by name: memory, compute capability, and what decides the choice of kernels.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// Compute capability: major and minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Capability(pub u8, pub u8);

/// A GPU as far as memory estimates depend on it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// Its name in the table.
    pub name: String,
    /// Further names.
    #[serde(default)]
    also: Vec<String>,
    /// MiB that the driver shows as total.
    pub memory: u64,
    /// Whether the memory is computed from the data sheet, not read from a driver.
    #[serde(default)]
    pub assumed: bool,
    /// Its compute capability.
    pub capability: Capability,
    /// Dense TF32 rate over FP32 rate; 0 without TF32.
    pub tf32: f64,
}

#[derive(Deserialize)]
struct Table {
    gpu: Vec<Gpu>,
}

static KNOWN: LazyLock<Vec<Gpu>> =
    LazyLock::new(|| toml::from_str::<Table>(include_str!("gpus.toml")).map_or_else(|_| Vec::new(), |table| table.gpu));

impl Gpu {
    /// All known GPUs.
    pub fn known() -> &'static [Self] {
        &KNOWN
    }

    /// The GPU of this name. Case, spaces, dashes and NVIDIA's brand names do not matter.
    ///
    /// ```
    /// use carma_estimate::gpu::Gpu;
    /// let gpu = Gpu::named("NVIDIA GeForce RTX 4060").unwrap();
    /// assert_eq!(gpu.name, "RTX-4060");
    /// assert_eq!(Gpu::named("A100").unwrap().memory, 40_536);
    /// ```
    pub fn named(name: &str) -> Option<&'static Self> {
        let wanted = plain(name);
        KNOWN.iter().find(|gpu| std::iter::once(&gpu.name).chain(&gpu.also).any(|known| plain(known) == wanted))
    }

    /// A GPU that is not in the table, by its compute capability and memory in bytes. The chips of data centres (x.0) have fast TF32.
    pub fn unlisted(capability: Capability, bytes: u64) -> Self {
        let tf32 = match capability {
            Capability(..=7, _) => 0.0,
            Capability(_, 0) => 8.0,
            Capability(..) => 1.0,
        };
        let name = format!("capability {}.{}", capability.0, capability.1);
        Self { name, also: Vec::new(), memory: bytes >> 20, assumed: true, capability, tf32 }
    }

    /// Its memory in bytes.
    pub fn bytes(&self) -> u64 {
        self.memory << 20
    }

    /// Whether cuDNN prefers tensor cores for convolutions of 32-bit floats: only where TF32 is much faster than FP32.
    pub fn prefers_tensor_cores(&self) -> bool {
        self.tf32 >= 2.0
    }
}

/// A name without brand, case and separators.
fn plain(name: &str) -> String {
    let letters: String = name.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    ["nvidia", "geforce", "tesla"].into_iter().fold(letters, |name, brand| name.replace(brand, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_finds_one_gpu() {
        let mut names: Vec<String> =
            Gpu::known().iter().flat_map(|gpu| std::iter::once(&gpu.name).chain(&gpu.also)).map(|name| plain(name)).collect();
        assert!(names.len() > 40);
        names.sort();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before, "two GPUs have one name");
    }

    #[test]
    fn unknown_names_find_no_gpu() {
        assert_eq!(Gpu::named("RTX 40600"), None);
        assert_eq!(Gpu::named(""), None);
    }
}
