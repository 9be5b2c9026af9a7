//! File names of the random networks: `key:value_key:value.out`. Keys and values may contain underscores.

/// Fields of a file name by known keys, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    /// Splits a name at the given keys.
    pub fn of(name: &'a str, keys: &[&str]) -> Self {
        let name = name.strip_suffix(".out").unwrap_or(name);
        let mut fields = Vec::new();
        let mut open: Option<(&str, usize)> = None;
        for (colon, _) in name.match_indices(':') {
            let before = &name[..colon];
            // The longest match: `input_size` ends in no other key, but `dropout_rate` would match in `x_dropout_rate`.
            let key = keys
                .iter()
                .filter(|key| before.strip_suffix(**key).is_some_and(|rest| rest.is_empty() || rest.ends_with('_')))
                .max_by_key(|key| key.len());
            let Some(key) = key else { continue };
            let start = colon - key.len();
            if let Some((key, from)) = open {
                fields.push((key, name[from..start.max(from)].trim_end_matches('_')));
            }
            open = Some((&name[start..colon], colon + 1));
        }
        if let Some((key, from)) = open {
            fields.push((key, &name[from..]));
        }
        Self(fields)
    }

    /// The value of a key; the last one if it occurs twice (`dropout` is first a rate, then a flag).
    pub fn text(&self, key: &str) -> Result<&'a str, String> {
        self.0.iter().rev().find(|(name, _)| *name == key).map(|(_, value)| *value).ok_or_else(|| format!("the file name lacks {key:?}"))
    }

    /// The first value of a key.
    pub fn first(&self, key: &str) -> Result<&'a str, String> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| *value).ok_or_else(|| format!("the file name lacks {key:?}"))
    }

    /// A whole number from 1 to `most`, so that sizes computed from it cannot overflow.
    pub fn count(&self, key: &str, most: u64) -> Result<u64, String> {
        let text = self.text(key)?;
        text.parse()
            .ok()
            .filter(|count| (1..=most).contains(count))
            .ok_or_else(|| format!("{key} is {text:?}, not a number from 1 to {most}"))
    }

    /// A fraction from 0 to 1.
    pub fn share(&self, key: &str) -> Result<f64, String> {
        let text = self.first(key)?;
        text.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| format!("{key} is {text:?}, not a share from 0 to 1"))
    }

    /// `True` or `False`.
    pub fn flag(&self, key: &str) -> Result<bool, String> {
        match self.text(key)? {
            "True" => Ok(true),
            "False" => Ok(false),
            other => Err(format!("{key} is {other:?}, neither True nor False")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_keys_may_hold_underscores() {
        let fields = Fields::of("input_size:8_act:leaky_relu_dropout:0.5_dropout:True.out", &["input_size", "act", "dropout", "size"]);
        assert_eq!(fields.count("input_size", 9), Ok(8));
        assert_eq!(fields.text("act"), Ok("leaky_relu"));
        assert_eq!((fields.share("dropout"), fields.flag("dropout")), (Ok(0.5), Ok(true)));
    }
}
