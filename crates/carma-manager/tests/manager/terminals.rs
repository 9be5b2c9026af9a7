//! The user's side of a terminal: a keyboard that is one, and what becomes of it.

use std::env;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use carma_manager::attempt::{Exit, TerminalSize};
use carma_manager::terminal::{AttachError, AttachOutcome, Decoder, Frame, FrameError, attach};
use rustix::process::{Pid, Signal, getpid, kill_process};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

const TIMEOUT: Duration = Duration::from_secs(60);
const SOCKET: &str = "CARMA_TEST_TERMINAL";

/// Somebody's desk: the keyboard is a terminal, and they press its keys from the other side.
struct TestTerminal {
    keys: File,
    keyboard: OwnedFd,
}

impl TestTerminal {
    fn new() -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let keys = openpt(flags).unwrap();
        unlockpt(&keys).unwrap();
        let keyboard = ioctl_tiocgptpeer(&keys, flags).unwrap();
        let desk = Self { keys: keys.into(), keyboard };
        desk.resize(24, 80);
        desk
    }

    fn resize(&self, rows: u16, columns: u16) {
        tcsetwinsize(&self.keys, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    }

    /// Whether keys are worked on before a program sees them, as usual.
    fn is_as_usual(&self) -> bool {
        let modes = tcgetattr(&self.keyboard).unwrap().local_modes;
        let usual = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        assert!(modes.contains(usual) || !modes.intersects(usual), "neither raw nor as usual");
        modes.contains(usual)
    }

    fn attached(&self, screen: impl Write + Send + 'static) -> (Shim, JoinHandle<Result<AttachOutcome, AttachError>>) {
        let (connection, other) = UnixStream::pair().unwrap();
        let keyboard = self.keyboard.try_clone().unwrap();
        (Shim::new(other), thread::spawn(move || attach(connection, keyboard, screen)))
    }
}

/// What stands for the shim.
struct Shim {
    stream: UnixStream,
    arrived: Decoder,
}

impl Shim {
    fn new(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Self { stream, arrived: Decoder::default() }
    }

    fn hears(&mut self, expected: &Frame) {
        loop {
            if let Some(frame) = self.arrived.next_frame().unwrap() {
                assert_eq!(&frame, expected);
                return;
            }
            let mut buffer = [0; 1024];
            let length = self.stream.read(&mut buffer).unwrap();
            assert!(length > 0, "it left without {expected:?}");
            self.arrived.take(&buffer[..length]);
        }
    }

    fn says(&mut self, frame: &Frame) {
        let mut wire = Vec::new();
        frame.encode(&mut wire);
        self.stream.write_all(&wire).unwrap();
    }
}

fn size(rows: u16, columns: u16) -> Frame {
    Frame::Resize(TerminalSize { rows, columns })
}

fn typed(keys: &[u8]) -> Frame {
    Frame::Data(keys.to_vec())
}

#[test]
fn keys_go_to_the_job_until_the_user_detaches() {
    let mut desk = TestTerminal::new();
    let (mut shim, person) = desk.attached(io::sink());
    shim.hears(&size(24, 80));
    assert!(!desk.is_as_usual());
    for keys in [b"\x03\x1a\x04".as_slice(), b"ls ~.\r"] {
        desk.keys.write_all(keys).unwrap();
        shim.hears(&typed(keys));
    }
    desk.resize(50, 132);
    // The kernel tells the processes of the terminal's session, which we are not in.
    kill_process(getpid(), Signal::WINCH).unwrap();
    shim.hears(&size(50, 132));
    desk.keys.write_all(b"~.").unwrap();
    assert_eq!(person.join().unwrap().unwrap(), AttachOutcome::Detached);
    assert!(desk.is_as_usual());
}

#[test]
fn the_output_of_a_job_is_shown_until_it_ends() {
    let desk = TestTerminal::new();
    let (screen, printed) = io::pipe().unwrap();
    let (mut shim, person) = desk.attached(printed);
    shim.says(&typed(b"hello\r\n"));
    shim.says(&Frame::Ended(Exit::Code(3)));
    assert_eq!(person.join().unwrap().unwrap(), AttachOutcome::Ended(Exit::Code(3)));
    assert_eq!(io::read_to_string(screen).unwrap(), "hello\r\n");
    assert!(desk.is_as_usual());
}

#[test]
fn the_terminal_is_restored_after_every_kind_of_end() {
    struct Broken;
    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            panic!("a bug");
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let desk = TestTerminal::new();
    let (mut shim, person) = desk.attached(io::sink());
    shim.says(&Frame::TakenOver);
    assert_eq!(person.join().unwrap().unwrap(), AttachOutcome::TakenOver);
    assert!(desk.is_as_usual());
    let (shim, person) = desk.attached(io::sink());
    drop(shim);
    assert_eq!(person.join().unwrap().unwrap(), AttachOutcome::Lost);
    assert!(desk.is_as_usual());
    let (mut shim, person) = desk.attached(io::sink());
    shim.stream.write_all(b"HTTP/1.1 200 OK\r\n").unwrap();
    assert!(matches!(person.join().unwrap(), Err(AttachError::Frame(FrameError::Unknown(b'H')))));
    assert!(desk.is_as_usual());
    let (mut shim, person) = desk.attached(Broken);
    shim.says(&typed(b"hello"));
    assert!(person.join().is_err(), "it panicked");
    assert!(desk.is_as_usual());
}

#[test]
fn a_terminated_program_restores_its_terminal() {
    let desk = TestTerminal::new();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT] {
        let test = ["--exact", "terminals::attaches_until_told_to_end", "--ignored", "--test-threads=1"];
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(test).env(SOCKET, &socket).stdin(desk.keyboard.try_clone().unwrap()).stdout(Stdio::null());
        let mut program = command.spawn().unwrap();
        let mut shim = Shim::new(listener.accept().unwrap().0);
        shim.hears(&size(24, 80));
        assert!(!desk.is_as_usual());
        kill_process(Pid::from_child(&program), signal).unwrap();
        let status = program.wait().unwrap();
        assert!(desk.is_as_usual());
        assert!(status.success(), "{status}");
    }
}

/// Run by the test above, in a process of its own.
#[test]
#[ignore = "part of another test"]
fn attaches_until_told_to_end() {
    let Some(socket) = env::var_os(SOCKET) else { return };
    let departure = attach(UnixStream::connect(socket).unwrap(), io::stdin(), io::sink()).unwrap();
    assert!(matches!(departure, AttachOutcome::Signalled(1 | 2 | 3 | 15)), "{departure:?}");
}
