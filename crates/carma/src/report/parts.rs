//! Building blocks of sections. Text stays text: an [`Element`] escapes all its content.

use carma_format::draw::{Anchor, Chart, Element, Scale, Unit, up};

/// A part of the page under a heading.
pub(super) fn section(id: &str, title: &str) -> Element {
    Element::new("section").attribute("id", id).child(&Element::new("h2").text(title))
}

pub(super) fn heading(title: &str) -> Element {
    Element::new("h3").text(title)
}

pub(super) fn paragraph(text: &str) -> Element {
    Element::new("p").text(text)
}

/// A side note.
pub(super) fn note(text: &str) -> Element {
    Element::of_class("p", "note").text(text)
}

pub(super) fn figure(chart: &Chart) -> Element {
    let width = if chart.width > 800.0 { "scroll wide" } else { "scroll narrow" };
    Element::of_class("figure", width).attribute("tabindex", "0").attribute("aria-label", &chart.label).chart(chart)
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(super) enum Column {
    Text(&'static str),
    Number(&'static str),
}

impl Column {
    fn cell(self, name: &'static str) -> Element {
        match self {
            Self::Text(_) => Element::of_class(name, "text"),
            Self::Number(_) => Element::new(name),
        }
    }
}

/// A table under a caption; the first column names the rows.
pub(super) fn table<const N: usize>(caption: &str, columns: [Column; N], rows: impl IntoIterator<Item = [String; N]>) -> Element {
    let titled = |row: Element, column: &Column| {
        let (Column::Text(title) | Column::Number(title)) = column;
        row.child(&column.cell("th").attribute("scope", "col").text(title))
    };
    let head = columns.iter().fold(Element::new("tr"), titled);
    let mut body = Element::new("tbody");
    for row in rows {
        let mut cells = columns.iter().zip(&row);
        let first = cells.next().map(|(column, text)| column.cell("th").attribute("scope", "row").text(text));
        let line = first.iter().fold(Element::new("tr"), Element::child);
        body = body.child(&cells.fold(line, |line, (column, text)| line.child(&column.cell("td").text(text))));
    }
    let table = Element::new("table").child(&Element::new("caption").text(caption)).child(&Element::new("thead").child(&head)).child(&body);
    Element::of_class("div", "scroll").attribute("tabindex", "0").attribute("role", "region").attribute("aria-label", caption).child(&table)
}

/// Columns side by side, each with its name below: how many are in each class.
pub(super) fn classes(name: &str, label: &str, title: &str, counted: &[(String, f64)], unit: impl Fn(f64) -> String) -> Chart {
    const WIDTH: f64 = 720.0;
    const LEFT: f64 = 52.0;
    const RIGHT: f64 = 708.0;
    const TOP: f64 = 34.0;
    const BOTTOM: f64 = 200.0;
    let mut chart = Chart::new(name, label, WIDTH);
    let most = counted.iter().map(|(_, size)| *size).fold(0.0, f64::max);
    let whole = counted.iter().all(|(_, size)| size.fract() == 0.0);
    let scale = Scale::linear(
        (0.0, if whole { (most * 1.05).max(3.0) } else { most * 1.05 }),
        (BOTTOM, TOP),
        if whole { Unit::Count } else { Unit::Number },
    );
    up(&mut chart, &scale, (LEFT, RIGHT), title);
    let slot = (RIGHT - LEFT) / counted.len().max(1) as f64;
    // Names of many columns would overlap.
    let every = counted.len().div_ceil(12).max(1);
    for (place, (name, size)) in counted.iter().enumerate() {
        let (left, top) = (LEFT + slot * place as f64, scale.place(*size));
        if *size > 0.0 {
            chart.rectangle("bar s1", (left + slot * 0.12, top), (slot * 0.76, BOTTOM - top), &format!("{name}: {}", unit(*size)));
        }
        if place % every == 0 {
            chart.text("small quiet", Anchor::Middle, (left + slot / 2.0, BOTTOM + 15.0), name);
        }
    }
    chart.line("axis", (LEFT, BOTTOM), (RIGHT, BOTTOM));
    chart.height = BOTTOM + 24.0;
    chart
}

/// A share in per cent.
pub(super) fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.01 { format!("{:.1} %", share * 100.0) } else { format!("{:.0} %", share * 100.0) }
}

/// A dash if unset.
pub(super) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

/// Elements one after the other.
pub(super) fn joined(elements: &[Element]) -> String {
    let mut html = String::new();
    for element in elements {
        element.write_to(&mut html);
        html.push('\n');
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_never_markup() {
        let rows = [["<b>ada</b>".to_owned(), "1".to_owned()]];
        let html = joined(&[table("Who & what", [Column::Text("User"), Column::Number("Jobs")], rows), paragraph("\"<script>\"")]);
        insta::assert_snapshot!(html);
    }
}
