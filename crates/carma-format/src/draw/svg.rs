//! SVG by hand: elements, escaped text, and charts that stand alone or sit in a page.

use std::fmt::Write;

use super::palette::LIGHT;
use crate::text::{shortened, width};

/// Text as it may stand between tags and in attributes. Characters that XML does not allow at all are left out.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\t' | '\n' | '\r' => safe.push(' '),
            '\u{fffe}' | '\u{ffff}' => {}
            other if other.is_control() => {}
            other => safe.push(other),
        }
    }
    safe
}

/// A coordinate to a tenth of a pixel, as short as it can be written; what is no number is drawn at zero.
pub fn coordinate(value: f64) -> String {
    let tenths = if value.is_finite() { (value * 10.0).round() / 10.0 } else { 0.0 };
    // Zero times anything: no "-0".
    if tenths == 0.0 { "0".to_owned() } else { tenths.to_string() }
}

/// One element with its attributes and all that is in it.
#[derive(Debug, Clone)]
#[must_use]
pub struct Element {
    name: &'static str,
    attributes: String,
    inside: String,
}

impl Element {
    /// An element of this name with nothing in it.
    pub const fn new(name: &'static str) -> Self {
        Self { name, attributes: String::new(), inside: String::new() }
    }

    /// An element of a class, for the style sheet.
    pub fn of_class(name: &'static str, class: &str) -> Self {
        Self::new(name).attribute("class", class)
    }

    /// With an attribute, whose value is escaped.
    pub fn attribute(mut self, name: &str, value: &str) -> Self {
        // Writing to a string does not fail.
        let _ = write!(self.attributes, " {name}=\"{}\"", escape(value));
        self
    }

    /// Several coordinates at once.
    pub fn at<const N: usize>(mut self, places: [(&str, f64); N]) -> Self {
        for (name, value) in places {
            let _ = write!(self.attributes, " {name}=\"{}\"", coordinate(value));
        }
        self
    }

    /// With a text behind all that is in it, escaped.
    pub fn text(mut self, text: &str) -> Self {
        self.inside.push_str(&escape(text));
        self
    }

    /// With another element behind all that is in it.
    pub fn child(mut self, child: &Self) -> Self {
        child.write_to(&mut self.inside);
        self
    }

    /// With a chart behind all that is in it.
    pub fn chart(mut self, chart: &Chart) -> Self {
        self.inside.push_str(&chart.inline());
        self
    }

    /// What browsers show under the pointer and screen readers read.
    pub fn tooltip(self, text: &str) -> Self {
        self.child(&Self::new("title").text(text))
    }

    /// Writes it out.
    pub fn write_to(&self, out: &mut String) {
        let Self { name, attributes, inside } = self;
        // In HTML only drawn shapes may close themselves.
        let _ = match *name {
            "rect" | "line" | "path" | "circle" if inside.is_empty() => write!(out, "<{name}{attributes}/>"),
            _ => write!(out, "<{name}{attributes}>{inside}</{name}>"),
        };
    }
}

/// Where a text stands relative to its place.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// The upper left corner of a rectangle, and its size.
pub type Spot = ((f64, f64), (f64, f64));

/// A chart: a name for its file, a sentence for who cannot see it, and what is drawn.
#[derive(Debug, Clone)]
pub struct Chart {
    /// File name without its ending, and the start of ids within.
    pub name: String,
    /// What it shows, in a sentence.
    pub label: String,
    /// How wide it is.
    pub width: f64,
    /// How high, which is known when all is drawn.
    pub height: f64,
    body: String,
}

impl Chart {
    /// An empty chart of no height yet.
    pub fn new(name: &str, label: &str, width: f64) -> Self {
        Self { name: name.to_owned(), label: label.to_owned(), width, height: 0.0, body: String::new() }
    }

    /// Draws an element over what is there.
    pub fn draw(&mut self, element: &Element) {
        element.write_to(&mut self.body);
        self.body.push('\n');
    }

