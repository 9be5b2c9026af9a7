//! Columns of the table, in whatever order they were chosen.

/// Which column, counted after the name, holds what.
pub(super) struct Columns {
    pub kernel: Option<usize>,
    pub input: Option<usize>,
    pub output: Option<usize>,
    pub parameters: Option<usize>,
    count: usize,
}

impl Default for Columns {
    /// As they are where nothing is chosen.
    fn default() -> Self {
        Self { kernel: None, input: None, output: Some(0), parameters: Some(1), count: 2 }
    }
}

impl Columns {
    pub(super) fn of_header(header: &str) -> Self {
        let names: Vec<&str> = cells(header).skip(1).collect();
        let place = |wanted: &str| names.iter().position(|name| *name == wanted);
        Self {
            kernel: place("Kernel Shape"),
            input: place("Input Shape"),
            output: place("Output Shape"),
            parameters: place("Param #"),
            count: names.len(),
        }
    }

    /// Columns after the name.
    pub(super) const fn count(&self) -> usize {
        self.count
    }
}

/// Cells of a line: they are two spaces apart, and have single ones within.
pub(super) fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty())
}
