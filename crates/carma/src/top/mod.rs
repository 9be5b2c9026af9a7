//! `carma top`: the GPUs, the jobs and what happens to them, live on a terminal.
//!
//! ```text
//!  keys ───┐                        ┌──► view ──► screen
//!  signals ┼─ messages ──► model ───┤
//!  poller ─┘                        └──► requests ──► poller ──► manager
//! ```

#[cfg(test)]
mod fixtures;
mod model;
mod plain;
mod poll;
mod report;
mod screen;
mod view;
mod wrap;

use std::io::{IsTerminal, Write, stdin};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use carma_format::{Stream, Terminal};
use carma_manager::client::Client;
use clap::Args;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use self::model::{ExitReason, Message, Model, Request, Size};
use self::poll::{Poller, listen};
use self::screen::Screen;
use self::view::Appearance;
use crate::manager::Manager;

/// Between pictures.
const FRAME: Duration = Duration::from_millis(100);
/// Interval of redraws without any message.
const TICK: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
#[command(after_help = "Press ? for the keys, q to quit. Only operators can act on \
jobs of other users. With --plain, or on a terminal that cannot be drawn on, it \
prints the state once as text, and then a line per event.\n\nExamples:\n  carma top\n  carma top --host https://server:7080")]
pub(crate) struct Arguments {
    /// Use no colours, as with `NO_COLOR`. Letters identify the jobs.
    #[arg(long)]
    no_color: bool,
    /// Draw with ASCII characters only. This is the default if the locale is not UTF-8.
    #[arg(long)]
    ascii: bool,
    #[command(flatten)]
    manager: Manager,
}

pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<ExitCode> {
    let terminal = Terminal::current();
    let drawn = terminal.output == Stream::Screen && stdin().is_terminal();
    if !drawn && !terminal.plain && terminal.output != Stream::Lines {
        bail!("carma top needs a terminal; with --plain, it prints the same as text");
    }
    let client = arguments.manager.connect()?;
    if !drawn {
        report::run(client, output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let terminal = Terminal { unicode: terminal.unicode && !arguments.ascii, ..terminal };
    terminal.replaced(|| draw(client, Appearance { colour: terminal.colour && !arguments.no_color, unicode: terminal.unicode }))
}

/// Draws until a key or a signal ends it.
fn draw(client: Client, appearance: Appearance) -> Result<ExitCode> {
    let address = client.address().to_string();
    let (messages, arriving) = channel();
    let (requests, requested) = channel();
    let mut screen = Screen::new(appearance)?;
    let mut model = Model::new(address, screen.size()?);
    let (mut listener, poller) = (client.another()?, Poller::new(client, messages.clone()));
    let events = messages.clone();
    forward_signals(messages.clone())?;
    spawn("poller", move || poller.run(&requested))?;
    spawn("listener", move || listen(&mut listener, &events))?;
    spawn("keys", move || read_keys(&messages))?;
    match show(&mut screen, &mut model, &arriving, &requests)? {
        ExitReason::Wanted => Ok(ExitCode::SUCCESS),
        ExitReason::Signalled(signal) => Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))),
    }
}

/// Handles messages and draws the model, at most ten times a second.
fn show(screen: &mut Screen, model: &mut Model, arriving: &Receiver<Message>, requests: &Sender<Request>) -> Result<ExitReason> {
    let begun = Instant::now();
    let (mut drawn, mut changed) = (None::<Instant>, true);
    loop {
        let due = drawn.map_or(Duration::ZERO, |drawn| FRAME.saturating_sub(drawn.elapsed()));
        if changed && due.is_zero() {
            screen.draw(model)?;
            (drawn, changed) = (Some(Instant::now()), false);
            continue;
        }
        let message = match arriving.recv_timeout(if changed { due } else { TICK }) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) if changed => continue,
            Err(RecvTimeoutError::Timeout) => Message::Tick,
            Err(RecvTimeoutError::Disconnected) => return Ok(ExitReason::Wanted),
        };
        changed = true;
        for request in model.update(message, begun.elapsed()) {
            match request {
                Request::Leave(departure) => return Ok(departure),
                Request::Suspend => screen.suspend()?,
                request => requests.send(request)?,
            }
        }
    }
}

fn read_keys(messages: &Sender<Message>) {
    loop {
        let message = match event::read() {
            Ok(Event::Key(key)) if key.kind == KeyEventKind::Press => Message::Key(key),
            Ok(Event::Resize(columns, rows)) => Message::Resized(Size { columns, rows }),
            Ok(_) => continue,
            // The terminal is gone.
            Err(_) => Message::Leave(ExitReason::Wanted),
        };
        let last = matches!(message, Message::Leave(_));
        if messages.send(message).is_err() || last {
            return;
        }
    }
}

fn forward_signals(messages: Sender<Message>) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    spawn("signals", move || {
        for signal in signals.forever() {
            let _ = messages.send(Message::Leave(ExitReason::Signalled(signal)));
        }
    })
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(run)?;
    Ok(())
}
