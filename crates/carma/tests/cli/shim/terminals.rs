//! Jobs with a terminal, and attached users.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;

use carma_core::{Seconds, Signal};
use carma_manager::attempt::{Exit, Order, Terminal, TerminalSize};
use carma_manager::supervise::{AttemptFolder, connect_terminal};
use carma_manager::terminal::{AttachOutcome, Decoder, Frame, attach};

use super::kills::{kill, lost, supervisors};
use super::{TIMEOUT, ended, is_there, launch, order, pid_in, running, shell, until};

pub(super) fn at_terminal(order: Order) -> Order {
    Order { terminal: Some(Terminal { idle_limit: None, size: TerminalSize::default() }), ..order }
}

/// A shell as people use it.
fn bash(job: u64) -> Order {
    at_terminal(order(job, &["bash", "--norc", "--noprofile", "-i"]))
}

/// An attached user.
pub(super) struct AttachedUser {
    stream: UnixStream,
    arrived: Decoder,
    screen: Vec<u8>,
}

impl AttachedUser {
    pub(super) fn at(folder: &AttemptFolder) -> Self {
        let stream = connect_terminal(folder).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Self { stream, arrived: Decoder::default(), screen: Vec::new() }
    }

    fn sends(&mut self, frame: &Frame) {
        let mut wire = Vec::new();
        frame.encode(&mut wire);
        self.stream.write_all(&wire).unwrap();
    }

    pub(super) fn types(&mut self, keys: &str) {
        self.sends(&Frame::Data(keys.as_bytes().to_vec()));
    }

    /// Reads a frame; unset after the last one.
    fn reads(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.arrived.next_frame().unwrap() {
                if let Frame::Data(data) = &frame {
                    self.screen.extend(data);
                }
                return Some(frame);
            }
            let mut buffer = [0; 4096];
            let length = self.stream.read(&mut buffer).unwrap_or_else(|error| panic!("{error}: {}", self.screen()));
            if length == 0 {
                return None;
            }
            self.arrived.take(&buffer[..length]);
        }
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.screen).into_owned()
    }

    /// Waits until this is on the screen, and removes it with all before it.
    pub(super) fn sees(&mut self, words: &str) {
        loop {
            if let Some(place) = self.screen.windows(words.len()).position(|window| window == words.as_bytes()) {
                self.screen.drain(..place + words.len());
                return;
            }
            assert!(matches!(self.reads(), Some(Frame::Data(_))), "no {words:?} in {}", self.screen());
        }
    }

    /// The last frame; unset without one.
    fn last(&mut self) -> Option<Frame> {
        loop {
            match self.reads() {
                Some(Frame::Data(_)) => {}
                other => return other,
            }
        }
    }
}

#[test]
fn a_jobs_terminal_has_the_size_of_the_attached_terminal() {
    let state = tempfile::tempdir().unwrap();
    let script = "test -t 0 && test -t 1 && test -t 2 && : < /dev/tty && echo has one; ls -m /proc/self/fd; stty size; while read line; do stty size; done; exit 3";
    let folder = launch(&state, at_terminal(shell(1, script)));
    let mut ada = AttachedUser::at(&folder);
    // 3 is the folder that `ls` reads.
    ada.sees("has one\r\n0, 1, 2, 3\r\n24 80\r\n");
    ada.sends(&Frame::Resize(TerminalSize { rows: 50, columns: 132 }));
    ada.types("\r");
    ada.sees("50 132\r\n");
    ada.types("\u{4}");
    assert_eq!(ada.last(), Some(Frame::Ended(Exit::Code(3))));
    assert_eq!(ended(&folder).exit, Exit::Code(3));
    assert_eq!(fs::read_to_string(folder.output()).unwrap(), "has one\r\n0, 1, 2, 3\r\n24 80\r\n\r\n50 132\r\n");
    assert_eq!(super::log(&folder.errors()), "");
    let gone = connect_terminal(&folder).unwrap_err();
    assert_eq!(gone.to_string(), "it has ended");
}

