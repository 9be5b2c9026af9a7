//! Where a manager keeps what, by whose it is.

use std::env;
use std::path::{Path, PathBuf};

/// Where a manager keeps its state, where it is to be asked, and how it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The folder of its state: `carma.db`, and a folder for each attempt.
    pub state: PathBuf,
    /// The socket it listens on.
    pub socket: PathBuf,
    /// Its configuration, which need not be there.
    pub configuration: PathBuf,
}

/// The variable that names another socket.
pub const SOCKET_VARIABLE: &str = "CARMA_SOCKET";

impl Places {
    /// Those of the machine's manager, which root runs for everybody.
    pub fn system() -> Self {
        Self { state: "/var/lib/carma".into(), socket: "/run/carma/carma.sock".into(), configuration: "/etc/carma/carma.toml".into() }
    }

    /// Those of a user's own manager.
    pub fn user(home: &Path) -> Self {
        let folder = |variable, otherwise: &str| {
            // Relative ones are to be ignored, as the specification of these variables says.
            env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute()).unwrap_or_else(|| home.join(otherwise))
        };
        let state = folder("XDG_STATE_HOME", ".local/state").join("carma");
        let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
        Self {
            socket: runtime.map_or_else(|| state.clone(), |runtime| runtime.join("carma")).join("carma.sock"),
            configuration: folder("XDG_CONFIG_HOME", ".config").join("carma/carma.toml"),
            state,
        }
    }

    /// Those of a manager that whoever runs this starts.
    pub fn own() -> Self {
        if nix::unistd::geteuid().is_root() { Self::system() } else { Self::user(&home()) }
    }

    /// All of it in one folder, to try things out.
    pub fn at(folder: &Path) -> Self {
        Self { state: folder.to_owned(), socket: folder.join("carma.sock"), configuration: folder.join("carma.toml") }
    }

    /// Whose state is theirs, whoever they are: root's is not the machine's.
    pub fn own_user() -> Self {
        Self::user(&home())
    }

    /// The sockets where a manager may be found, the nearest first: what `CARMA_SOCKET` says and nothing else, or one's own and then the machine's.
    pub fn sockets() -> Vec<PathBuf> {
        if let Some(socket) = env::var_os(SOCKET_VARIABLE).filter(|socket| !socket.is_empty()) {
            return vec![socket.into()];
        }
        let mut sockets = vec![Self::own().socket, Self::system().socket];
        sockets.dedup();
        sockets
    }

    /// The database.
    pub fn database(&self) -> PathBuf {
        self.state.join("carma.db")
    }
}

fn home() -> PathBuf {
    env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute()).unwrap_or_else(|| "/".into())
}
