//! A confusion matrix as a picture.

use super::svg::{Anchor, Picture};
use crate::learning::evaluate::Confusion;

/// True classes downwards, answers to the right; each row's shade is its share of the class.
pub fn confusion(confusion: &Confusion, title: &str) -> String {
    const CELL: f64 = 46.0;
    const LEFT: f64 = 110.0;
    const TOP: f64 = 60.0;
    let classes = confusion.classes.len() as f64;
    let mut picture = Picture::new(title, (LEFT + CELL * classes + 20.0, TOP + CELL * classes + 30.0));
    let summary = format!("accuracy {:.3}, too low {:.3}, {} rows", confusion.accuracy(), confusion.under_share(), confusion.rows());
    picture.text((LEFT + CELL * classes / 2.0, TOP + CELL * classes + 20.0), Anchor::Middle, &summary);
    for (truth, (name, row)) in confusion.classes.iter().zip(&confusion.counts).enumerate() {
        let y = TOP + CELL * truth as f64;
        picture.text((LEFT - 8.0, y + CELL / 2.0 + 4.0), Anchor::End, name);
        picture.text((LEFT + CELL * (truth as f64 + 0.5), TOP - 8.0), Anchor::Middle, name);
        let all = row.iter().sum::<usize>().max(1) as f64;
        for (answer, &count) in row.iter().enumerate() {
            let share = count as f64 / all;
            // From white to blue.
            let towards = |full: f64| 255.0 - share * (255.0 - full);
            let fill = format!("rgb({:.0},{:.0},{:.0})", towards(0.0), towards(114.0), towards(178.0));
            let x = LEFT + CELL * answer as f64;
            picture.rectangle((x, y), (CELL - 1.0, CELL - 1.0), &fill, &format!("{name} taken for {}: {count}", confusion.classes[answer]));
            if count > 0 {
                let ink = if share > 0.5 { "#ffffff" } else { "#1c2430" };
                picture.coloured_text((x + CELL / 2.0, y + CELL / 2.0 + 4.0), Anchor::Middle, ink, &count.to_string());
            }
        }
    }
    picture.finish()
}
