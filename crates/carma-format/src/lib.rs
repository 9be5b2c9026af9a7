//! Text for people: durations, sizes, energy, tables by display width, wrapped lines, charts and pages.
//!
//! Pure and without types of other CARMA crates, so that every crate can use it. The web page formats in the same way (`web/src/lib/format.ts`).

pub mod draw;
mod duration;
mod number;
mod slug;
mod table;
mod text;

pub use duration::{clock, duration, range};
pub use number::{change, count, energy, memory, number, thousands};
pub use slug::unique_slug;
pub use table::{Column, left, right, write_table};
pub use text::{WIDTH, printable, quoted, shortened, width, wrapped, wrapped_line, wrapped_to};
