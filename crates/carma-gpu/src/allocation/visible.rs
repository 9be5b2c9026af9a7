//! `CUDA_VISIBLE_DEVICES`: which GPUs and MIG instances it names, as CUDA reads it.

use crate::identity::DeviceUuid;

/// A GPU that the variable can name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamedGpu {
    /// Its UUID; unset if the GPU does not answer. Such a GPU is still counted.
    pub uuid: Option<DeviceUuid>,
    /// Its MIG instances.
    pub instances: Vec<NamedInstance>,
}

/// A MIG instance that the variable can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedInstance {
    /// Its UUID, as the driver writes it.
    pub uuid: DeviceUuid,
    /// The number of its GPU instance.
    pub gpu_instance: u32,
    /// The number of its compute instance within that.
    pub compute_instance: u32,
}

/// The device that an entry of the variable names, by its places in the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// The GPU.
    pub gpu: usize,
    /// One of its MIG instances; unset: the GPU.
    pub instance: Option<usize>,
}

/// The value of `CUDA_VISIBLE_DEVICES`, up to its first invalid entry: CUDA ignores everything from there on. All entries have the kind of the
/// first: NVIDIA documents no lists that mix numbers and UUIDs, and PyTorch, which reads the variable by itself, ends them there too.
///
/// ```
/// use carma_gpu::VisibleDevices;
/// assert_eq!(VisibleDevices::parse("2, 0,-1,1"), VisibleDevices::Numbers(vec![2, 0]));
/// assert_eq!(VisibleDevices::parse("NoDevFiles"), VisibleDevices::Numbers(vec![]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VisibleDevices {
    /// GPUs by their numbers. Without a valid entry there are none.
    Numbers(Vec<usize>),
    /// GPUs by their UUIDs, or by enough of the beginning to be unambiguous.
    Gpus(Vec<String>),
    /// MIG instances, as `MIG-<uuid>` or in the older form `MIG-GPU-<uuid>/<GPU instance>/<compute instance>`.
    Instances(Vec<String>),
}

/// The result of the lookup of one entry.
enum Lookup {
    Found(Named),
    /// It may be a GPU that does not answer. That one is of no use, and the entries behind it still count.
    Unanswered,
    Invalid,
}

impl VisibleDevices {
    /// Reads the variable.
    pub fn parse(value: &str) -> Self {
        let entries = || value.split(',').map(str::trim);
        let names = |prefix: &str| {
            let is_name = |entry: &&str| entry.len() > prefix.len() && entry.starts_with(prefix);
            entries().take_while(is_name).map(str::to_owned).collect()
        };
        match value.trim_start() {
            first if first.starts_with("GPU-") => Self::Gpus(names("GPU-")),
            first if first.starts_with("MIG-") => Self::Instances(names("MIG-")),
            _ => Self::Numbers(entries().map_while(number).collect()),
        }
    }

    /// The named devices, in the variable's order. `gpus` are in the order in which numbers count them. If a device is named twice, CUDA
    /// fails, and nothing is visible.
    pub fn resolve(&self, gpus: &[NamedGpu]) -> Vec<Named> {
        let lookups: Vec<Lookup> = match self {
            Self::Numbers(numbers) => numbers.iter().map(|number| by_number(*number, gpus)).collect(),
            Self::Gpus(names) => names.iter().map(|name| by_name(gpus_named(name, gpus), gpus)).collect(),
            Self::Instances(names) => names.iter().map(|name| by_name(instances_named(name, gpus), gpus)).collect(),
        };
        let mut seen = Vec::new();
        for lookup in lookups {
            match lookup {
                Lookup::Found(named) if seen.contains(&named) => return Vec::new(),
                Lookup::Found(named) => seen.push(named),
                Lookup::Unanswered => {}
                Lookup::Invalid => break,
            }
        }
        seen
    }
}

/// A number as C's `strtoul` reads it, which is CUDA's behaviour according to PyTorch: text after the digits is ignored.
fn number(entry: &str) -> Option<usize> {
    let entry = entry.strip_prefix('+').unwrap_or(entry);
    let digits = entry.find(|letter: char| !letter.is_ascii_digit()).map_or(entry, |end| &entry[..end]);
    digits.parse().ok()
}

fn by_number(number: usize, gpus: &[NamedGpu]) -> Lookup {
    if number < gpus.len() { Lookup::Found(Named { gpu: number, instance: None }) } else { Lookup::Invalid }
}

fn by_name(matching: impl IntoIterator<Item = Named>, gpus: &[NamedGpu]) -> Lookup {
    let mut matching = matching.into_iter();
    match (matching.next(), matching.next()) {
        (Some(named), None) => Lookup::Found(named),
        (None, _) if gpus.iter().any(|gpu| gpu.uuid.is_none()) => Lookup::Unanswered,
        _ => Lookup::Invalid,
    }
}