#[test]
fn attaching_again_shows_the_missed_output() {
    let state = tempfile::tempdir().unwrap();
    let folder = launch(&state, bash(1));
    let mut ada = AttachedUser::at(&folder);
    let [go, done] = ["go", "done"].map(|name| state.path().join(name));
    let wait = format!("while [ ! -e {} ]; do sleep 0.01; done", go.display());
    ada.types(&format!("echo be$((1))fore; {wait}; echo mean$((2))while; touch {}\r", done.display()));
    ada.sees("be1fore\r\n");
    drop(ada);
    fs::write(go, "").unwrap();
    until(|| done.exists().then_some(()));
    let mut ada = AttachedUser::at(&folder);
    ada.sees("be1fore\r\nmean2while\r\n");
    ada.types("exit 7\r");
    assert_eq!(ada.last(), Some(Frame::Ended(Exit::Code(7))));
    assert_eq!(ended(&folder).exit, Exit::Code(7));
}

#[test]
fn the_later_terminal_takes_over() {
    let state = tempfile::tempdir().unwrap();
    let folder = launch(&state, bash(1));
    let mut ada = AttachedUser::at(&folder);
    ada.types("echo fi$((1))rst\r");
    ada.sees("fi1rst");
    let mut grace = AttachedUser::at(&folder);
    grace.sees("fi1rst");
    assert_eq!(ada.last(), Some(Frame::TakenOver));
    grace.types("echo se$((2))cond\r");
    grace.sees("se2cond");
    // A client with an invalid frame is disconnected, and the job continues.
    grace.stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(grace.last(), None);
    let mut ada = AttachedUser::at(&folder);
    ada.sees("se2cond");
    ada.types("exit\r");
    assert_eq!(ada.last(), Some(Frame::Ended(Exit::Code(0))));
    ended(&folder);
}

#[test]
fn interrupt_keys_reach_the_foreground_process_only() {
    let state = tempfile::tempdir().unwrap();
    let folder = launch(&state, bash(1));
    let mut ada = AttachedUser::at(&folder);
    ada.types("sh -c 'trap \"echo h$((1))it\" INT; echo be$((1))hind; while :; do sleep 0.01; done' &\r");
    ada.sees("be1hind");
    ada.types("sh -c 'echo fr$((1))ont; while :; do sleep 0.01; done'\r");
    ada.sees("fr1ont");
    ada.types("\u{3}");
    ada.types("echo af$((1))ter; jobs\r");
    ada.sees("af1ter\r\n");
    ada.sees("Running");
    let log = fs::read_to_string(folder.output()).unwrap();
    assert!(!log.contains("h1it"), "{log}");
    ada.types("exit 4\r");
    assert_eq!(ended(&folder).exit, Exit::Code(4));
}

#[test]
fn an_idle_interactive_job_is_warned_and_ended() {
    let state = tempfile::tempdir().unwrap();
    let idle = |limit, order| Order { terminal: Some(Terminal { idle_limit: Some(limit), size: TerminalSize::default() }), ..order };
    let (go, limit) = (state.path().join("go"), Seconds::from_secs(1));
    // As long as it prints, it is not.
    let busy = format!("while [ ! -e {} ]; do echo busy; sleep 0.01; done; exec cat", go.display());
    let folder = launch(&state, idle(limit, shell(1, &busy)));
    let mut ada = AttachedUser::at(&folder);
    ada.sees("busy");
    fs::write(go, "").unwrap();
    ada.sees("[carma: it was idle for 1 s, and is ended]\r\n");
    assert_eq!(ada.last(), Some(Frame::Ended(Exit::Idle(limit))));
    assert_eq!(ended(&folder).exit, Exit::Idle(limit));
    assert!(fs::read_to_string(folder.output()).unwrap().contains("it was idle for 1 s"));
    // A job that does not read, without any client.
    let limit = Seconds::new(0.1).unwrap();
    let folder = launch(&state, idle(limit, shell(2, "trap '' TERM; cat; cat; cat")));
    assert_eq!(ended(&folder).exit, Exit::Idle(limit));
}

#[test]
fn a_shell_that_ignores_sigterm_gets_sighup() {
    let state = tempfile::tempdir().unwrap();
    let folder = launch(&state, bash(1));
    let mut ada = AttachedUser::at(&folder);
    ada.types("echo re$((1))ady\r");
    ada.sees("re1ady");
    running(&folder).signal(Signal::Terminate).unwrap();
    assert_eq!(ended(&folder).exit, Exit::Signal(1));
}

