//! Notifications: through every channel, once, batched, and sent as the user.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use carma_core::{Condition, Outcome};
use carma_manager::api::{Channel, JobAction, Notification, NotifiedEvent, Occasion, Shutdown, Submission};
use carma_manager::client::ClientError;
use carma_manager::request::After;
use carma_testing::{as_nobody, need};
use serde_json::Value;

use super::lab::{TIMEOUT, program, until};
use super::up::{Gpus, ManagerProcess, one};

const QUICK: &str = "[manager.notifications]\ngather_seconds = 0.1\nevery_seconds = 0.2\n";
const ALL: [Occasion; 4] = [Occasion::Done, Occasion::Failed, Occasion::Recovered, Occasion::Idle];

/// A manager, and a user's home with stand-ins for programs.
struct Home(ManagerProcess);

impl Home {
    fn new(gpus: Gpus<'_>, configuration: &str) -> Self {
        let mut up = ManagerProcess::stopped(gpus, configuration);
        let home = Self::of(&up);
        fs::create_dir_all(home.join("bin")).unwrap();
        up.set("HOME", &home);
        up.set("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", home.join("bin").display()));
        up.set("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent");
        up.start();
        Self(up)
    }

    fn of(up: &ManagerProcess) -> PathBuf {
        up.folder().join("home")
    }

    /// A stand-in for a program, which keeps its arguments and its input in files of its name.
    fn install(&self, name: &str) {
        let program = Self::of(&self.0).join("bin").join(name);
        fs::write(&program, format!("#!/bin/sh\ncat >> \"$HOME/{name}.in\"\nprintf '%s\\n' \"$@\" >> \"$HOME/{name}.args\"\n")).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    }

    /// The content of a file at home, once it contains all these words.
    fn kept(&self, name: &str, words: &[&str]) -> String {
        let path = Self::of(&self.0).join(name);
        until(|| fs::read_to_string(&path).ok().filter(|text| words.iter().all(|word| text.contains(word))))
    }

    fn carma(&self, words: &[&str]) -> Output {
        Command::new(program()).args(words).env("CARMA_SOCKET", self.0.places().socket).output().unwrap()
    }

    /// Waits until no message is in flight.
    fn settled(&self) {
        until(|| fs::read_dir(self.0.state().join("notifications")).unwrap().next().is_none().then_some(()));
    }

    fn wishes(&self, channels: impl IntoIterator<Item = Channel>) {
        let wishes: Vec<_> = channels.into_iter().map(|by| Notification { on: ALL.to_vec(), by }).collect();
        assert_eq!(self.0.client().set_notifications(&wishes).unwrap(), wishes);
    }
}

/// A web server that records requests, and answers with this status.
struct Server {
    address: String,
    bodies: Receiver<Value>,
}

impl Server {
    fn answering(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (tell, bodies) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let Some(body) = answer(stream, status) else { continue };
                if tell.send(body).is_err() {
                    return;
                }
            }
        });
        Self { address, bodies }
    }

    fn channel(&self) -> Channel {
        Channel::Webhook(format!("http://{}/services/T0KEN", self.address))
    }

    fn next(&self) -> Value {
        self.bodies.recv_timeout(TIMEOUT).unwrap()
    }

    /// Messages until this many events were reported, and the events.
    fn received(&self, count: u64) -> (Vec<Value>, Vec<NotifiedEvent>) {
        let (mut messages, mut all) = (Vec::new(), 0);
        while all < count {
            let body = self.next();
            all += body["counts"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum::<u64>();
            messages.push(body);
        }
        assert_eq!(all, count, "{messages:?}");
        let happened = messages.iter().flat_map(|body| serde_json::from_value::<Vec<NotifiedEvent>>(body["happened"].clone()).unwrap());
        let happened = happened.collect();
        (messages, happened)
    }
}

