//! Pictures of how a learned estimator does, and of what it learned from: SVG, each a file of its own.

mod confusion;
mod map;
mod pca;
mod scatter;
mod svg;
mod tsne;

pub use confusion::confusion;
pub use map::map;
pub use pca::pca;
pub use scatter::scatter;
pub use tsne::{Tsne, tsne};
