//! MPS and users: one user at a time is served, and only some may stop it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use carma_gpu::mps::{ClientLimits, Health};
use carma_testing::{Missing, NOBODY, as_nobody, need};
use rustix::process::Signal;

use super::{Bench, signal, until};

fn carma() -> Result<Command, Missing> {
    as_nobody(Path::new(env!("CARGO_BIN_EXE_carma")))
}

impl Bench {
    /// A training process that is a client.
    fn training(&self, mut program: Command) -> Child {
        program.args(["emu", "train", "--workload", "resnet50_imagenet_bs64", "--seconds", "12h", "--seed", "1"]);
        program.envs(self.machine.environment()).envs(ClientLimits::default().environment(&self.control));
        program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Waits until a user has this many clients.
    fn serves(&self, user: u32, clients: usize) {
        until(
            &format!("{clients} clients of {user}"),
            || matches!(self.control.health(), Ok(Health::Serving(server)) if (server.user, server.clients.len()) == (Some(user), clients)),
        );
    }
}

#[test]
fn the_mps_daemon_of_root_serves_one_user_at_a_time() {
    let other = need!(carma());
    let bench = Bench::started();
    let mut first = bench.training(other);
    bench.serves(NOBODY, 1);
    let own = Command::new(env!("CARGO_BIN_EXE_carma"));
    let mut second = bench.training(own);
    until("the second waits", || {
        bench.log("control.log").contains(&format!("NEW CLIENT {} from user 0: Server is not ready", second.id()))
    });
    bench.serves(NOBODY, 1);
    signal(first.id(), Signal::TERM);
    assert_eq!(first.wait().unwrap().code(), Some(143));
    bench.serves(0, 1);
    signal(second.id(), Signal::TERM);
    assert_eq!(second.wait().unwrap().code(), Some(143));
}

#[test]
fn another_user_may_see_mps_and_not_change_it() {
    let bench = Bench::new();
    need!(carma());
    let run = |mut program: Command, arguments: &[&str]| {
        let output = program.args(["mps"]).args(arguments).envs(bench.machine.environment()).output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (root, other) = (|| Command::new(env!("CARGO_BIN_EXE_carma")), || carma().unwrap());
    let (_, refused) = run(other(), &["start", "--gpu", "1"]);
    assert!(refused.contains("/mps/GPU-") && refused.ends_with("/pipes: Permission denied (os error 13)\n"), "{refused}");
    run(root(), &["start", "--gpu", "1", "--shared"]);
    let (seen, _) = run(other(), &["status"]);
    assert!(seen.ends_with("MPS waits for its first client\n"), "{seen}");
    assert_eq!(run(other(), &["stop", "--gpu", "1"]).1, "carma: permission denied: the daemon belongs to root\n");
    let (_, refused) = run(other(), &["start", "--gpu", "1"]);
    assert!(refused.ends_with("pipes already\n"), "{refused}");
    // Nor by the program itself.
    let control = bench.machine.folder().join("mps").join(bench.gpu.as_str());
    let mut quit = as_nobody(&bench.machine.programs().join("nvidia-cuda-mps-control")).unwrap();
    quit.env("CUDA_MPS_PIPE_DIRECTORY", control.join("pipes"))
        .envs(bench.machine.environment())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut quit = quit.spawn().unwrap();
    std::io::Write::write_all(&mut quit.stdin.take().unwrap(), b"quit -t 0\n").unwrap();
    let message = quit.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(message.stdout).unwrap(), "Not enough privilege to execute quit command\n");
    // Without access to the pipes, the error says so.
    std::fs::set_permissions(&control, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let (seen, _) = run(other(), &["status"]);
    assert!(seen.ends_with("MPS cannot be asked: permission denied: the daemon belongs to root\n"), "{seen}");
    run(root(), &["stop", "--gpu", "1", "--patience", "0"]);
    let (seen, _) = run(root(), &["status"]);
    assert!(seen.ends_with("no MPS\n"), "{seen}");
    assert_eq!(bench.control.stop(Duration::ZERO).map_err(|error| error.to_string()), Ok(()), "there is none");
}
