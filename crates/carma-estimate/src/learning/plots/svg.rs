//! SVG by hand: the few shapes that these pictures need.

use std::fmt::Write;

/// Colours of classes, told apart by colour-blind eyes (after Okabe and Ito).
pub(super) const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#00876a", "#b5498a", "#b07d00", "#3b9fd9", "#6a4fb3", "#7a4a2b"];

/// Where a text stands relative to its place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture in the making.
#[derive(Debug)]
pub(super) struct Picture {
    size: (f64, f64),
    title: String,
    body: String,
}

impl Picture {
    /// An empty one, its title on top.
    pub(super) fn new(title: &str, size: (f64, f64)) -> Self {
        let mut picture = Self { size, title: escape(title), body: String::new() };
        picture.text((size.0 / 2.0, 20.0), Anchor::Middle, title);
        picture
    }

    pub(super) fn rectangle(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str, tooltip: &str) {
        let tooltip = escape(tooltip);
        // Writing to a string does not fail.
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"><title>{tooltip}</title></rect>"
        );
    }

    pub(super) fn dot(&mut self, (x, y): (f64, f64), fill: &str) {
        let _ = writeln!(self.body, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"{fill}\" fill-opacity=\".55\"/>");
    }

    pub(super) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), stroke: &str) {
        let _ = writeln!(self.body, "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{stroke}\"/>");
    }

    pub(super) fn text(&mut self, place: (f64, f64), anchor: Anchor, text: &str) {
        self.coloured_text(place, anchor, "#1c2430", text);
    }

    pub(super) fn coloured_text(&mut self, (x, y): (f64, f64), anchor: Anchor, fill: &str, text: &str) {
        let side = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        let _ = writeln!(self.body, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{side}\" fill=\"{fill}\">{text}</text>");
    }

    /// The file.
    pub(super) fn finish(self) -> String {
        let Self { size: (width, height), title, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"{title}\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" font-family=\"system-ui,sans-serif\" font-size=\"12\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{body}</svg>\n"
        )
    }
}

/// Text as it may stand between tags and in attributes; what XML does not allow is left out.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => {}
            other if other.is_control() => safe.push(' '),
            other => safe.push(other),
        }
    }
    safe
}
