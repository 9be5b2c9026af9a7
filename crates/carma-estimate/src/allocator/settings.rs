//! The allocator's constants, and the settings of `PYTORCH_CUDA_ALLOC_CONF` that change reserved memory.

use serde::{Deserialize, Serialize};

/// Sizes are rounded up to a multiple of this.
pub(super) const ROUNDING: u64 = 512;
/// Requests up to this size come from the small pool.
pub(super) const SMALL_SIZE: u64 = 1 << 20;
/// Segment of the small pool.
pub(super) const SMALL_BUFFER: u64 = 2 << 20;
/// Segment for requests below [`MIN_LARGE_ALLOCATION`].
pub(super) const LARGE_BUFFER: u64 = 20 << 20;
/// Requests of at least this size get a segment of their own size ...
pub(super) const MIN_LARGE_ALLOCATION: u64 = 10 << 20;
/// ... rounded up to a multiple of this.
pub(super) const ROUND_LARGE: u64 = 2 << 20;

/// Settings of `PYTORCH_CUDA_ALLOC_CONF`, and the memory capacity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AllocatorSettings {
    /// One growing segment per pool instead of many fixed ones.
    pub expandable_segments: bool,
    /// Blocks of at least this many bytes are not split.
    pub max_split_size: u64,
    /// Share of the capacity above which unused segments are released early.
    pub garbage_collection_threshold: Option<f64>,
    /// Bytes of the driver; `None` is unlimited.
    pub capacity: Option<u64>,
}

impl Default for AllocatorSettings {
    fn default() -> Self {
        Self { expandable_segments: false, max_split_size: u64::MAX, garbage_collection_threshold: None, capacity: None }
    }
}

/// An invalid setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// No `key:value`.
    #[error("`{0}` is not of the form key:value")]
    NotAPair(String),
    /// A value out of range.
    #[error("{key} must be {expected}, not `{value}`")]
    Value {
        /// The setting.
        key: String,
        /// The given value.
        value: String,
        /// The expected value.
        expected: &'static str,
    },
    /// An unknown key.
    #[error("unknown allocator setting `{0}` (known: expandable_segments, max_split_size_mb, garbage_collection_threshold)")]
    Unknown(String),
}

impl AllocatorSettings {
    /// Parses the text of `PYTORCH_CUDA_ALLOC_CONF`.
    ///
    /// ```
    /// use carma_estimate::allocator::AllocatorSettings;
    /// let settings = AllocatorSettings::parse("expandable_segments:True,max_split_size_mb:128")?;
    /// assert!(settings.expandable_segments);
    /// assert_eq!(settings.max_split_size, 128 << 20);
    /// assert!(AllocatorSettings::parse("max_split_size_mb:3").is_err());
    /// # Ok::<(), carma_estimate::allocator::SettingsError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once(':').ok_or_else(|| SettingsError::NotAPair(pair.to_owned()))?;
            let (key, value) = (key.trim(), value.trim());
            let wrong = |expected| SettingsError::Value { key: key.to_owned(), value: value.to_owned(), expected };
            match key {
                "expandable_segments" => {
                    settings.expandable_segments = match value {
                        "True" | "true" | "1" => true,
                        "False" | "false" | "0" => false,
                        _ => return Err(wrong("True or False")),
                    }
                }
                "max_split_size_mb" => {
                    // PyTorch refuses a limit below its largest shared segment.
                    let megabytes = value.parse::<u64>().ok().filter(|megabytes| (21..1 << 40).contains(megabytes));
                    settings.max_split_size = megabytes.ok_or_else(|| wrong("a number of MiB above 20"))? << 20;
                }
                "garbage_collection_threshold" => {
                    let share = value.parse().ok().filter(|share| (0.0..1.0).contains(share) && *share > 0.0);
                    settings.garbage_collection_threshold = Some(share.ok_or_else(|| wrong("between 0 and 1"))?);
                }
                // These change how memory is obtained, not how much.
                "backend" | "pinned_use_cuda_host_register" | "pinned_num_register_threads" | "release_lock_on_cudamalloc" => {}
                _ => return Err(SettingsError::Unknown(key.to_owned())),
            }
        }
        Ok(settings)
    }
}
