//! A mixed load from the first submission to the last end: the gain and the cost of collocation.

use std::thread;

use carma_core::Verdict;
use serde_json::Value;

use super::served::Served;

/// Seven jobs. One declares a fifth of the memory it needs.
const LOAD: &str = "submit,workload,duration\n\
    0,inception_imagenet_bs128,300\n\
    5,vgg16_imagenet_bs128,300\n\
    90,llama3_width_8layer_wiki_bs1,240\n\
    100,resnet18_cifar100_bs32_50e,300\n\
    110,mobilenet_cifar100_bs64_50e,300\n\
    120,dlrm_criteo_bs32768,300\n\
    130,resnet34_cifar100_bs64_50e,300\n";
const DECLARED: &str = "workload,declared\n\
    inception_imagenet_bs128,18500\n\
    vgg16_imagenet_bs128,22500\n\
    llama3_width_8layer_wiki_bs1,5700\n\
    resnet18_cifar100_bs32_50e,900\n\
    mobilenet_cifar100_bs64_50e,700\n\
    dlrm_criteo_bs32768,1500\n\
    resnet34_cifar100_bs64_50e,1100\n";

/// Time runs fast, and the machine may be busy: samples are rare enough that none is missed.
const SAMPLING: &str = "[window]\nperiod = 5\n[manager.gpus]\nperiod = 5\n";

fn replay(served: &Served) -> Value {
    let (trace, declared) = (served.write("load.csv", LOAD), served.write("declared.csv", DECLARED));
    served.json(&["replay", &trace, "--estimates", &declared, "--estimator", "declared", "--json"])["measured"].take()
}

#[test]
fn a_mixed_load_is_shared_and_recovers_and_its_record_replays() {
    let alone = thread::spawn(|| replay(&Served::start("2xA100-40GB", 120.0, &format!("policy = \"exclusive\"\n{SAMPLING}"))));
    let mut sharing = Served::start("2xA100-40GB", 120.0, SAMPLING);
    let shared = replay(&sharing);
    let alone = alone.join().unwrap();
    let number = |run: &Value, figure: &str| run[figure].as_f64().unwrap();
    assert_eq!((number(&shared, "failed"), number(&alone, "failed")), (0.0, 0.0), "{shared} {alone}");
    assert!(number(&shared, "makespan") < 0.9 * number(&alone, "makespan"), "{shared} {alone}");
    assert!(number(&shared, "mean_jct") < number(&alone, "mean_jct"), "{shared} {alone}");
    assert!(number(&shared, "energy") < number(&alone, "energy"), "{shared} {alone}");
    assert!(number(&shared, "oom_attempts") >= 1.0 && number(&alone, "oom_attempts") < 1.0, "{shared} {alone}");

    let history = String::from_utf8(sharing.carma(&["export", "--format", "json"]).stdout).unwrap();
    let jobs: Vec<Value> = history.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let climbed = |job: &Value| {
        let attempts = job["attempts"].as_array().unwrap();
        let reserved = |attempt: &Value| attempt["placement"]["devices"][0]["reserved"].as_u64().unwrap();
        let out_of_memory =
            |attempt: &Value| serde_json::from_value::<Verdict>(attempt["verdict"].clone()).unwrap() == Verdict::OutOfMemory;
        attempts.windows(2).filter(|pair| out_of_memory(&pair[0])).all(|pair| reserved(&pair[1]) > reserved(&pair[0]))
    };
    assert!(jobs.len() == 7 && jobs.iter().all(climbed), "each attempt after a crash has more reserved: {history}");

    let record = sharing.record();
    let replayed = sharing.carma(&["replay-log", record.to_str().unwrap()]);
    let message = String::from_utf8(replayed.stdout).unwrap();
    assert!(replayed.status.success() && message.contains("lead to the same decisions"), "{message}");
}
