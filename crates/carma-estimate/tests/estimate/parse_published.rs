//! Published summaries. They are not part of the project: this test reads the folder that `CARMA_DATA` names.

use carma_estimate::parse;
use carma_estimate::training::Training;
use carma_testing::{need, published_data};

use crate::parse_lab::check;

/// Totals that the files state wrongly: weights that are shared count twice, or parameters that are no module's not at all. What the layers
/// themselves state is right, and given here.
const WRONG: [(&str, u64); 6] = [
    ("BERT_base", 108_340_804),
    ("BERT_large", 333_610_308),
    ("gpt2_large", 774_030_080),
    ("gpt2_xl", 1_557_611_200),
    ("xlnet_base_cased", 117_310_466),
    ("xlnet_large_cased", 361_320_450),
];

#[test]
fn every_published_summary_has_the_parameters_that_it_states() {
    let folder = need!(published_data()).join("summaries");
    let mut read = 0;
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let parsed =
            parse::read(&std::fs::read(&path).unwrap(), None, &Training::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
        check(&parsed.model, name);
        let expected = WRONG.iter().find(|(wrong, _)| *wrong == name).map_or(parsed.model.stated_parameters, |(_, right)| Some(*right));
        assert_eq!(Some(parsed.model.parameters()), expected, "{name}");
        read += 1;
    }
    assert!(read > 30, "{read} summaries only");
}