fn gpus_named<'a>(name: &'a str, gpus: &'a [NamedGpu]) -> impl Iterator<Item = Named> + 'a {
    let is_meant = move |gpu: &NamedGpu| gpu.uuid.as_ref().is_some_and(|uuid| uuid.as_str().starts_with(name));
    (0..).zip(gpus).filter(move |(_, gpu)| is_meant(gpu)).map(|(gpu, _)| Named { gpu, instance: None })
}

fn instances_named<'a>(name: &'a str, gpus: &'a [NamedGpu]) -> impl Iterator<Item = Named> + 'a {
    (0..).zip(gpus).flat_map(move |(place, gpu)| {
        let is_meant = move |instance: &NamedInstance| {
            let NamedInstance { uuid, gpu_instance, compute_instance } = instance;
            let older = gpu.uuid.as_ref().map(|gpu| format!("MIG-{gpu}/{gpu_instance}/{compute_instance}"));
            uuid.as_str() == name || older.is_some_and(|older| older == name)
        };
        let meant = (0..).zip(&gpu.instances).filter(move |(_, instance)| is_meant(instance));
        meant.map(move |(instance, _)| Named { gpu: place, instance: Some(instance) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpus() -> Vec<NamedGpu> {
        let gpu = |uuid: &str| NamedGpu { uuid: Some(uuid.parse().unwrap()), instances: Vec::new() };
        let instance = |uuid: &str, gpu_instance| NamedInstance { uuid: uuid.parse().unwrap(), gpu_instance, compute_instance: 0 };
        let cut = NamedGpu { instances: vec![instance("MIG-c1", 1), instance("MIG-c2", 2)], ..gpu("GPU-cc33") };
        vec![gpu("GPU-aa11"), gpu("GPU-aa22"), cut]
    }

    type Places = Vec<(usize, Option<usize>)>;

    fn resolved(value: &str, gpus: &[NamedGpu]) -> Places {
        VisibleDevices::parse(value).resolve(gpus).into_iter().map(|named| (named.gpu, named.instance)).collect()
    }

    #[test]
    fn the_variable_is_read_as_cuda_reads_it() {
        let whole = |gpu| (gpu, None);
        let cases: [(&str, Places); 32] = [
            ("", vec![]),
            (" ", vec![]),
            ("-1", vec![]),
            ("NoDevFiles", vec![]),
            ("none", vec![]),
            ("all", vec![]),
            (",0", vec![]),
            ("3", vec![]),
            ("99999999999999999999999", vec![]),
            ("0", vec![whole(0)]),
            ("0,1", vec![whole(0), whole(1)]),
            (" 2 , 0 ", vec![whole(2), whole(0)]),
            ("0,", vec![whole(0)]),
            ("1,-1,0", vec![whole(1)]),
            ("0,7,1", vec![whole(0)]),
            ("0,x,1", vec![whole(0)]),
            ("1gpu2,2", vec![whole(1), whole(2)]),
            ("+1", vec![whole(1)]),
            ("0,0", vec![]),
            ("0,1,0", vec![]),
            ("GPU-aa22", vec![whole(1)]),
            ("GPU-c", vec![whole(2)]),
            ("GPU-cc33,GPU-aa11", vec![whole(2), whole(0)]),
            ("GPU-aa", vec![]),
            ("GPU-", vec![]),
            ("GPU-aa11,GPU-dd,GPU-aa22", vec![whole(0)]),
            ("GPU-aa11,GPU-aa1", vec![]),
            ("GPU-aa11,1", vec![whole(0)]),
            ("0,GPU-aa22", vec![whole(0)]),
            ("MIG-c2,MIG-c1", vec![(2, Some(1)), (2, Some(0))]),
            ("MIG-GPU-cc33/1/0,MIG-c2", vec![(2, Some(0)), (2, Some(1))]),
            ("MIG-GPU-cc33/1/1", vec![]),
        ];
        for (value, expected) in cases {
            assert_eq!(resolved(value, &gpus()), expected, "{value:?}");
        }
        for value in ["MIG-", "MIG-c", "MIG-GPU-cc33", "MIG-c1,MIG-GPU-cc33/1/0", "gpu-aa11"] {
            assert_eq!(resolved(value, &gpus()), [], "{value:?}");
        }
    }

    #[test]
    fn a_gpu_without_an_answer_keeps_its_number() {
        let mut gpus = gpus();
        gpus[0].uuid = None;
        assert_eq!(resolved("0,1", &gpus), [(0, None), (1, None)]);
        // The first may be the one that does not answer.
        assert_eq!(resolved("GPU-aa11,GPU-aa22", &gpus), [(1, None)]);
        assert_eq!(resolved("MIG-a1,MIG-c1", &gpus), [(2, Some(0))]);
    }
}
