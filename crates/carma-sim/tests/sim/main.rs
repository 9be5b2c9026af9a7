//! Behaviour of the simulator, against hand-computed schedules and properties.
