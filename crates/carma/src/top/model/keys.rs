//! Key bindings.

use carma_manager::api::{JobAction, LogStream};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::panel::{LogPanel, Panel, TextPanel};
use super::{ExitReason, Model, Pane, Prompt, Request, Subject};
use crate::manager::identity;

/// Longest text of a filter.
const LONGEST_FILTER: usize = 200;

impl Model {
    pub(super) fn press(&mut self, key: KeyEvent) -> Vec<Request> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return vec![Request::Leave(ExitReason::Wanted)],
            KeyCode::Char('z') if control => return vec![Request::Suspend],
            _ => {}
        }
        let requests = match self.prompt.take() {
            Some(Prompt::Confirm { name, act, .. }) => match key.code {
                KeyCode::Char('y' | 'Y') => vec![Request::Act(name, act)],
                _ => Vec::new(),
            },
            Some(Prompt::Filter) => {
                self.type_filter(key.code, control);
                Vec::new()
            }
            None if self.panel.is_some() => self.press_in_panel(key.code),
            None => self.press_in_lists(key.code),
        };
        // Leaving the events scrolls back to the latest.
        if self.focus != Pane::Events {
            self.events.follow();
        }
        requests
    }

    fn type_filter(&mut self, key: KeyCode, control: bool) {
        let text = &mut self.jobs.filter.text;
        let done = match key {
            KeyCode::Enter => true,
            KeyCode::Esc => {
                text.clear();
                true
            }
            KeyCode::Char('u' | 'w') if control => {
                text.clear();
                false
            }
            KeyCode::Backspace => {
                text.pop();
                false
            }
            KeyCode::Char(letter) if !control && text.len() < LONGEST_FILTER => {
                text.push(letter);
                false
            }
            _ => false,
        };
        self.prompt = (!done).then_some(Prompt::Filter);
        self.jobs.rearrange();
    }

    fn press_in_panel(&mut self, key: KeyCode) -> Vec<Request> {
        let rows = self.panel_rows();
        if let Some(by) = movement(key, rows) {
            let columns = self.size.columns.into();
            self.panel.iter_mut().for_each(|panel| panel.scroll(by, columns, rows));
            return Vec::new();
        }
        match (key, &mut self.panel) {
            (KeyCode::Char('e'), Some(Panel::Log(panel))) => {
                let stream = match panel.stream {
                    LogStream::Stdout => LogStream::Stderr,
                    LogStream::Stderr | LogStream::Both => LogStream::Stdout,
                };
                let name = panel.name.clone();
                self.open_log(name, stream)
            }
            (KeyCode::Char('l'), Some(Panel::Job(panel))) => {
                let name = panel.name.clone();
                self.open_log(name, LogStream::Stdout)
            }
            (KeyCode::Enter, Some(Panel::Log(panel))) => {
                let name = panel.name.clone();
                self.open_job(name)
            }
            (KeyCode::Esc | KeyCode::Char('q' | '?') | KeyCode::Enter, _) => {
                self.panel = None;
                vec![Request::Show(Subject::Nothing)]
            }
            _ => Vec::new(),
        }
    }

    fn press_in_lists(&mut self, key: KeyCode) -> Vec<Request> {
        if let Some(by) = movement(key, self.panel_rows() / 2) {
            match self.focus {
                Pane::Gpus => {
                    let last = self.answers.as_ref().map_or(0, |answers| answers.gpus.len().saturating_sub(1));
                    self.gpu = self.gpu.saturating_add_signed(by).min(last);
                }
                Pane::Jobs => self.jobs.move_by(by),
                Pane::Events => self.events.move_by(by),
            }
            return Vec::new();
        }
        match key {
            KeyCode::Char('q') => return vec![Request::Leave(ExitReason::Wanted)],
            KeyCode::Char('?') => self.panel = Some(Panel::Help),
            KeyCode::Char('/') => (self.focus, self.prompt) = (Pane::Jobs, Some(Prompt::Filter)),
            KeyCode::Char('s') => self.jobs.sort_by_next(),
            KeyCode::Char('e') => self.events.toggle(),
            KeyCode::Char('u') => {
                self.jobs.filter.mine = !self.jobs.filter.mine;
                self.jobs.rearrange();
            }
            KeyCode::Esc => {
                (self.jobs.filter.text, self.jobs.filter.mine) = (String::new(), false);
                self.jobs.rearrange();
            }
            KeyCode::Tab => self.focus = self.focus.next(),
            KeyCode::BackTab => self.focus = self.focus.next().next(),
            KeyCode::Enter => return self.enter(),
            KeyCode::Char('l') => {
                return self.target().map_or_else(Vec::new, |name| self.open_log(name, LogStream::Stdout));
            }
            KeyCode::Char('c') => self.confirm(JobAction::Cancel),
            KeyCode::Char('h') => self.confirm(JobAction::Hold),
            KeyCode::Char('r') => self.confirm(JobAction::Release),
            KeyCode::Char('R') => self.confirm(JobAction::Requeue),
            _ => {}
        }
        Vec::new()
    }

    /// A GPU's jobs are listed; of a job or an event, the job is shown.
    fn enter(&mut self) -> Vec<Request> {
        if self.focus != Pane::Gpus {
            return self.target().map_or_else(Vec::new, |name| self.open_job(name));
        }
        if let Some(gpu) = self.answers.as_ref().and_then(|answers| answers.gpus.get(self.gpu)) {
            self.jobs.filter.text = format!("gpu:{}", crate::manager::devices([gpu.device]));
            self.focus = Pane::Jobs;
            self.jobs.rearrange();
        }
        Vec::new()
    }

    /// The selected job, or the job of the selected event.
    fn target(&self) -> Option<String> {
        match self.focus {
            Pane::Events => Some(self.events.selected()?.job?.short()),
            Pane::Gpus | Pane::Jobs => self.jobs.selected().map(|row| identity(row.id, row.array)),
        }
    }

    fn open_job(&mut self, name: String) -> Vec<Request> {
        self.panel = Some(Panel::Job(TextPanel { name: name.clone(), lines: Vec::new(), above: 0 }));
        vec![Request::Show(Subject::Job(name))]
    }

    fn open_log(&mut self, name: String, stream: LogStream) -> Vec<Request> {
        self.panel = Some(Panel::Log(LogPanel { name: name.clone(), stream, lines: Vec::new(), below: 0, problem: None }));
        vec![Request::Show(Subject::Log(name, stream))]
    }
}

