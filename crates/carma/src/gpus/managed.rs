//! GPUs as the user's manager knows them: the jobs on this machine's, and the GPUs of other servers through its agents.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use carma_manager::api::GpuDetail;
use carma_manager::client::Client;

/// GPUs of this machine are shown also where a manager hangs.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Asks the manager, if one runs.
#[derive(Debug, Default)]
pub(super) struct ManagedGpus {
    /// A question without an answer.
    asked: Option<Receiver<Known>>,
}

/// What the manager knows of GPUs.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) gpus: Vec<GpuDetail>,
    /// The GPUs of its host that it leaves alone, by number or UUID.
    pub(super) ignored: Vec<String>,
}

impl ManagedGpus {
    /// All GPUs of the manager. None without a manager, and where it does not answer in time.
    pub(super) fn ask(&mut self) -> Known {
        let answer = self.asked.take().unwrap_or_else(|| {
            let (answer, answers) = channel();
            // Without a thread there is no answer.
            let _ = thread::Builder::new().name("manager".to_owned()).spawn(move || answer.send(listed()));
            answers
        });
        match answer.recv_timeout(TIMEOUT) {
            Ok(known) => known,
            Err(RecvTimeoutError::Timeout) => {
                self.asked = Some(answer);
                Known::default()
            }
            Err(RecvTimeoutError::Disconnected) => Known::default(),
        }
    }
}

fn listed() -> Known {
    let Ok(mut client) = Client::connect(None) else { return Known::default() };
    let gpus = client.gpus().unwrap_or_default();
    let settings = client.configuration().ok().and_then(|configuration| configuration.manager.gpus);
    Known { gpus, ignored: settings.and_then(|settings| settings.ignore).unwrap_or_default() }
}

/// Whether a GPU is in another server.
pub(super) const fn is_remote(gpu: &GpuDetail) -> bool {
    gpu.node.is_some()
}