#[test]
fn a_shell_dies_with_its_shim_and_attached_users_notice() {
    let state = tempfile::tempdir().unwrap();
    let folder = launch(&state, bash(1));
    let mut ada = AttachedUser::at(&folder);
    let file = state.path().join("pid");
    ada.types(&format!("trap '' HUP TERM; echo $$ > {}\r", file.display()));
    let pid = pid_in(&file);
    kill(&[supervisors(&folder).1]);
    lost(&folder);
    assert!(!is_there(pid));
    assert_eq!(ada.last(), None);
    assert_eq!(connect_terminal(&folder).unwrap_err().to_string(), "it has ended");
}

#[test]
fn readers_see_everything_and_slow_readers_block_no_one() {
    let state = tempfile::tempdir().unwrap();
    let script = "read go; seq 1 200000; echo last";
    let folder = launch(&state, Order { log_limit: 1 << 24, ..at_terminal(shell(1, script)) });
    let mut ada = AttachedUser::at(&folder);
    ada.types("\r");
    assert_eq!(ada.last(), Some(Frame::Ended(Exit::Code(0))));
    assert!(ada.screen.ends_with(b"200000\r\nlast\r\n"));
    assert_eq!(ada.screen, fs::read(folder.output()).unwrap());
    ended(&folder);

    let folder = launch(&state, at_terminal(shell(2, script)));
    let mut sleepy = AttachedUser::at(&folder);
    sleepy.types("\r");
    assert_eq!(ended(&folder).exit, Exit::Code(0));
    let log = fs::read_to_string(folder.output()).unwrap();
    assert!(log.len() <= 1 << 20 && log.ends_with("last\r\n"), "{} bytes", log.len());
}

#[test]
fn attaching_shows_the_end_of_what_was_printed_before() {
    let state = tempfile::tempdir().unwrap();
    let folder = launch(&state, at_terminal(shell(1, "seq 1 200000; read line")));
    until(|| fs::read_to_string(folder.output()).ok()?.ends_with("\r\n200000\r\n").then_some(()));
    let mut ada = AttachedUser::at(&folder);
    ada.types("\r");
    assert_eq!(ada.last(), Some(Frame::Ended(Exit::Code(0))));
    let seen = ada.screen();
    assert!(seen.len() <= 64 * 1024 + 2 && seen.ends_with("\r\n200000\r\n\r\n"), "{} bytes", seen.len());
    let first: u32 = seen.lines().next().unwrap().parse().unwrap();
    assert!(first > 100_000, "{first}");
    ended(&folder);
}

#[test]
fn piped_input_is_typed_and_its_end_closes_the_input() {
    let state = tempfile::tempdir().unwrap();
    let folder = launch(&state, at_terminal(shell(1, "while read -r line; do echo \"got $line\"; done; exit 9")));
    let (keyboard, mut keys) = std::io::pipe().unwrap();
    keys.write_all(b"~.\na b\n").unwrap();
    drop(keys);
    let mut screen = Vec::new();
    let departure = attach(connect_terminal(&folder).unwrap(), keyboard, &mut screen).unwrap();
    let screen = String::from_utf8(screen).unwrap();
    assert_eq!((departure, ended(&folder).exit), (AttachOutcome::Ended(Exit::Code(9)), Exit::Code(9)), "{screen}");
    assert!(screen.contains("got ~.\r\n") && screen.contains("got a b\r\n"), "{screen}");
}

#[test]
fn the_socket_of_a_terminal_is_private_to_the_manager() {
    let state = tempfile::tempdir().unwrap();
    // Longer than the address of a socket can be.
    let deep = state.path().join("x".repeat(100)).join("y".repeat(100));
    fs::create_dir_all(&deep).unwrap();
    let job = bash(1);
    let prepared = super::Prepared::new(AttemptFolder::of(&deep, job.attempt)).unwrap();
    let folder = prepared.launch(super::Plan { order: job, script: None }, super::launch_server()).unwrap();
    let mut ada = AttachedUser::at(&folder);
    let socket = fs::metadata(folder.path().join("terminal")).unwrap();
    assert!(socket.file_type().is_socket() && socket.permissions().mode() & 0o777 == 0o600);
    ada.types("exit\r");
    ended(&folder);
    assert!(!folder.path().join("terminal").exists());

    let folder = launch(&state, order(2, &["sleep", "3600"]));
    let none = connect_terminal(&folder).unwrap_err();
    assert_eq!(none.to_string(), "it has no terminal: it was not submitted with --interactive");
    running(&folder).signal(Signal::Kill).unwrap();
    ended(&folder);
}
