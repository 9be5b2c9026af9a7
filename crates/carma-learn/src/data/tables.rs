//! One function for each table: a row becomes an observation.

use carma_estimate::Family;
use csv::StringRecord;

use super::networks::{Cnn, FullyConnected, Mlp, Network, Transformer};
use super::observation::{Counters, Label, Observation};

/// The known tables, for messages.
pub(super) const KNOWN: &str = "random MLPs, CNNs and Transformers (Filename ...), neurons/layers, TIMM models, real models, xMem's runs";

const MEMORY: &str = "Max GPU Memory (MiB)";

/// A row with its header.
pub(super) struct Row<'a> {
    pub(super) headers: &'a StringRecord,
    pub(super) record: &'a StringRecord,
}

type Interpret = fn(&Row) -> Result<Observation, String>;

/// The reader of rows with this header: the first whose columns are all present.
pub(super) fn of_header(headers: &StringRecord) -> Option<Interpret> {
    const TABLES: [(&[&str], Interpret); 7] = [
        (&["Filename", "Conv2d Count", MEMORY], cnn),
        (&["Filename", "Num Heads", MEMORY], transformer),
        (&["Filename", "Batch Normalization Layers", MEMORY], mlp),
        (&["gpumemory_max", "neurons", "layers"], fully_connected),
        (&["task", "model", "batch_size", "gpus", "measured_2025_09_mib"], real),
        (&["model", "batch_size", "measured_mib"], timm),
        (&["gpu", "model", "optimizer", "batch", "measured_mib", "ran_out"], xmem),
    ];
    let has = |column: &&str| headers.iter().any(|header| header == *column);
    TABLES.into_iter().find(|(columns, _)| columns.iter().all(has)).map(|(_, interpret)| interpret)
}

