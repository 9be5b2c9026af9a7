//! The web page: its files, and `carma web`, which opens it for a browser on this machine.

mod files;

pub(crate) use files::FILES;

use std::io::{ErrorKind, Write};

use anyhow::{Context, Result, bail};
use carma_manager::bridge::Bridge;
use carma_manager::client::Address;
use clap::Args;

use crate::manager::Manager;

/// Default port of the page, fixed so that an ssh tunnel need not change.
const DEFAULT_PORT: u16 = 7080;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  carma web\n  carma web --host https://server:7080")]
pub(crate) struct Arguments {
    /// The local port [default: 7080, or another free one].
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    #[command(flatten)]
    manager: Manager,
}

pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let mut client = arguments.manager.connect()?;
    let socket = match client.address() {
        Address::Socket(socket) => socket.clone(),
        address @ Address::Own(_) => bail!("this manager runs on another host, at {address}: run carma web there, over ssh"),
        address @ Address::Network { .. } => bail!("this manager serves the page itself: open {address}/ and show it your token"),
    };
    let status = client.status()?;
    let bind = |port| Bridge::bind(port, socket.clone(), FILES);
    let bridge = match arguments.port {
        Some(port) => bind(port).with_context(|| format!("cannot take port {port}"))?,
        None => match bind(DEFAULT_PORT) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => bind(0)?,
            bound => bound?,
        },
    };
    writeln!(output, "{}", bridge.url())?;
    output.flush()?;
    eprintln!("Open this address in a browser; it shows {} as you may see it, until Ctrl-C.", status.gpu_source);
    if std::env::var_os("SSH_CONNECTION").is_some() {
        let port = bridge.port();
        eprintln!("From your own machine: ssh -L {port}:127.0.0.1:{port} SERVER, then open it there.");
    }
    match bridge.run()? {}
}
