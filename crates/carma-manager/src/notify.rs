//! Words to systemd, where it started the manager as a service: that it is ready, that it stops, how it is.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Where systemd listens; unset where nobody does.
const SOCKET: &str = "NOTIFY_SOCKET";

/// Says that jobs can be submitted from now on.
pub fn ready() -> io::Result<()> {
    tell("READY=1")
}

/// Says that the manager is about to end as it was asked to.
pub fn stopping() -> io::Result<()> {
    tell("STOPPING=1")
}

/// Says in a line how the manager is, for `systemctl status` and `carma service status`.
pub fn status(text: &str) -> io::Result<()> {
    // Another line would be another message.
    tell(&format!("STATUS={}", text.split_whitespace().collect::<Vec<_>>().join(" ")))
}

fn tell(message: &str) -> io::Result<()> {
    env::var_os(SOCKET).map_or(Ok(()), |socket| send(&socket, message))
}

fn send(socket: &OsStr, message: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let datagram = UnixDatagram::unbound()?;
    // A manager never waits for its supervisor.
    datagram.set_nonblocking(true)?;
    datagram.send_to_addr(message.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(listener: &UnixDatagram) -> String {
        let mut buffer = [0; 64];
        let length = listener.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn messages_arrive_at_sockets_with_and_without_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notify");
        let listener = UnixDatagram::bind(&file).unwrap();
        send(file.as_os_str(), "READY=1").unwrap();
        assert_eq!(heard(&listener), "READY=1");
        let name = format!("carma-notify-{}", std::process::id());
        let listener = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        send(format!("@{name}").as_ref(), "STOPPING=1").unwrap();
        assert_eq!(heard(&listener), "STOPPING=1");
        assert!(send("/nonexistent/notify".as_ref(), "READY=1").is_err());
    }
}