impl<'a> Row<'a> {
    fn optional(&self, column: &str) -> Option<&'a str> {
        let place = self.headers.iter().position(|header| header == column)?;
        self.record.get(place).map(str::trim).filter(|text| !text.is_empty())
    }

    fn text(&self, column: &str) -> Result<&'a str, String> {
        self.optional(column).ok_or_else(|| format!("column {column:?} is empty"))
    }

    fn number(&self, column: &str) -> Result<Option<f64>, String> {
        let Some(text) = self.optional(column) else { return Ok(None) };
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.map(Some).ok_or_else(|| format!("{column} is {text:?}, not a number"))
    }

    /// Memory in MiB; none if the cell is empty.
    fn memory(&self, column: &str) -> Result<Option<f64>, String> {
        match self.number(column)? {
            Some(memory) if !(0.0..1e9).contains(&memory) => Err(format!("{column} is {memory}, not a memory in MiB")),
            memory => Ok(memory),
        }
    }

    /// A whole number from 1; some tables write `32.0`.
    fn count(&self, column: &str) -> Result<u64, String> {
        let number = self.number(column)?.ok_or_else(|| format!("column {column:?} is empty"))?;
        if (1.0..=1e8).contains(&number) && number.fract() == 0.0 {
            Ok(number as u64)
        } else {
            Err(format!("{column} is {number}, not a whole number from 1"))
        }
    }

    fn parameters(&self) -> Result<Option<u64>, String> {
        Ok(self.number("Total Parameters")?.map(|parameters| parameters as u64))
    }

    /// Whether the run crashed, by its status; tables without a status contain no crashes.
    fn crashed(&self) -> Result<bool, String> {
        match self.optional("Status") {
            None | Some("SUCCESSFUL") => Ok(false),
            Some("OOM_CRASH") => Ok(true),
            Some(other) => Err(format!("status is {other:?}, neither SUCCESSFUL nor OOM_CRASH")),
        }
    }

    fn label(&self) -> Result<Label, String> {
        let Some(word) = self.optional("Label") else { return Ok(Label::Measured) };
        Label::named(word).ok_or_else(|| format!("label is {word:?}, not measured, dry-run or static"))
    }

    /// Utilisation; none if a column is absent or -1 (not recorded).
    fn counters(&self) -> Result<Option<Counters>, String> {
        let mut means = [0.0; 5];
        for (mean, column) in means.iter_mut().zip(["Avg GPUTL", "Avg GRACT", "Avg SMACT", "Avg SMOCC", "Avg FP32A"]) {
            match self.number(column)? {
                Some(value) if value >= 0.0 => *mean = value,
                _ => return Ok(None),
            }
        }
        let [utilisation, engine, smact, smocc, fp32] = means;
        Ok(Some(Counters { utilisation: utilisation / 100.0, engine, smact, smocc, fp32 }))
    }

    /// Estimates of published estimators, by column.
    fn published(&self, columns: &[(&'static str, &str)]) -> Result<Vec<(&'static str, f64)>, String> {
        let answer = |(name, column): &(&'static str, &str)| Ok(self.memory(column)?.map(|memory| (*name, memory)));
        columns.iter().filter_map(|column| answer(column).transpose()).collect()
    }

    /// A row of a table of random networks.
    fn random(&self, (network, batch): (Network, u64), family: Family) -> Result<Observation, String> {
        let stated = self.count("Batch Size")?;
        if stated != batch {
            return Err(format!("the file name's batch is {batch}, the column's {stated}"));
        }
        Ok(Observation {
            name: self.text("Filename")?.to_owned(),
            batch,
            measured: self.memory(MEMORY)?,
            crashed: self.crashed()?,
            network,
            family: Some(family),
            counters: self.counters()?,
            stated_parameters: self.parameters()?,
            label: self.label()?,
            published: Vec::new(),
        })
    }

    /// A row of any other table.
    fn plain(&self, name: String, batch: u64, memory: &str, network: Network) -> Result<Observation, String> {
        Ok(Observation {
            name,
            batch,
            measured: self.memory(memory)?,
            crashed: false,
            network,
            family: None,
            counters: None,
            stated_parameters: None,
            label: Label::Measured,
            published: Vec::new(),
        })
    }
}

fn mlp(row: &Row) -> Result<Observation, String> {
    let (network, batch) = Mlp::named(row.text("Filename")?)?;
    row.random((Network::Mlp(network), batch), Family::Mlp)
}

fn cnn(row: &Row) -> Result<Observation, String> {
    let (network, batch) = Cnn::named(row.text("Filename")?, row.count("Conv2d Count")?)?;
    row.random((Network::Cnn(network), batch), Family::Cnn)
}

fn transformer(row: &Row) -> Result<Observation, String> {
    let (network, batch) = Transformer::named(row.text("Filename")?)?;
    let unlisted = network.unlisted_parameters();
    let mut observation = row.random((Network::Transformer(network), batch), Family::Transformer)?;
    observation.stated_parameters = observation.stated_parameters.map(|listed| listed.saturating_add(unlisted));
    Ok(observation)
}

fn fully_connected(row: &Row) -> Result<Observation, String> {
    let network = FullyConnected { neurons: row.count("neurons")?, layers: row.count("layers")? };
    let FullyConnected { neurons, layers } = network;
    if neurons > 1_000_000 || layers > 10_000 {
        return Err(format!("{layers} layers of {neurons} neurons are more than can be built"));
    }
    let name = format!("{neurons} neurons x {layers} layers");
    let mut observation = row.plain(name, FullyConnected::BATCH, "gpumemory_max", Network::FullyConnected(network))?;
    observation.family = Some(Family::Mlp);
    // The table's unit is a thousandth of 1024^3 bytes.
    let horus = row.memory("Horus MB")?.map(|answer| answer * 1.024);
    observation.published = horus.map(|answer| ("horus", answer)).into_iter().collect();
    Ok(observation)
}

fn timm(row: &Row) -> Result<Observation, String> {
    let (model, batch) = (row.text("model")?, row.count("batch_size")?);
    let mut observation = row.plain(format!("{model} x {batch}"), batch, "measured_mib", Network::Timm { model: model.to_owned() })?;
    observation.published = row.published(&[("faketensor", "faketensor_mib")])?;
    Ok(observation)
}

fn real(row: &Row) -> Result<Observation, String> {
    let (task, model) = (row.text("task")?, row.text("model")?);
    let network = Network::Real {
        task: task.to_owned(),
        model: model.to_owned(),
        gpus: row.count("gpus")?,
        earlier: row.memory("measured_earlier_mib")?,
    };
    let mut observation = row.plain(task.to_owned(), row.count("batch_size")?, "measured_2025_09_mib", network)?;
    observation.published = row.published(&[("gpumemnet", "gpumemnet_mib"), ("horus", "horus_mib"), ("faketensor", "faketensor_mib")])?;
    Ok(observation)
}

fn xmem(row: &Row) -> Result<Observation, String> {
    let (model, optimizer, gpu) = (row.text("model")?, row.text("optimizer")?, row.text("gpu")?);
    let batch = row.count("batch")?;
    let network = Network::Xmem { model: model.to_owned(), optimizer: optimizer.to_owned(), gpu: gpu.to_owned() };
    let mut observation = row.plain(format!("{model} x {batch}, {optimizer}, {gpu}"), batch, "measured_mib", network)?;
    observation.crashed = match row.text("ran_out")? {
        "true" => true,
        "false" => false,
        other => return Err(format!("ran_out is {other:?}, neither true nor false")),
    };
    observation.family = Some(if row.optional("family") == Some("CNN") { Family::Cnn } else { Family::Transformer });
    let columns = [("xmem", "xmem_mib"), ("dnnmem", "dnnmem_mib"), ("schedtune", "schedtune_mib"), ("llmem", "llmem_mib")];
    observation.published = row.published(&columns)?;
    Ok(observation)
}
