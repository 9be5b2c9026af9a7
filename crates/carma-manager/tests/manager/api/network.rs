//! Access over TCP: tokens, and TLS.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use carma_manager::configuration::NetworkConfig;
use carma_manager::open_files;
use carma_manager::serve::ServeError;
use carma_testing::need;
use rustix::net;
use serde_json::json;

use super::lab::{Answer, Lab, TIMEOUT, job};

/// The SHA-256 of `secret`.
const HASH: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

/// A token file for the user who runs this, and an address with any port.
fn settings(folder: &Path, mode: u32) -> NetworkConfig {
    let user = nix::unistd::User::from_uid(nix::unistd::getuid()).unwrap().unwrap();
    let tokens = folder.join("tokens");
    fs::write(&tokens, format!("{} {HASH}\nno-such-user-here {}\n", user.name, HASH.replace('2', "3"))).unwrap();
    fs::set_permissions(&tokens, fs::Permissions::from_mode(mode)).unwrap();
    NetworkConfig { listen: Some(([127, 0, 0, 1], 0).into()), tokens: Some(tokens), ..NetworkConfig::default() }
}

fn status(address: SocketAddr, header: &str) -> u16 {
    status_of(address, "/v1/status", header)
}

fn status_of(address: SocketAddr, path: &str, header: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: carma\r\n{header}\r\n").as_bytes()).unwrap();
    Answer::new(stream).status
}

#[test]
fn a_token_identifies_its_user_and_no_token_is_refused() {
    let lab = Lab::with_network(|folder| settings(folder, 0o600)).unwrap();
    let address = lab.address.unwrap();
    assert_eq!(status(address, "authorization: Bearer secret\r\n"), 200);
    assert_eq!(status(address, "authorization: Bearer Secret\r\n"), 401);
    assert_eq!(status(address, "authorization: Basic secret\r\n"), 401);
    assert_eq!(status(address, ""), 401);
    // The page itself contains no user data.
    assert_eq!((status_of(address, "/", ""), status_of(address, "/metrics", "")), (200, 401));
    assert_eq!(status_of(address, "/metrics", "authorization: Bearer secret\r\n"), 200);
}

#[test]
fn silent_clients_on_the_network_take_no_connections_of_local_users() {
    open_files::raise_limit();
    let lab = Lab::with_network(|folder| settings(folder, 0o600)).unwrap();
    let port = lab.address.unwrap().port();
    // As many as there are connections for everyone. A single address does not get this many.
    let silent: Vec<OwnedFd> = (0..4200).filter_map(|client| silent_client(2 + (client / 1000) as u8, port)).collect();
    assert!(silent.len() > 4096, "{} could connect", silent.len());
    for name in ["one", "two"] {
        let [id] = lab.submit(&job(name), None)[..] else { panic!("one job") };
        assert_eq!(lab.get("/v1/queue")["jobs"].as_array().unwrap().len(), 1);
        assert_eq!(lab.post(&format!("/v1/jobs/{id}/cancel"), &json!({}))["done"], json!([id]));
    }
    drop(silent);
    // The server notices soon that they are gone.
    let begin = Instant::now();
    while status(lab.address.unwrap(), "authorization: Bearer secret\r\n") != 200 {
        assert!(begin.elapsed() < TIMEOUT);
    }
}

/// A connection from the loopback address of this number that says nothing.
fn silent_client(number: u8, port: u16) -> Option<OwnedFd> {
    let socket = net::socket(net::AddressFamily::INET, net::SocketType::STREAM, None).ok()?;
    net::bind(&socket, &SocketAddr::from(([127, 0, 0, number], 0))).ok()?;
    net::connect(&socket, &SocketAddr::from(([127, 0, 0, 1], port))).ok()?;
    Some(socket)
}

#[test]
fn tokens_that_others_can_read_are_refused_at_the_start() {
    let refused = Lab::with_network(|folder| settings(folder, 0o644)).err();
    assert!(matches!(&refused, Some(ServeError::File { reason, .. }) if reason.contains("chmod 600")), "{refused:?}");
}

#[test]
fn with_a_certificate_everything_is_encrypted() {
    let made = |folder: &Path| {
        let subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"];
        let mut openssl = Command::new("openssl");
        openssl.args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
        ]);
        openssl.args(subject).current_dir(folder).output().is_ok_and(|made| made.status.success())
    };
    need!(carma_testing::program("openssl"));
    need!(carma_testing::program("curl"));
    let lab = Lab::with_network(|folder| {
        assert!(made(folder));
        NetworkConfig { certificate: Some(folder.join("cert.pem")), key: Some(folder.join("key.pem")), ..settings(folder, 0o600) }
    });
    let lab = lab.unwrap();
    // A handshake that starts and stalls.
    let mut unfinished = TcpStream::connect(lab.address.unwrap()).unwrap();
    unfinished.set_read_timeout(Some(TIMEOUT)).unwrap();
    unfinished.write_all(&[0x16, 3, 1]).unwrap();
    let ask = |scheme: &str| {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--max-time", "60", "--output", "/dev/null", "--write-out", "%{http_code}", "--cacert"])
            .arg(lab.path().join("cert.pem"));
        curl.args(["--header", "Authorization: Bearer secret"]).arg(format!("{scheme}://{}/v1/status", lab.address.unwrap()));
        String::from_utf8(curl.output().unwrap().stdout).unwrap()
    };
    assert_eq!(["https", "http"].map(ask), ["200", "400"]);
    assert!(matches!(unfinished.read(&mut [0]), Ok(0)), "it is closed after a while");
}
