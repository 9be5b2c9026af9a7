//! Rights: root and the machine's owner set up GPUs and inject faults.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use carma_testing::{as_nobody, need};

use super::{Emulated, text};

#[test]
fn others_may_use_the_gpus_and_not_change_them() {
    let carma = || as_nobody(Path::new(env!("CARGO_BIN_EXE_carma")));
    need!(carma());
    let emulated = Emulated::up("2xA100-40GB", 100);
    std::fs::set_permissions(emulated.folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(emulated.machine.check_rights().is_ok());
    let run = |arguments: &[&str]| carma().unwrap().args(arguments).env("CARMA_EMU", emulated.folder.path()).output().unwrap();
    let refused = text(&run(&["emu", "fault", "lost", "--gpu", "0"]).stderr);
    assert!(refused.starts_with("carma: permission denied: only root and the owner of the emulated GPUs in /"), "{refused}");
    assert!(run(&["emu", "fault", "list"]).status.success());
    assert!(run(&["emu", "occupy", "--gpu", "0", "--memory", "1GiB", "--for", "1s"]).status.success());
    let script = "import ctypes\nlibrary = ctypes.CDLL('libnvidia-ml.so.1')\nlibrary.nvmlInit_v2()\ngpu = ctypes.c_void_p()\n\
                  library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(gpu))\nroom = ctypes.byref(ctypes.c_void_p())\n\
                  print(library.nvmlDeviceSetComputeMode(gpu, 3), library.nvmlDeviceSetPersistenceMode(gpu, 0),\n\
                  library.nvmlDeviceSetPowerManagementLimit(gpu, 200000), library.nvmlDeviceSetMigMode(gpu, 1, room),\n\
                  library.nvmlDeviceCreateGpuInstance(gpu, 9, room), library.nvmlDeviceClearEccErrorCounts(gpu, 0))\n";
    assert_eq!(text(&run(&["emu", "run", "--", "python3", "-c", script]).stdout), "4 4 4 4 4 4\n");
    let by_owner = emulated.prints(&["run", "--", "python3", "-c", script]);
    assert!(by_owner.starts_with("0 0 0 0 "), "{by_owner}");
}
