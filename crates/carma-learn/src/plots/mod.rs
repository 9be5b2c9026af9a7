//! Plots of a trained estimator and of its data, as SVG files.

mod confusion;
mod map;
mod pca;
mod scatter;
mod tsne;

pub use confusion::confusion;
pub use map::map;
pub use pca::pca;
pub use scatter::scatter;
pub use tsne::{Tsne, tsne};