/// Distance that a key moves, with pages of this many rows.
fn movement(key: KeyCode, page: usize) -> Option<isize> {
    let page = isize::try_from(page.max(1)).unwrap_or(isize::MAX);
    Some(match key {
        KeyCode::Up | KeyCode::Char('k') => -1,
        KeyCode::Down | KeyCode::Char('j') => 1,
        KeyCode::PageUp => -page,
        KeyCode::PageDown | KeyCode::Char(' ') => page,
        KeyCode::Home | KeyCode::Char('g') => isize::MIN,
        KeyCode::End | KeyCode::Char('G') => isize::MAX,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::super::fixtures::{busy, model_of, press};
    use super::super::Message;
    use super::*;

    #[test]
    fn panels_are_opened_scrolled_and_closed() {
        let mut model = model_of(busy());
        assert_eq!(press(&mut model, "l"), [Request::Show(Subject::Log("1".to_owned(), LogStream::Stdout))]);
        let log = |steps| Message::Log("1".to_owned(), Ok("a line\n".repeat(steps).into_bytes()));
        let below = |model: &Model| match &model.panel {
            Some(Panel::Log(log)) => (log.lines.len(), log.below),
            _ => panic!("no log"),
        };
        model.update(log(100), Duration::ZERO);
        press(&mut model, "kkj");
        model.update(log(200), Duration::ZERO);
        assert_eq!(below(&model), (100, 1), "who reads is not moved");
        press(&mut model, "g");
        assert_eq!(below(&model), (100, 79));
        press(&mut model, "G");
        model.update(log(200), Duration::ZERO);
        assert_eq!(below(&model), (200, 0), "the end follows");
        model.update(Message::Log("7".to_owned(), Ok(Vec::new())), Duration::ZERO);
        assert_eq!(below(&model), (200, 0), "another's comes late");
        assert_eq!(press(&mut model, "e"), [Request::Show(Subject::Log("1".to_owned(), LogStream::Stderr))]);
        assert_eq!(press(&mut model, "\n"), [Request::Show(Subject::Job("1".to_owned()))]);
        assert_eq!(press(&mut model, "q"), [Request::Show(Subject::Nothing)], "the panel is left first");
        assert_eq!(press(&mut model, "q"), [Request::Leave(ExitReason::Wanted)]);
    }

    #[test]
    fn panes_take_their_keys() {
        let mut model = model_of(busy());
        assert_eq!(press(&mut model, "\t\n"), [Request::Show(Subject::Job("5".to_owned()))], "the latest event is of job 5");
        assert_eq!(
            press(&mut model, "\x1b\tj\nl"),
            [Request::Show(Subject::Nothing), Request::Show(Subject::Log("2".to_owned(), LogStream::Stdout))]
        );
        assert_eq!((model.jobs.filter.text.as_str(), model.jobs.len()), ("gpu:1", 3), "the jobs of the GPU that was selected");
    }

    #[test]
    fn control_c_leaves_and_control_z_stops_whatever_is_shown_and_filters_are_typed() {
        let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
        for keys in ["", "c", "/abc", "?", "l", "\n"] {
            let mut model = model_of(busy());
            press(&mut model, keys);
            assert_eq!(model.update(Message::Key(control('z')), Duration::ZERO), [Request::Suspend], "{keys:?}");
            assert_eq!(model.update(Message::Key(control('c')), Duration::ZERO), [Request::Leave(ExitReason::Wanted)], "{keys:?}");
        }
        let mut model = model_of(busy());
        press(&mut model, "/quy");
        assert_eq!(model.jobs.filter.text, "quy", "letters are letters here");
        model.update(Message::Key(KeyEvent::from(KeyCode::Backspace)), Duration::ZERO);
        assert_eq!(model.jobs.filter.text, "qu");
        model.update(Message::Key(control('u')), Duration::ZERO);
        assert_eq!((model.jobs.filter.text.as_str(), model.prompt.as_ref()), ("", Some(&Prompt::Filter)));
    }
}
