//! GPUs as the user's manager knows them, also those of other servers.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use carma_manager::api::GpuDetail;
use carma_manager::client::Client;

/// GPUs of this machine are shown also where a manager hangs.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Asks the manager, if one runs.
#[derive(Debug, Default)]
pub(super) struct RemoteGpus {
    /// A question without an answer.
    asked: Option<Receiver<Vec<GpuDetail>>>,
}

impl RemoteGpus {
    /// All GPUs of the manager. None without a manager, and where it does not answer in time.
    pub(super) fn ask(&mut self) -> Vec<GpuDetail> {
        let answer = self.asked.take().unwrap_or_else(|| {
            let (answer, answers) = channel();
            // Without a thread there is no answer.
            let _ = thread::Builder::new().name("manager".to_owned()).spawn(move || answer.send(listed()));
            answers
        });
        match answer.recv_timeout(TIMEOUT) {
            Ok(gpus) => gpus,
            Err(RecvTimeoutError::Timeout) => {
                self.asked = Some(answer);
                Vec::new()
            }
            Err(RecvTimeoutError::Disconnected) => Vec::new(),
        }
    }
}

fn listed() -> Vec<GpuDetail> {
    Client::connect(None).and_then(|mut client| client.gpus()).unwrap_or_default()
}
