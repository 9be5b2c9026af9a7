//! Columns of the table, in any order.

/// Index of each column, counted after the name.
pub(super) struct Columns {
    pub kernel: Option<usize>,
    pub input: Option<usize>,
    pub output: Option<usize>,
    pub parameters: Option<usize>,
    count: usize,
}

impl Default for Columns {
    /// The default columns.
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

/// Cells of a line, separated by two spaces; single spaces are part of a cell.
pub(super) fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty())
}
