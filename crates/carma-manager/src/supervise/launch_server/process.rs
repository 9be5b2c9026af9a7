//! The process of the launch server.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use super::message::{Request, receive};
use super::title::Title;
use crate::supervise::child::spare_supervisor;
use crate::supervise::dispositions::{ignore_exits_of_children, keep_exits_of_children, reset_all};
use crate::supervise::folder::AttemptFolder;
use crate::supervise::fork::{Fork, close_files_except, close_standard_input, split};
use crate::supervise::guard::{Inherited, become_guard};

/// Serves the socket that is its standard input until the manager closes it. The caller must have no other threads.
pub fn serve() -> io::Result<()> {
    reset_all();
    // Supervisors live for days, and must not keep files open that leaked from the manager.
    close_files_except(&[]);
    take_name();
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    close_standard_input()?;
    let (title, inherited) = (Title::find(), Inherited::from_launch_server()?);
    spare_supervisor();
    // Guards that end leave nothing to be reaped.
    ignore_exits_of_children()?;
    while let Some(Request { folder, lock, mut answer }) = receive(&socket)? {
        match split() {
            Ok(Fork::Parent(_)) => {}
            Ok(Fork::Child) => {
                drop(socket);
                keep_exits_of_children()?;
                title.inspect(|title| title.show(&folder));
                become_guard(&AttemptFolder::at(folder), lock, answer, &inherited);
            }
            Err(error) => drop(answer.write_all(format!("cannot fork: {error}").as_bytes())),
        }
    }
    Ok(())
}

/// Its program may be run by another name than that of its file.
fn take_name() {
    let name = env::args_os().next().unwrap_or_default();
    let name = Path::new(&name).file_name().unwrap_or_default();
    let _ = fs::write("/proc/self/comm", name.as_encoded_bytes());
}
