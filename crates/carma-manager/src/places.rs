//! The paths of a manager: state, socket, configuration.

use std::env;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The paths of a manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Its state: `carma.db`, and a folder for each attempt.
    pub state: PathBuf,
    /// The socket it listens on.
    pub socket: PathBuf,
    /// Its configuration file, which may be missing.
    pub configuration: PathBuf,
}

/// The variable with the path of the socket.
pub const SOCKET_VARIABLE: &str = "CARMA_SOCKET";

impl Places {
    /// The paths of the system's manager, which root runs for all users.
    pub fn system() -> Self {
        Self { state: "/var/lib/carma".into(), socket: "/run/carma/carma.sock".into(), configuration: "/etc/carma/carma.toml".into() }
    }

    /// The paths of a user's own manager.
    pub fn user(home: &Path) -> Self {
        let folder = |variable, otherwise: &str| {
            // The XDG specification says to ignore relative paths.
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

    /// The paths of the manager that the current user would start.
    pub fn own() -> Self {
        if rustix::process::geteuid().is_root() { Self::system() } else { Self::user(&home()) }
    }

    /// All paths in one folder.
    pub fn at(folder: &Path) -> Self {
        Self { state: folder.to_owned(), socket: folder.join("carma.sock"), configuration: folder.join("carma.toml") }
    }

    /// The paths of the current user's own manager, for root too.
    pub fn own_user() -> Self {
        Self::user(&home())
    }

    /// The sockets to try, in order: only `CARMA_SOCKET` if it is set; otherwise the user's own, then the system's.
    pub fn sockets() -> Vec<PathBuf> {
        if let Some(socket) = Self::chosen_socket() {
            return vec![socket];
        }
        let mut sockets = vec![Self::own().socket, Self::system().socket];
        sockets.dedup();
        sockets
    }

    /// The socket in `CARMA_SOCKET`, if it is set.
    pub fn chosen_socket() -> Option<PathBuf> {
        env::var_os(SOCKET_VARIABLE).filter(|socket| !socket.is_empty()).map(PathBuf::from)
    }

    /// The paths of the manager of a socket. Unset if no manager has had its state where this socket is.
    pub fn of_socket(socket: &Path) -> Option<Self> {
        let usual = [Self::own(), Self::system(), Self::own_user()].into_iter().find(|places| places.socket == socket);
        usual.or_else(|| socket.parent().map(Self::at).filter(|places| places.socket == socket && places.database().exists()))
    }

    /// The database.
    pub fn database(&self) -> PathBuf {
        self.state.join("carma.db")
    }
}

/// Creates a folder of the manager, readable by its owner only, unless it exists.
pub fn create_private(folder: &Path) -> io::Result<()> {
    if folder.is_dir() || folder.as_os_str().is_empty() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn home() -> PathBuf {
    env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute()).unwrap_or_else(|| "/".into())
}
