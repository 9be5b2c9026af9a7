//! Text for people: durations, sizes, energy, tables by display width, wrapped lines, charts and pages.
//!
//! Pure and without types of other CARMA crates, so that every crate can use it. The web page formats in the same way (`web/src/lib/format.ts`).

pub mod draw;
mod duration;
mod glyphs;
mod number;
mod slug;
mod table;
mod terminal;
mod text;

pub use duration::{clock, duration, range};
pub use glyphs::Glyphs;
pub use number::{change, count, energy, memory, number, thousands};
pub use slug::unique_slug;
pub use table::{Column, left, right, write_facts, write_table};
pub use terminal::{Stream, Surroundings, Terminal};
pub use text::{WIDTH, aligned, fitted, labelled, printable, quoted, shortened, width, wrapped, wrapped_line, wrapped_to};
