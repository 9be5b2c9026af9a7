//! Pages and charts: elements with escaped text, axes and colours.
//!
//! The same input gives the same bytes. Nothing is loaded from a network, and all text from outside is escaped.

mod axis;
mod page;
mod palette;
mod scale;
mod svg;

pub use axis::{across, legend, up};
pub use page::page;
pub use palette::{Colours, job_class};
pub use scale::{Scale, Unit};
pub use svg::{Anchor, Chart, Element, Spot, coordinate, escape};
