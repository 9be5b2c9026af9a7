use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::*;

/// A script with a module, data and a folder, whose dry run is kept.
struct Site {
    folder: tempfile::TempDir,
    cache: Cache,
    request: Request,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache { folder: folder.path().join("cache") };
        let request = Request {
            arguments: vec!["train.py".into()],
            folder: folder.path().into(),
            environment: BTreeMap::new(),
            interpreter: "/usr/bin/python3".into(),
            recorder: "1".to_owned(),
        };
        let site = Self { folder, cache, request };
        for (name, content) in [("train.py", "import model"), ("model.py", "layers = 12"), ("data/a.bin", "aa"), ("events", "the events")] {
            site.write(name, content);
        }
        let data = File::create(site.path("train.csv")).unwrap();
        data.set_len(2 << 20).unwrap();
        // Dates of files are not exact enough for two changes in one test.
        data.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    /// Keeps a dry run that began in so many seconds from now.
    fn keep(&self, seconds: u64, complete: bool) {
        let files = ["train.py", "model.py", "train.csv", "last.ckpt"].map(|name| self.path(name));
        let inputs = json!({ "complete": complete, "files": files, "folders": [self.path("data")], "imports": [self.folder.path()] });
        self.write("inputs", &inputs.to_string());
        let began = SystemTime::now() + Duration::from_secs(seconds);
        self.cache.keep(&self.request, &self.path("inputs"), &self.path("events"), began).unwrap();
    }

    fn is_found(&self) -> bool {
        self.cache.find(&self.request).is_some()
    }
}

#[test]
fn the_same_run_is_found_and_another_is_not() {
    let site = Site::new();
    assert!(!site.is_found());
    site.keep(1, true);
    assert_eq!(site.cache.find(&site.request).unwrap(), b"the events");
    let other = Request { arguments: vec!["train.py".into(), "--deeper".into()], ..site.request.clone() };
    assert!(site.cache.find(&other).is_none());
}

#[test]
fn anything_that_changes_makes_it_run_again() {
    type Change = fn(&Site);
    let changes: [(&str, Change); 8] = [
        ("the script", |site| site.write("train.py", "import nodel")),
        ("a module", |site| site.write("model.py", "layers = 24")),
        ("the size of data", |site| File::options().write(true).open(site.path("train.csv")).unwrap().set_len(3 << 20).unwrap()),
        ("the content of data", |site| File::options().write(true).open(site.path("train.csv")).unwrap().write_all(b"1").unwrap()),
        ("a file that was missing", |site| site.write("last.ckpt", "")),
        ("a file that is gone", |site| fs::remove_file(site.path("model.py")).unwrap()),
        ("more data", |site| site.write("data/b.bin", "bb")),
        ("a module that could hide another", |site| site.write("torch.py", "")),
    ];
    for (what, change) in changes {
        let site = Site::new();
        site.keep(1, true);
        assert!(site.is_found(), "before: {what}");
        change(&site);
        assert!(!site.is_found(), "{what}");
    }
}

#[test]
fn results_beside_the_script_change_nothing() {
    let site = Site::new();
    site.keep(1, true);
    site.write("log.txt", "epoch 1");
    site.write("runs/1/events", "1");
    // Saved again with the same content.
    site.write("model.py", "layers = 12");
    assert!(site.is_found());
}

#[test]
fn what_may_differ_the_next_time_is_not_kept() {
    let site = Site::new();
    site.keep(1, false);
    assert!(!site.is_found(), "another process read something");
    let began = SystemTime::now() - Duration::from_secs(3600);
    site.write("model.py", "layers = 24");
    site.cache.keep(&site.request, &site.path("inputs"), &site.path("events"), began).unwrap();
    assert!(!site.is_found(), "a file changed while the script ran");
}

#[test]
fn the_oldest_go() {
    let site = Site::new();
    site.keep(1, true);
    let first = site.path("cache").join(site.request.key());
    File::options().append(true).open(&first).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    for nth in 0..MAX_ENTRIES {
        fs::write(site.path("cache").join(nth.to_string()), "").unwrap();
    }
    site.cache.remove_oldest().unwrap();
    assert!(!site.is_found());
    assert_eq!(fs::read_dir(site.path("cache")).unwrap().count(), MAX_ENTRIES);
}
