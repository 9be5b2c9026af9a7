//! The terminal of the view. It is restored at every end: by a key, by a signal, by a panic.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::panic;
use std::sync::Mutex;
use std::thread;

use jiff::tz::TimeZone;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::raise;

use super::model::{Model, Size};
use super::view::{self, Appearance};

/// Held during drawing, and by a panicking thread until the program ends.
static DRAWING: Mutex<()> = Mutex::new(());

type Drawn = Terminal<CrosstermBackend<BufWriter<File>>>;

/// A terminal that shows the view until this is dropped.
pub(super) struct Screen {
    terminal: Drawn,
    appearance: Appearance,
    zone: TimeZone,
}

impl Screen {
    /// Takes the terminal over.
    pub(super) fn new(appearance: Appearance) -> io::Result<Self> {
        restore_on_panic();
        Ok(Self { terminal: take_over()?, appearance, zone: TimeZone::system() })
    }

    /// Restores the terminal and stops until SIGCONT.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        restore();
        // To this thread, so that it stops here.
        raise(SIGTSTP)?;
        self.terminal = take_over()?;
        Ok(())
    }

    /// How large it is.
    pub(super) fn size(&self) -> io::Result<Size> {
        let size = self.terminal.size()?;
        Ok(Size { columns: size.width, rows: size.height })
    }

    /// Draws the changes.
    pub(super) fn draw(&mut self, model: &Model) -> io::Result<()> {
        let Self { terminal, appearance, zone } = self;
        let _held = DRAWING.lock();
        terminal.draw(|frame| view::draw(model, zone, *appearance, frame.buffer_mut())).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Takes over and clears the terminal.
fn take_over() -> io::Result<Drawn> {
    // Not through the standard output of the library: its lock is held, and a thread that panics must get through.
    let drawn = Terminal::new(CrosstermBackend::new(BufWriter::new(terminal()?)))?;
    enable_raw_mode()?;
    execute!(terminal()?, EnterAlternateScreen, Hide).inspect_err(|_| restore())?;
    Ok(drawn)
}

fn terminal() -> io::Result<File> {
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

/// Restores the terminal; ignores one that is gone.
fn restore() {
    if let Ok(mut terminal) = terminal() {
        let _ = execute!(terminal, LeaveAlternateScreen, Show);
        let _ = terminal.flush();
    }
    let _ = disable_raw_mode();
}

/// A panic in any thread restores the terminal before its message is printed, and ends the program.
fn restore_on_panic() {
    let before = panic::take_hook();
    let draws = thread::current().id();
    panic::set_hook(Box::new(move |panic| {
        // The thread that draws may hold it already, and draws no more.
        let _held = (thread::current().id() != draws).then(|| DRAWING.lock());
        restore();
        before(panic);
        std::process::exit(101);
    }));
}
