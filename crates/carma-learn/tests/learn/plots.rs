//! Pictures are well-formed, and neighbours stay neighbours.

use carma_learn::evaluate::Confusion;
use carma_learn::plots::{Tsne, confusion, map, pca, scatter, tsne};

/// Three groups far from each other, in four dimensions.
fn groups() -> (Vec<Vec<f32>>, Vec<usize>) {
    let mut random = fastrand::Rng::with_seed(2);
    let row = |place: usize| (0..4).map(|axis| if axis == place % 3 { 8.0 } else { 0.0 } + random.f32()).collect();
    ((0..90).map(row).collect(), (0..90).map(|place| place % 3).collect())
}

fn kept_apart(points: &[[f64; 2]], classes: &[usize]) -> usize {
    let distance = |one: &[f64; 2], other: &[f64; 2]| (one[0] - other[0]).powi(2) + (one[1] - other[1]).powi(2);
    let nearest = |place: usize| {
        let others = (0..points.len()).filter(|other| *other != place);
        others.min_by(|one, other| distance(&points[place], &points[*one]).total_cmp(&distance(&points[place], &points[*other]))).unwrap()
    };
    (0..points.len()).filter(|place| classes[nearest(*place)] == classes[*place]).count()
}

#[test]
fn groups_stay_groups_on_the_plane() {
    let (rows, classes) = groups();
    assert!(kept_apart(&pca(&rows), &classes) >= 88);
    let options = Tsne { perplexity: 10.0, steps: 200, seed: 4 };
    let points = tsne(&rows, options);
    let kept = kept_apart(&points, &classes);
    assert!(kept >= 88, "{kept}");
    assert_eq!(points, tsne(&rows, options));
    assert!(tsne(&[], options).is_empty() && pca(&[]).is_empty());
    assert!(tsne(&vec![vec![1.0]; 3], options).iter().flatten().all(|value| value.is_finite()));
}

#[test]
fn pictures_are_whole_and_safe() {
    let (rows, classes) = groups();
    let names: Vec<String> = ["<1>", "2 & 3", "4\u{0}"].map(str::to_owned).to_vec();
    let pairs = classes.iter().map(|class| (*class, (class + class / 2) % 3));
    let pictures = [
        confusion(&Confusion::of(names.clone(), pairs), "a \"title\""),
        scatter(&[(1000.0, 1100.0), (40_000.0, 20_000.0), (0.0, 5.0), (f64::NAN, 1.0)], "points"),
        scatter(&[], "nothing"),
        map(&pca(&rows), &classes, &names, "map"),
        map(&[[f64::NAN, 0.0]], &[0], &names, "map"),
    ];
    for picture in pictures {
        assert!(picture.starts_with("<svg xmlns") && picture.ends_with("</svg>\n") && !picture.contains("NaN"), "{picture}");
        assert_eq!(picture.matches("<text").count(), picture.matches("</text>").count());
        assert!(!picture.contains("<1>") && !picture.contains('\u{0}'));
    }
}
