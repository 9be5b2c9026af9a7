//! Pages and charts by hand: elements with escaped text, axes, colours, and numbers as people read them.
//!
//! The same input gives the same bytes. Nothing here asks for anything from a network, and all text from outside is escaped.

mod axis;
mod page;
mod palette;
mod scale;
mod svg;
mod wording;

pub use axis::{across, legend, up};
pub use page::page;
pub use palette::{Colours, job_class};
pub use scale::{Scale, Unit};
pub use svg::{Anchor, Chart, Element, Spot, coordinate, escape};
pub use wording::{count, duration, energy, number, thousands, unique_slug};
