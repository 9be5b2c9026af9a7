//! The formats traces come in, a file each.

mod alibaba_2020;
mod alibaba_2023;
mod helios;
mod philly_log;
mod philly_table;
mod script;
mod submissions;
mod table;
mod task_file;

pub(super) use philly_log::read as read_philly_log;
pub(super) use script::{is_command, read as read_script};
pub(super) use table::Table;
pub(super) use task_file::read as read_task;
pub use task_file::{RadNeeds, RadTask};
