//! A confusion matrix.

use carma_format::draw::{Anchor, Chart};

use crate::evaluate::Confusion;

/// The matrix: a row per measured class, darker where more of it was predicted.
pub fn confusion(confusion: &Confusion, title: &str) -> String {
    const CELL: f64 = 46.0;
    const LEFT: f64 = 110.0;
    const TOP: f64 = 60.0;
    let side = CELL * confusion.classes.len() as f64;
    let mut chart = Chart::new("confusion", title, LEFT + side + 20.0);
    chart.height = TOP + side + 30.0;
    chart.text("strong", Anchor::Middle, (chart.width / 2.0, 20.0), title);
    let summary = format!("accuracy {:.3}, too low {:.3}, {} rows", confusion.accuracy(), confusion.under_share(), confusion.rows());
    chart.text("small", Anchor::Middle, (LEFT + side / 2.0, TOP + side + 20.0), &summary);
    for (truth, (name, row)) in confusion.classes.iter().zip(&confusion.counts).enumerate() {
        let y = TOP + CELL * truth as f64;
        chart.text("small", Anchor::End, (LEFT - 8.0, y + CELL / 2.0 + 4.0), name);
        chart.text("small", Anchor::Middle, (LEFT + CELL * (truth as f64 + 0.5), TOP - 8.0), name);
        let all = row.iter().sum::<usize>().max(1) as f64;
        for (answer, &count) in row.iter().enumerate() {
            let x = LEFT + CELL * answer as f64;
            // Light enough for text on it.
            let shade = 0.7 * count as f64 / all;
            let tooltip = format!("{name} taken for {}: {count}", confusion.classes[answer]);
            chart.shaded("s1", ((x, y), (CELL - 1.0, CELL - 1.0)), shade, &tooltip);
            if count > 0 {
                chart.text("label", Anchor::Middle, (x + CELL / 2.0, y + CELL / 2.0 + 4.0), &count.to_string());
            }
        }
    }
    chart.stand_alone()
}
