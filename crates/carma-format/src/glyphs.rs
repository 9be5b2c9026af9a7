//! Characters that not every locale has, and what is printed instead.

/// The characters of a locale.
#[derive(Debug)]
pub struct Glyphs {
    /// The end of a text that was cut.
    pub cut: char,
    /// In place of a character that is not printed.
    pub replaced: char,
    /// Before a standard deviation.
    pub plus_minus: &'static str,
    /// The unit of temperatures.
    pub celsius: &'static str,
    /// From nearly empty to full, one line high.
    pub levels: [char; 8],
    /// The end of a bar, by the eighths of a column that it fills; the last is a full column.
    pub eighths: [&'static str; 9],
}

impl Glyphs {
    /// Of a UTF-8 locale.
    pub const UNICODE: Self = Self {
        cut: '…',
        replaced: '\u{fffd}',
        plus_minus: "±",
        celsius: "°C",
        levels: ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
        eighths: ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"],
    };
    /// Of any other locale.
    pub const ASCII: Self = Self {
        cut: '~',
        replaced: '?',
        plus_minus: "+-",
        celsius: "C",
        levels: ['_', '.', ':', '-', '=', '+', '*', '#'],
        eighths: ["", "#", "#", "#", "#", "#", "#", "#", "#"],
    };
}
