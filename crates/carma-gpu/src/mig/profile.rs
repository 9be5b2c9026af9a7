//! Kinds of instances, and their names.

use std::fmt;
use std::str::FromStr;

use carma_core::MiB;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Placement;

/// The difference between instance profiles of the same size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Variant {
    /// With its share of the media engines.
    Plain,
    /// With a media engine that others of its size lack.
    Media,
    /// With all media engines.
    AllMedia,
    /// Without any.
    NoMedia,
    /// With graphics.
    Graphics,
}

impl Variant {
    const ALL: [Self; 5] = [Self::Plain, Self::Media, Self::AllMedia, Self::NoMedia, Self::Graphics];

    const fn suffix(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Media => "+me",
            Self::AllMedia => "+me.all",
            Self::NoMedia => "-me",
            Self::Graphics => "+gfx",
        }
    }

    /// From NVML's number of a profile, one of `NVML_GPU_INSTANCE_PROFILE_*`.
    pub(super) const fn of_slot(slot: u32) -> Self {
        match slot {
            7 | 8 => Self::Media,
            10..=12 => Self::Graphics,
            13 | 14 => Self::NoMedia,
            15 | 16 => Self::AllMedia,
            _ => Self::Plain,
        }
    }
}

/// The name of a kind of instance, as `nvidia-smi` writes it.
///
/// ```
/// use carma_gpu::mig::ProfileName;
/// let name: ProfileName = "3g.20gb".parse().unwrap();
/// assert_eq!((name.slices, name.gigabytes), (3, 20));
/// assert!("3g".parse::<ProfileName>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProfileName {
    /// Compute slices.
    pub slices: u32,
    /// Memory, rounded up to its share of the GPU.
    pub gigabytes: u32,
    /// Its variant.
    pub variant: Variant,
}

/// A text that is no name of a kind of instance.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a MIG profile: write it like 3g.20gb or 1g.5gb+me")]
pub struct NotAProfile(pub String);

impl ProfileName {
    /// The name in NVIDIA's tools: memory counts in eighths of the GPU's, rounded up, because a part of each slice is the driver's.
    pub fn new(slices: u32, memory: MiB, gpu: MiB, variant: Variant) -> Self {
        let eighths = (memory.0 * 8).div_ceil(gpu.0.max(1));
        let gigabytes = (eighths * gpu.0.div_ceil(1024) + 4) / 8;
        Self { slices, gigabytes: gigabytes as u32, variant }
    }
}

impl FromStr for ProfileName {
    type Err = NotAProfile;
    fn from_str(text: &str) -> Result<Self, NotAProfile> {
        let parse = || {
            let (slices, rest) = text.split_once("g.")?;
            let (gigabytes, suffix) = rest.split_once("gb")?;
            let number = |digits: &str| digits.parse().ok().filter(|number| *number > 0 && !digits.starts_with('+'));
            let variant = Variant::ALL.into_iter().find(|variant| variant.suffix() == suffix)?;
            Some(Self { slices: number(slices)?, gigabytes: number(gigabytes)?, variant })
        };
        parse().ok_or_else(|| NotAProfile(text.to_owned()))
    }
}

impl TryFrom<String> for ProfileName {
    type Error = NotAProfile;
    fn try_from(text: String) -> Result<Self, NotAProfile> {
        text.parse()
    }
}

impl From<ProfileName> for String {
    fn from(name: ProfileName) -> Self {
        name.to_string()
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}g.{}gb{}", self.slices, self.gigabytes, self.variant.suffix())
    }
}

/// A kind of instance that a GPU can have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// Its name.
    pub name: ProfileName,
    /// The number the driver shows, and makes instances by.
    pub id: u32,
    /// Memory.
    pub memory: MiB,
    /// Most at a time.
    pub most: u32,
    /// Possible placements.
    pub placements: Vec<Placement>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory of instances and of whole GPUs as `nvidia-smi` showed them, and the names it gave.
    #[test]
    fn names_are_those_of_nvidia() {
        let known = [
            (1, 4864, 40_960, "1g.5gb"),
            (1, 9856, 40_960, "1g.10gb"),
            (3, 19_968, 40_960, "3g.20gb"),
            (7, 40_192, 40_960, "7g.40gb"),
            (1, 9728, 81_920, "1g.10gb"),
            (7, 80_896, 81_920, "7g.80gb"),
            (2, 20_096, 81_559, "2g.20gb"),
            (7, 81_152, 81_559, "7g.80gb"),
            (1, 5952, 24_576, "1g.6gb"),
            (4, 24_192, 24_576, "4g.24gb"),
            (1, 16_384, 143_771, "1g.18gb"),
            (3, 71_424, 143_771, "3g.71gb"),
        ];
        for (slices, memory, gpu, name) in known {
            let found = ProfileName::new(slices, MiB(memory), MiB(gpu), Variant::Plain);
            assert_eq!(found.to_string(), name);
        }
        assert_eq!(ProfileName::new(1, MiB(4864), MiB(40_960), Variant::of_slot(7)).to_string(), "1g.5gb+me");
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in ["1g.5gb", "1g.5gb+me", "2g.24gb+me.all", "1g.24gb-me", "4g.96gb+gfx"] {
            assert_eq!(text.parse::<ProfileName>().unwrap().to_string(), text);
        }
        for text in ["", "g.gb", "3g", "3g.20", "0g.5gb", "+1g.5gb", "1g.5gb+you", "1g.5gb ", "MIG 1g.5gb", "1c.3g.20gb"] {
            assert_eq!(text.parse::<ProfileName>(), Err(NotAProfile(text.to_owned())));
        }
    }
}