fn answer(mut stream: TcpStream, status: &str) -> Option<Value> {
    let (mut received, mut piece) = (Vec::new(), [0; 4096]);
    let body = loop {
        let read = stream.read(&mut piece).ok().filter(|read| *read > 0)?;
        received.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&received).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        assert!(head.starts_with("POST /services/T0KEN HTTP/1.1"), "{head}");
        let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok());
        if body.len() >= length.unwrap() {
            break serde_json::from_str(body).unwrap();
        }
    };
    let _ = stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").as_bytes());
    Some(body)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn done_failed_and_recovered_jobs_are_notified_on_every_channel() {
    let home = Home::new(Some(("1xA100-40GB", 60.0)), QUICK);
    let server = Server::answering("200 OK");
    home.install("sendmail");
    home.install("notify-send");
    let command = "cat >> command.in; echo \"$CARMA_OCCASION $CARMA_JOB $CARMA_JOB_NAME\" >> command.args";
    home.wishes([server.channel(), Channel::Mail("ada@example.org".to_owned()), Channel::Desktop, Channel::Command(command.to_owned())]);
    let carma = program().display();
    let train = |memory: &str| format!("{carma} emu train --workload efficientnet_cifar100_bs128_20e --memory {memory} --seconds 10");
    let message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.";
    let script = format!("if test -e again; then exec {}; else touch again; echo '{message}' >&2; exit 1; fi", train("4GiB"));
    let mut recovers = home.0.shell_job(&script);
    recovers.name = Some("Größe".to_owned());
    recovers.resources.gpus = 1;
    let recovers = home.0.submit(recovers);
    assert_eq!(home.0.wait_until_done(recovers).outcome(), Some(&Outcome::Succeeded));
    let fails = home.0.submit(home.0.shell_job("echo so it goes >&2; exit 3"));
    // Users are not notified of their own cancellations.
    let cancelled = home.0.submit(home.0.shell_job("sleep 1000"));
    home.0.client().act(&cancelled.0.to_string(), &JobAction::Cancel).unwrap();
    assert_eq!(home.0.wait_until_done(cancelled).outcome(), Some(&Outcome::Cancelled));
    let last = home.0.submit(home.0.shell_job("true"));

    let (messages, happened) = server.received(4);
    let received: BTreeMap<(u64, Occasion), &NotifiedEvent> =
        happened.iter().map(|happened| ((happened.job, happened.occasion), happened)).collect();
    let expected = [(recovers.0, Occasion::Done), (recovers.0, Occasion::Recovered), (fails.0, Occasion::Failed), (last.0, Occasion::Done)];
    assert_eq!(received.keys().copied().collect::<Vec<_>>(), expected, "{messages:?}");
    let recovered = &received[&(recovers.0, Occasion::Recovered)].text;
    assert!(recovered.contains("\"Größe\" ran out of GPU memory after") && recovered.contains(" on s0/gpu0"), "{recovered}");
    assert!(recovered.contains("; it waits again for "), "{recovered}");
    let failed = received[&(fails.0, Occasion::Failed)];
    assert!(failed.text.starts_with(&format!("job {} failed with exit code 3 after ", fails.0)), "{}", failed.text);
    assert_eq!(failed.log.as_deref(), Some(&*format!("carma logs {}", fails.0)));
    let named = |message: &Value| message["text"] == message["content"] && message["text"].as_str().unwrap().contains("job ");
    assert!(messages.iter().all(named), "{messages:?}");

    let (fails, last) = (fails.0.to_string(), last.0.to_string());
    let letters = home.kept("sendmail.in", &["ran out of GPU memory", "failed with exit code 3", &format!("job {last} succeeded")]);
    assert!(letters.contains("To: <ada@example.org>\nSubject: ") && letters.contains("\nAuto-Submitted: auto-generated\n"), "{letters}");
    assert!(home.kept("sendmail.args", &["-t\n-i\n"]).lines().all(|word| ["-t", "-i"].contains(&word)));
    home.kept("notify-send.args", &["--app-name=carma\n--\n", "ran out of GPU memory", "failed with exit code 3"]);
    home.kept("command.in", &["\"happened\":", "\"occasion\":\"recovered\"", "\"occasion\":\"failed\""]);
    let lines = home.kept("command.args", &["Größe"]);
    let job = |line: &str| line.split(' ').nth(1).unwrap().to_owned();
    assert!(lines.lines().all(|line| [recovers.0.to_string(), fails.clone(), last.clone()].contains(&job(line))), "{lines}");
}

