//! MIG: a GPU cut into instances.
