//! Published tables: read by their headers, built into models, and hostile rows refused with their line.

use std::fs::File;

use carma_estimate::model::LayerKind;
use carma_learn::data::networks::{Cnn, CnnShape};
use carma_learn::data::{Network, Observation, read};
use carma_testing::{Missing, need, published_data};

/// A published table.
pub(crate) fn published(name: &str) -> Result<Vec<Observation>, Missing> {
    published_data().map(|folder| read(File::open(folder.join(name)).unwrap()).unwrap())
}

const MLP: &str = "Filename,Depth,Activations-Params,Activation Function,Total Activations,Total Parameters,Batch Size,\
                   Batch Normalization Layers,Dropout Layers,Max GPU Memory (MiB),Avg GPUTL,Avg GRACT,Avg SMACT,Avg SMOCC,Avg FP32A\n";
const ROW: &str = "input:10_output:3_depth:2_arch:gradual_batch:8_act:leaky_relu_dropout:0.3_dropout:True_batchnorm:True.out,\
                   3,[],LeakyReLU,0,150,8,2,2,1500,20.0,0.2,0.1,0.02,0.07\n";

#[test]
fn a_row_becomes_a_network() {
    let observations = read(format!("{MLP}{ROW}").as_bytes()).unwrap();
    let Network::Mlp(network) = &observations[0].network else { panic!("{observations:?}") };
    assert_eq!(network.widths(), [7, 4]);
    assert_eq!((observations[0].measured, observations[0].batch), (Some(1500.0), 8));
    assert!(observations[0].counters.is_some_and(|counters| (counters.utilisation - 0.2).abs() < 1e-12));
    let model = observations[0].model().unwrap();
    let classes: Vec<&str> = model.layers.iter().map(|layer| layer.class.as_str()).collect();
    let block = ["Linear", "BatchNorm1d", "LeakyReLU", "Dropout"];
    assert_eq!(classes, [&block[..], &block[..], &["Linear", "Softmax"]].concat());
    assert_eq!(model.parameters(), 10 * 7 + 7 + 14 + 7 * 4 + 4 + 8 + 4 * 3 + 3);
}

#[test]
fn hostile_rows_are_refused_with_their_line() {
    for (from, to) in [
        ("depth:2", "depth:0"),
        ("depth:2", "depth:99999999999999999999"),
        ("arch:gradual", "arch:spiral"),
        ("act:leaky_relu", "act:"),
        ("dropout:0.3", "dropout:NaN"),
        ("batchnorm:True", "batchnorm:maybe"),
        ("input:10_", ""),
        (",150,8,", ",150,9,"),
        (",1500,", ",-3,"),
        (",1500,", ",inf,"),
        (",1500,20.0", ",1500,plenty"),
    ] {
        let table = format!("{MLP}{ROW}{}", ROW.replacen(from, to, 1));
        let error = read(table.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("line 3: "), "{to}: {error}");
    }
    assert!(read("a,b\n1,2\n".as_bytes()).unwrap_err().to_string().contains("a,b"));
    assert!(read(format!("{MLP}one,two\n").as_bytes()).is_err());
    assert!(read(&b"Filename,\xff\n"[..]).is_err());
}

#[test]
fn residual_and_dense_networks_have_their_edges() {
    let plain = Cnn {
        channels: 3,
        size: 16,
        classes: 10,
        depth: 8,
        shape: CnnShape::Residual,
        filters: 16,
        activation: carma_estimate::learned::ActivationFunction::ReLU,
        dropout: None,
        batch_norm: true,
    };
    let count = |network: &Cnn, kind: LayerKind| network.build().layers.iter().filter(|layer| layer.kind == kind).count();
    // 16 is halved to 8, then 4, where no further unit follows.
    assert_eq!(count(&plain, LayerKind::Add), 4);
    let dense = Cnn { shape: CnnShape::Dense { transitions: 1 }, ..plain };
    let model = dense.build();
    assert_eq!(count(&dense, LayerKind::Concatenate), 8);
    let last = model.layers.iter().rev().find(|layer| layer.kind == LayerKind::Concatenate).unwrap();
    assert_eq!(last.output.dimensions(), [65 + 4 * 32, 8, 8]);
    assert_eq!(last.inputs.len(), 2);
}

/// Every row of every table, built by the rules, has the parameters that the table states.
#[test]
fn rebuilt_networks_have_the_stated_parameters() {
    let expected = [("memory_mlp.csv", 1993), ("memory_cnn_random.csv", 1371), ("memory_transformer_random.csv", 30)];
    for (table, rows) in expected {
        let observations = need!(published(table));
        assert_eq!(observations.len(), rows, "{table}");
        let differs = |observation: &&Observation| {
            let model = observation.model().unwrap();
            // The tables leave out the one slope of a PReLU.
            let slopes = model.layers.iter().filter(|layer| layer.class == "PReLU").count() as u64;
            Some(model.parameters() - slopes) != observation.stated_parameters
        };
        let different: Vec<_> = observations.iter().filter(differs).map(|observation| &observation.name).collect();
        assert!(different.is_empty(), "{table}: {different:?}");
    }
}

#[test]
fn fully_connected_rows_agree_with_the_formula_in_their_table() {
    let observations = need!(published("memory_fc_mnist.csv"));
    for observation in &observations {
        let model = observation.model().unwrap();
        let Network::FullyConnected(network) = observation.network else { panic!("{observation:?}") };
        let (activations, parameters, batch) = ((network.neurons * network.layers + 10) as f64, model.parameters() as f64, 32.0);
        let horus = 4.0 * (activations * batch + parameters + batch * parameters) / f64::from(1 << 20);
        assert!((horus / observation.published[0].1 - 1.0).abs() < 1e-6, "{} {horus} {:?}", observation.name, observation.published);
    }
}

#[test]
fn tables_of_named_models_are_read() {
    let (timm, real) = (need!(published("memory_timm.csv")), need!(published("memory_real_models.csv")));
    assert_eq!((timm.len(), real.len()), (2722, 40));
    assert!(timm.iter().all(|row| row.measured.is_some() && row.published.len() == 1 && row.model().is_none()));
    assert_eq!(real.iter().filter(|row| row.measured.is_none()).count(), 2);
}

const XMEM: &str = "gpu,torch,family,model,optimizer,batch,input_or_seq,dtype,measured_mib,xmem_mib,llmem_mib,ran_out\n\
                    RTX 3060,2.6.0,CNN,VGG16,Adagrad,480,3x86x86,float32,9280,9334,,false\n";

#[test]
fn rows_of_xmem_contain_gpu_and_other_estimates() {
    let row = &read(XMEM.as_bytes()).unwrap()[0];
    let Network::Xmem { model, optimizer, gpu } = &row.network else { panic!("{row:?}") };
    assert_eq!((model.as_str(), optimizer.as_str(), gpu.as_str()), ("VGG16", "Adagrad", "RTX 3060"));
    assert_eq!((row.batch, row.measured, row.crashed), (480, Some(9280.0), false));
    assert_eq!(row.published, [("xmem", 9334.0)]);
    assert!(read(XMEM.replace("true", "yes").replace("false", "yes").as_bytes()).unwrap_err().to_string().starts_with("line 2: ran_out"));
}