#[test]
fn an_idle_gpu_holder_is_notified_once() {
    let rules = "[idle_jobs]\nflag_after = 60\nlend_after = 120\n[window]\nlength = 10\nperiod = 2\n[manager.gpus]\nperiod = 2\n";
    let home = Home::new(Some(("1xA100-40GB", 60.0)), &format!("{rules}{QUICK}"));
    let server = Server::answering("200 OK");
    home.wishes([server.channel()]);
    let mut holds = home.0.shell_job(&format!("exec {} emu occupy --gpu 0 --memory 9000MiB", program().display()));
    (holds.resources.gpus, holds.resources.exclusive) = (1, true);
    let holds = home.0.submit(holds);
    let idle =
        || home.0.client().job(&holds.0.to_string()).unwrap().events.iter().filter(|stored| stored.event.event.kind() == "idle").count();
    until(|| (idle() == 2).then_some(()));
    // The next message shows that none was sent in between about the lent GPU.
    let last = home.0.submit(home.0.shell_job("true"));
    let received: Vec<_> = server.received(2).1.into_iter().map(|happened| (happened.job, happened.occasion, happened.text)).collect();
    let words = format!("job {} holds its GPUs without using them", holds.0);
    assert_eq!(received[0], (holds.0, Occasion::Idle, words));
    assert_eq!((received[1].0, received[1].1), (last.0, Occasion::Done));
}

#[test]
fn many_events_become_few_messages() {
    let home = Home::new(None, "[manager.notifications]\ngather_seconds = 0.5\nevery_seconds = 3600\n");
    let server = Server::answering("204 No Content");
    home.wishes([server.channel()]);
    // Jobs that depend on it end with it.
    let go = home.0.folder().join("go");
    let first = home.0.submit(home.0.shell_job(&format!("until test -e {}; do sleep 0.05; done; exit 1", go.display())));
    let mut later = home.0.shell_job("true");
    later.schedule.after = vec![After { job: first.0.to_string(), condition: Condition::Ok }];
    let submit = Submission { array: Some((1..=200).collect()), ..one(later) };
    assert_eq!(home.0.client().submit(&submit).unwrap().jobs.len(), 200);
    fs::write(go, "").unwrap();
    let (messages, happened) = server.received(201);
    assert_eq!((messages.len(), happened.len()), (1, 201));
    let words = messages[0]["text"].as_str().unwrap();
    assert!(words.contains("jobs: 201 failed\n") && words.contains("\nand 181 more"), "{words}");
}

#[test]
fn after_a_crash_pending_notifications_are_sent_exactly_once() {
    let mut home = Home::new(None, "[manager.notifications]\ngather_seconds = 3600\nevery_seconds = 3600\n");
    let (server, other) = (Server::answering("200 OK"), Server::answering("200 OK"));
    home.wishes([server.channel()]);
    let first = home.0.submit(home.0.shell_job("true"));
    assert_eq!(home.0.wait_until_done(first).outcome(), Some(&Outcome::Succeeded));
    home.0.kill();
    fs::write(home.0.folder().join("carma.toml"), QUICK).unwrap();
    home.0.start();
    assert_eq!(server.received(1).1[0].job, first.0);
    // A new channel starts with events from now on.
    home.wishes([server.channel(), other.channel()]);
    for _ in 0..2 {
        let job = home.0.submit(home.0.shell_job("true"));
        assert_eq!([server.received(1).1[0].job, other.received(1).1[0].job], [job.0, job.0]);
        home.settled();
        home.0.client().shutdown(Shutdown::default()).unwrap();
        assert!(home.0.ended());
        home.0.start();
    }
    let last = home.0.submit(home.0.shell_job("true"));
    assert_eq!([server.received(1).1[0].job, other.received(1).1[0].job], [last.0, last.0]);
}

