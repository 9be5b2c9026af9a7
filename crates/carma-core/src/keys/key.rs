//! What is known about a key: its name, what may be written, and its documentation.

/// A key of the configuration.
#[derive(Debug, Clone)]
pub struct KeyInfo {
    /// Its name within its section.
    pub name: &'static str,
    /// Its former name, which files may still use.
    pub formerly: Option<&'static str>,
    /// Its documentation, as written in the source.
    pub doc: &'static str,
    /// What may be written.
    pub kind: Kind,
    /// The least and the largest number, where it is a number.
    pub range: Option<(f64, f64)>,
}

/// What may be written as the value of a key.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A number of this unit.
    Number(&'static str),
    /// A whole number of this unit.
    Whole(&'static str),
    /// `true` or `false`.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of these words.
    Choices(&'static [&'static str]),
    /// Text or a list, with a description.
    Other(&'static str),
    /// A table of keys.
    Section(&'static [KeyInfo]),
}

impl KeyInfo {
    /// Whether this is its name or its former name.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name || self.formerly == Some(name)
    }

    /// Its documentation as one line.
    pub fn about(&self) -> String {
        self.doc.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The unit of its number; empty: none.
    pub const fn unit(&self) -> &'static str {
        match self.kind {
            Kind::Number(unit) | Kind::Whole(unit) => unit,
            _ => "",
        }
    }

    /// A description of the allowed values.
    ///
    /// ```
    /// use carma_core::{AdmissionConfig, KeyInfo, Kind, Setting};
    /// let Kind::Section(keys) = AdmissionConfig::KIND else { unreachable!() };
    /// let margin = keys.iter().find(|key| key.name == "margin").unwrap();
    /// assert_eq!(margin.allowed(), "a whole number from 0 to 1048576 MiB");
    /// ```
    pub fn allowed(&self) -> String {
        let words = |words: &[&str]| words.join(", ");
        match self.kind {
            Kind::Number(_) | Kind::Whole(_) => self.number(),
            Kind::Switch => "true or false".to_owned(),
            Kind::Choice(choices) => format!("one of {}", words(choices)),
            Kind::Choices(choices) => format!("a list of {}", words(choices)),
            Kind::Other(text) => text.to_owned(),
            Kind::Section(_) => format!("a table [{}]", self.name),
        }
    }

    fn number(&self) -> String {
        let whole = if matches!(self.kind, Kind::Whole(_)) { "a whole number" } else { "a number" };
        let range = self.range.map_or_else(String::new, |(least, most)| format!(" from {least} to {most}"));
        let unit = self.unit();
        format!("{whole}{range}{}{unit}", if unit.is_empty() { "" } else { " " })
    }
}
