//! Profiling counters: SMACT, SMOCC, DRAMA and their like, from whoever offers them.