#[test]
fn failed_notifications_are_noted_without_secrets() {
    let home = Home::new(None, QUICK);
    let server = Server::answering("404 Not Found");
    home.wishes([server.channel(), Channel::Mail("ada@example.org".to_owned()), Channel::Command("echo T0KEN; nonsense".to_owned())]);
    let job = home.0.submit(home.0.shell_job("true")).0.to_string();
    let noted = until(|| {
        let shown = text(&home.carma(&["show", &job]).stdout);
        (shown.matches("notification failed: ").count() == 3).then_some(shown)
    });
    assert!(noted.contains(&format!("notification failed: webhook at {}: answer", server.address)), "{noted}");
    assert!(!noted.contains("T0KEN") && !home.0.log_text().contains("T0KEN"), "{noted}");
    assert_eq!(server.bodies.try_iter().count(), 3, "tried three times");

    let tested = home.carma(&["notify", "test"]);
    let message = text(&tested.stdout);
    assert!(!tested.status.success() && text(&tested.stderr).contains("3 of 3 notifications failed"), "{message}{}", text(&tested.stderr));
    assert!(
        message.contains("answered 404 Not Found") && message.contains("nonsense: not found") && !message.contains("T0KEN"),
        "{message}"
    );
    assert!(
        message.contains("mail to ada@example.org: FAILED: sendmail is not available here") || fs::exists("/usr/sbin/sendmail").unwrap(),
        "{message}"
    );
    home.install("sendmail");
    home.wishes([Channel::Mail("ada@example.org".to_owned()), Channel::Command("test -z \"$CARMA_LOG\"".to_owned())]);
    let tested = home.carma(&["notify", "test"]);
    assert_eq!(text(&tested.stdout), "1 mail to ada@example.org: sent\n2 command: sent\n", "{}", text(&tested.stderr));
    home.kept("sendmail.in", &["this is a test"]);
}

#[test]
fn a_webhook_is_trusted_by_its_certificate() {
    // A manager on the network serves as an HTTPS server, which refuses the request itself.
    let mut up = ManagerProcess::stopped(None, "");
    let folder = up.folder().to_owned();
    let wanted = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -subj /CN=localhost \
                  -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE -days 2";
    need!(carma_testing::program("openssl"));
    assert!(Command::new("openssl").args(wanted.split_whitespace()).current_dir(&folder).output().unwrap().status.success());
    fs::write(folder.join("tokens"), "").unwrap();
    fs::set_permissions(folder.join("tokens"), Permissions::from_mode(0o600)).unwrap();
    let file = |name: &str| folder.join(name).display().to_string();
    let network = format!(
        "[manager.network]\nlisten = \"127.0.0.1:0\"\ntokens = {:?}\ncertificate = {:?}\nkey = {:?}\n",
        file("tokens"),
        file("cert.pem"),
        file("key.pem")
    );
    fs::write(folder.join("carma.toml"), network).unwrap();
    up.start();
    let address =
        until(|| up.log_text().lines().find_map(|line| line.split_once("INFO  listens on ")?.1.strip_suffix(" too").map(str::to_owned)));
    let message = serde_json::json!({
        "by": {"webhook": format!("https://{address}/v1/status?T0KEN")}, "server": "gpu1", "happened": [], "counts": {},
    });
    fs::write(folder.join("message"), message.to_string()).unwrap();
    let error = |roots: &str| {
        let output = Command::new(program()).arg("deliver").arg(folder.join("message")).env("CARMA_CA", roots).output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty());
        text(&output.stderr)
    };
    assert_eq!(error(&file("cert.pem")), "carma: answered 401 Unauthorized\n");
    let strangers = error("/etc/ssl/certs/ca-certificates.crt");
    assert!(
        (strangers.contains("cannot be reached") || strangers.contains("cannot read certificates")) && !strangers.contains("T0KEN"),
        "{strangers}"
    );
    assert!(error("/nonexistent/roots.pem").contains("cannot read certificates from /nonexistent/roots.pem"));
}

