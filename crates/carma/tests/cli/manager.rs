//! The manager, with real shims, a real store and emulated GPUs.

mod commands;
mod crash;
mod crash_load;
mod crash_speed;
mod devices;
mod end_to_end;
mod estimates;
mod faults;
mod lab;
mod life;
mod metrics;
mod modes;
mod notifications;
mod power;
mod prediction;
mod replay;
mod report;
mod rules;
mod security;
mod seen;
mod served;
mod shares;
mod slots;
mod top;
mod up;
mod what_if;