    /// A rectangle from its upper left corner, with its size and what it says.
    pub fn rectangle(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), tooltip: &str) {
        let places = [("x", x), ("y", y), ("width", width.max(0.0)), ("height", height.max(0.0))];
        self.draw(&Element::of_class("rect", class).at(places).tooltip(tooltip));
    }

    /// The same in a shade of its colour, from 0 to 1.
    pub fn shaded(&mut self, class: &str, ((x, y), (width, height)): Spot, shade: f64, tooltip: &str) {
        let places = [("x", x), ("y", y), ("width", width.max(0.0)), ("height", height.max(0.0))];
        let element = Element::of_class("rect", &format!("bar {class}")).at(places).attribute("fill-opacity", &format!("{shade:.2}"));
        self.draw(&element.tooltip(tooltip));
    }

    /// A dot in the colour of a class.
    pub fn dot(&mut self, class: &str, (x, y): (f64, f64)) {
        let circle = Element::of_class("circle", &format!("dot {class}")).at([("cx", x), ("cy", y), ("r", 2.5)]);
        self.draw(&circle.attribute("fill-opacity", ".55"));
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.draw(&Element::of_class("line", class).at([("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2)]));
    }

    /// A path, as SVG writes it.
    pub fn path(&mut self, class: &str, data: &str) {
        self.draw(&Element::of_class("path", class).attribute("d", data));
    }

    /// A text at a place.
    pub fn text(&mut self, class: &str, anchor: Anchor, (x, y): (f64, f64), text: &str) {
        let side = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " middle",
            Anchor::End => " end",
        };
        self.draw(&Element::of_class("text", format!("{class}{side}").trim_start()).at([("x", x), ("y", y)]).text(text));
    }

    /// A text cut to this many characters. The pointer shows all of it.
    pub fn cut_text(&mut self, class: &str, anchor: Anchor, place: (f64, f64), text: &str, most: usize) {
        if width(text) <= most {
            return self.text(class, anchor, place, text);
        }
        let mut group = Self::new("", "", 0.0);
        group.text(class, anchor, place, &shortened(text, most));
        self.draw(&Element { inside: group.body.trim_end().to_owned(), ..Element::new("g") }.tooltip(text));
    }

    /// For a page whose style sheet has the colours.
    pub fn inline(&self) -> String {
        self.wrapped("", "")
    }

    /// A file of its own, on a light ground.
    pub fn stand_alone(&self) -> String {
        self.with_metadata("")
    }

    /// The same, with text for programs and readers of the file that is not drawn.
    pub fn with_metadata(&self, text: &str) -> String {
        let ground = Element::of_class("rect", "ground").at([("width", self.width), ("height", self.height)]);
        let metadata = if text.is_empty() { String::new() } else { format!("<metadata>{}</metadata>\n", escape(text)) };
        let mut inside = format!("{metadata}<style>\n{}</style>\n", LIGHT.rules());
        ground.write_to(&mut inside);
        inside.push('\n');
        let size = format!(" width=\"{}\" height=\"{}\"", coordinate(self.width), coordinate(self.height));
        self.wrapped(&size, &inside)
    }

    fn wrapped(&self, size: &str, before: &str) -> String {
        let (width, height, label) = (coordinate(self.width), coordinate(self.height), escape(&self.label));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" aria-label=\"{label}\" \
             viewBox=\"0 0 {width} {height}\"{size}>\n{before}{}</svg>\n",
            self.body
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(escape("<a & \"b\" 'c'>\u{0}\n"), "&lt;a &amp; &quot;b&quot; &#39;c&#39;&gt; ");
    }

    #[test]
    fn coordinates_are_short() {
        let written = [1.0, 0.25, -0.01, f64::NAN, 12.34].map(coordinate);
        assert_eq!(written, ["1", "0.3", "0", "0", "12.3"]);
    }
}
