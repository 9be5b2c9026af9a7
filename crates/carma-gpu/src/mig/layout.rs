//! The wanted partition of a GPU, as text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::profile::{NotAProfile, ProfileName};

/// More instances than any GPU has.
const MAX_INSTANCES: u32 = 64;

/// The wanted partition of a GPU.
///
/// ```
/// use carma_gpu::mig::Layout;
/// let layout: Layout = "2x1g.5gb, 3g.20gb".parse().unwrap();
/// assert_eq!(layout.to_string(), "3g.20gb,2x1g.5gb");
/// assert_eq!("off".parse::<Layout>(), Ok(Layout::Off));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Layout {
    /// Not partitioned: MIG is off.
    Off,
    /// Into these instances, the largest first.
    Instances(Vec<ProfileName>),
}

/// A text that is no layout.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// It names something else.
    #[error("{0}; write several as 3g.20gb,3g.20gb or 7x1g.5gb, and a whole GPU as off")]
    Profile(NotAProfile),
    /// Too many.
    #[error("{0:?} is not a number of MIG instances: write one from 1 to {MAX_INSTANCES}, like 7x1g.5gb")]
    Count(String),
}

impl Layout {
    /// The layout of these instances, in any order.
    pub fn new(mut instances: Vec<ProfileName>) -> Self {
        instances.sort_by(|a, b| b.cmp(a));
        Self::Instances(instances)
    }
}

impl FromStr for Layout {
    type Err = LayoutError;
    fn from_str(text: &str) -> Result<Self, LayoutError> {
        match text.trim().to_ascii_lowercase().as_str() {
            "off" => return Ok(Self::Off),
            "none" => return Ok(Self::new(Vec::new())),
            _ => {}
        }
        let mut instances = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (count, name) = match part.split_once('x') {
                Some((count, name)) => {
                    let number = count.trim().parse().ok().filter(|count| (1..=MAX_INSTANCES).contains(count));
                    (number.ok_or_else(|| LayoutError::Count(count.to_owned()))?, name.trim())
                }
                None => (1, part),
            };
            instances.extend(std::iter::repeat_n(name.parse::<ProfileName>().map_err(LayoutError::Profile)?, count as usize));
        }
        Ok(Self::new(instances))
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instances = match self {
            Self::Off => return f.write_str("off"),
            Self::Instances(instances) if instances.is_empty() => return f.write_str("none"),
            Self::Instances(instances) => instances,
        };
        for (place, alike) in instances.chunk_by(|a, b| a == b).enumerate() {
            f.write_str(if place == 0 { "" } else { "," })?;
            match alike {
                [one] => write!(f, "{one}")?,
                many => write!(f, "{}x{}", many.len(), many[0])?,
            }
        }
        Ok(())
    }
}

impl TryFrom<String> for Layout {
    type Error = LayoutError;
    fn try_from(text: String) -> Result<Self, LayoutError> {
        text.parse()
    }
}

impl From<Layout> for String {
    fn from(layout: Layout) -> Self {
        layout.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_read_in_any_order_and_written_in_one() {
        for (text, written) in [
            ("1g.5gb,3g.20gb,1g.5gb", "3g.20gb,2x1g.5gb"),
            (" 7 x 1g.5gb ", "7x1g.5gb"),
            ("3g.20gb,3g.20gb", "2x3g.20gb"),
            ("OFF", "off"),
            ("none", "none"),
        ] {
            let layout: Layout = text.parse().unwrap();
            assert_eq!(layout.to_string(), written);
            assert_eq!(written.parse(), Ok(layout));
        }
    }

    #[test]
    fn invalid_layouts_are_reported() {
        let error = |text: &str| text.parse::<Layout>().unwrap_err().to_string();
        insta::assert_snapshot!(
            ["", "3g", "3g.20gb,", "0x1g.5gb", "999x1g.5gb", "manyx1g.5gb"].map(error).join("\n"),
            @r#"
        "" is not a MIG profile: write it like 3g.20gb or 1g.5gb+me; write several as 3g.20gb,3g.20gb or 7x1g.5gb, and a whole GPU as off
        "3g" is not a MIG profile: write it like 3g.20gb or 1g.5gb+me; write several as 3g.20gb,3g.20gb or 7x1g.5gb, and a whole GPU as off
        "" is not a MIG profile: write it like 3g.20gb or 1g.5gb+me; write several as 3g.20gb,3g.20gb or 7x1g.5gb, and a whole GPU as off
        "0" is not a number of MIG instances: write one from 1 to 64, like 7x1g.5gb
        "999" is not a number of MIG instances: write one from 1 to 64, like 7x1g.5gb
        "many" is not a number of MIG instances: write one from 1 to 64, like 7x1g.5gb
        "#
        );
    }
}