#[test]
fn notification_settings_are_listed_changed_and_refused() {
    let home = Home::new(None, "");
    let run = |words: &[&str]| {
        let output = home.carma(&[&["notify"], words].concat());
        format!("$ carma notify {}\n{}{}", words.join(" "), text(&output.stdout), text(&output.stderr))
    };
    let steps = [
        run(&["list"]),
        run(&["add", "--mail", "ada@example.org", "--on", "failed,recovered"]),
        run(&["add", "--webhook", "https://hooks.example.org/services/T0KEN"]),
        run(&["add", "--command", "beep"]),
        run(&["add", "--mail", "ada@example.org", "--on", "done"]),
        run(&["list"]),
        run(&["remove", "4"]),
        run(&["remove", "1", "3"]),
        run(&["add", "--webhook", "hooks.example.org"]),
        run(&["add", "--mail", "ada@example.org\nBcc: all@example.org"]),
        run(&["add", "--command", " "]),
        run(&["list"]),
    ];
    insta::assert_snapshot!("notify", steps.join("\n"));
    let kept = home.0.client().notifications().unwrap();
    let many: Vec<_> = (0..21).map(|number| Notification { on: ALL.to_vec(), by: Channel::Mail(format!("ada{number}")) }).collect();
    let refused = home.0.client().set_notifications(&many).unwrap_err();
    assert!(matches!(&refused, ClientError::Refused(_)) && refused.to_string().contains("20 are taken at most"), "{refused:?}");
    assert_eq!(home.0.client().notifications().unwrap(), kept);
    assert!(home.carma(&["notify", "remove", "--all"]).status.success());
    assert!(text(&home.carma(&["notify", "test"]).stderr).contains("you have no notifications"));
}

#[test]
fn disabled_notifications_are_refused() {
    let home = Home::new(None, "[manager.notifications]\nenabled = false\n");
    let refused = home.carma(&["notify", "add", "--desktop"]);
    assert!(!refused.status.success() && text(&refused.stderr).contains("disabled"), "{}", text(&refused.stderr));
    assert!(text(&home.carma(&["notify", "test"]).stderr).contains("disabled"));
}

#[test]
fn notifications_run_as_their_user_about_their_own_jobs() {
    let mut nobody = need!(as_nobody(program()));
    let mut up = ManagerProcess::stopped(None, QUICK);
    fs::set_permissions(up.folder(), Permissions::from_mode(0o755)).unwrap();
    let shared_folder = up.folder().join("shared_folder");
    fs::create_dir(&shared_folder).unwrap();
    fs::set_permissions(&shared_folder, Permissions::from_mode(0o1777)).unwrap();
    up.set("SECRET_OF_ROOT", "x");
    up.start();
    let home = Home(up);
    let command = format!("{{ id -u; id -G; env; cat; }} > {}/told", shared_folder.display());
    nobody.args(["notify", "add", "--command", &command]).current_dir(&shared_folder).env("CARMA_SOCKET", home.0.places().socket);
    assert!(nobody.status().unwrap().success());
    assert_eq!(home.0.client().notifications().unwrap(), [], "operators are nobody else");
    let mut submit = as_nobody(program()).unwrap();
    submit.args(["submit", "--gpus", "0", "--", "true"]).current_dir(&shared_folder).env("CARMA_SOCKET", home.0.places().socket);
    let roots = home.0.submit(home.0.shell_job("true"));
    assert!(submit.status().unwrap().success());
    let told = shared_folder.join("told");
    let message = until(|| fs::read_to_string(&told).ok().filter(|message| message.contains("happened")));
    assert!(message.starts_with("65534\n65534\n") && !message.contains("SECRET_OF_ROOT"), "{message}");
    assert!(!message.contains(&format!("\"job\":{}", roots.0)), "{message}");
    assert_eq!(fs::metadata(&told).unwrap().uid(), 65_534);
}
