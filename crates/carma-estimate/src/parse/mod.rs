//! Model descriptions in: each format becomes one [`Model`](crate::model::Model).
