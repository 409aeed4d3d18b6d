//! Real sockets, on ports that the kernel chooses.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;

use proptest::prelude::*;
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::{FdFlags, fcntl_getfd};
use rustix::net::sockopt;

use super::*;

fn spec(text: &str) -> ListenSpec {
    text.parse().unwrap()
}

fn on(specs: &[&str], workers: usize) -> Result<Listeners, Error> {
    let specs: Vec<_> = specs.iter().map(|text| spec(text)).collect();
    listen(&specs, workers, 0o660, Activation::default())
}

fn port(listening: &Listeners, at: usize) -> u16 {
    match &listening.addresses[at] {
        ListenAddress::Tcp(address) => address.port(),
        other => panic!("{other}"),
    }
}

/// Accepts one connection on any of the listeners, and sends a greeting.
pub(super) fn answer(listeners: &[Listener]) {
    loop {
        for listener in listeners {
            let said = match listener {
                Listener::Tcp(listener) => {
                    listener.accept().and_then(|(mut peer, _)| peer.write_all(b"hello"))
                }
                Listener::Unix(listener) => {
                    listener.accept().and_then(|(mut peer, _)| peer.write_all(b"hello"))
                }
            };
            match said {
                Ok(()) => return,
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

pub(super) fn greeting(mut stream: impl Read) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

pub(super) fn fd(listener: &Listener) -> std::os::fd::BorrowedFd<'_> {
    match listener {
        Listener::Tcp(listener) => listener.as_fd(),
        Listener::Unix(listener) => listener.as_fd(),
    }
}

#[test]
fn specs_are_parsed() {
    let tcp = |address: &str| ListenSpec::Tcp(address.parse().unwrap());
    for (text, expected) in [
        ("127.0.0.1:8080", tcp("127.0.0.1:8080")),
        ("[::]:80", tcp("[::]:80")),
        ("[fe80::1%2]:80", tcp("[fe80::1%2]:80")),
        (":8080", ListenSpec::All(8080)),
        ("localhost:0", ListenSpec::Localhost(0)),
        ("unix:/run/a b.sock", ListenSpec::Unix("/run/a b.sock".into())),
        ("unix:@fathom", ListenSpec::Abstract("fathom".to_owned())),
        ("systemd", ListenSpec::Systemd),
    ] {
        assert_eq!(spec(text), expected);
        assert_eq!(spec(text).to_string(), text);
    }
}

#[test]
fn malformed_specs_are_refused() {
    let wrong = [
        "",
        "8080",
        "localhost",
        "::1:80",
        "[::1]",
        "[a]:80",
        "a:",
        "a:+1",
        "a:65536",
        "http://a:80",
        "unix:",
        "unix:@",
    ];
    for text in wrong {
        let error = text.parse::<ListenSpec>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot listen on '{text}': ")), "{error}");
    }
}

#[test]
fn every_worker_has_a_socket_of_the_same_port() {
    let listening = on(&["127.0.0.1:0"], 3).unwrap();
    let ports: Vec<_> = listening
        .workers
        .iter()
        .map(|worker| match worker.as_slice() {
            [Listener::Tcp(listener)] => listener.local_addr().unwrap().port(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ports, vec![port(&listening, 0); 3]);
    assert_ne!(ports[0], 0);
    let inodes: std::collections::BTreeSet<_> =
        listening.workers.iter().map(|worker| rustix::fs::fstat(fd(&worker[0])).unwrap().st_ino).collect();
    assert_eq!(inodes.len(), 3, "each is a socket of its own");
    let client = thread::spawn(move || greeting(TcpStream::connect(("127.0.0.1", ports[0])).unwrap()));
    let all: Vec<_> = listening.workers.into_iter().flatten().collect();
    answer(&all);
    assert_eq!(client.join().unwrap(), "hello");
}

#[test]
fn sockets_neither_block_nor_are_inherited() {
    let dir = tempfile::tempdir().unwrap();
    let unix = format!("unix:{}", dir.path().join("s").display());
    let listening = on(&["127.0.0.1:0", &unix, "unix:@fathom-test-flags"], 2).unwrap();
    for listener in listening.workers.iter().flatten() {
        assert!(fcntl_getfl(fd(listener)).unwrap().contains(OFlags::NONBLOCK));
        assert!(fcntl_getfd(fd(listener)).unwrap().contains(FdFlags::CLOEXEC));
    }
    assert_eq!(listening.workers.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
}

#[test]
fn a_second_server_is_refused_though_ports_are_shared() {
    let first = on(&["127.0.0.1:0"], 2).unwrap();
    let address = first.addresses[0].to_string();
    let error = on(&[&address], 2).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen on '{address}': Address already in use"));
    drop(first);
    on(&[&address], 2).unwrap();
}

#[test]
fn all_addresses_are_ipv4_too_unless_that_is_asked_for_apart() {
    let listening = on(&[":0"], 1).unwrap();
    let free = port(&listening, 0);
    let client = thread::spawn(move || greeting(TcpStream::connect(("127.0.0.1", free)).unwrap()));
    answer(&listening.workers[0]);
    assert_eq!(client.join().unwrap(), "hello");
    drop(listening);
    let both = on(&[&format!("[::]:{free}"), &format!("0.0.0.0:{free}")], 2).unwrap();
    let v6only: Vec<_> =
        both.workers[0].iter().map(|listener| sockopt::ipv6_v6only(fd(listener)).ok()).collect();
    assert_eq!(v6only[0], Some(true));
    assert_eq!(both.addresses.len(), 2);
}

#[test]
fn localhost_has_one_port_in_both_families() {
    let listening = on(&["localhost:0"], 2).unwrap();
    let chosen = port(&listening, 0);
    for address in &listening.addresses {
        assert!(
            matches!(address, ListenAddress::Tcp(address) if address.ip().is_loopback() && address.port() == chosen)
        );
    }
    assert!(listening.workers.iter().all(|worker| worker.len() == listening.addresses.len()));
}

#[test]
fn an_address_of_another_machine_names_itself() {
    let error = on(&["192.0.2.1:0"], 1).unwrap_err();
    assert_eq!(error.to_string(), "cannot listen on '192.0.2.1:0': Cannot assign requested address");
}

#[test]
fn a_unix_socket_has_its_mode_and_goes_with_its_server() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let listening = on(&[&format!("unix:{}", path.display())], 2).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    let client = thread::spawn({
        let path = path.clone();
        move || greeting(UnixStream::connect(path).unwrap())
    });
    answer(&listening.workers[1]);
    assert_eq!(client.join().unwrap(), "hello");
    drop(listening);
    assert!(!path.exists());
}

#[test]
fn modes_are_octal() {
    assert_eq!(
        [None, Some("600"), Some("0666")].map(|text| socket_mode(text).unwrap()),
        [0o660, 0o600, 0o666]
    );
    for wrong in ["", "rw", "888", "1777", "+60", "-1"] {
        socket_mode(Some(wrong)).unwrap_err();
    }
}

#[test]
fn a_stale_socket_is_replaced_and_one_that_answers_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let text = format!("unix:{}", path.display());
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let alive = on(&[&text], 1).unwrap();
    let error = on(&[&text], 1).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen on '{text}': Address already in use"));
    assert!(path.exists());
    drop(alive);
}

#[test]
fn a_file_that_is_no_socket_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    fs::write(&path, "precious").unwrap();
    let error = on(&[&format!("unix:{}", path.display())], 1).unwrap_err().to_string();
    assert!(error.ends_with("the path exists and is not a socket"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    let long = format!("unix:{}/{}", dir.path().display(), "x".repeat(200));
    assert!(on(&[&long], 1).unwrap_err().to_string().ends_with("File name too long"));
}

#[test]
fn the_socket_of_a_successor_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let text = format!("unix:{}", path.display());
    let old = on(&[&text], 1).unwrap();
    fs::rename(&path, dir.path().join("old")).unwrap();
    let successor = on(&[&text], 1).unwrap();
    drop(old);
    assert!(path.exists());
    drop(successor);
    assert!(!Path::new(&path).exists());
}

#[test]
fn nothing_is_left_when_one_word_fails() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    on(&[&format!("unix:{}", path.display()), "192.0.2.1:0"], 1).unwrap_err();
    assert!(!path.exists());
}

#[test]
fn sockets_of_systemd_have_to_be_announced_to_this_process() {
    let pid = std::process::id().to_string();
    for (activation, reason) in [
        (Activation::default(), "systemd passed no sockets"),
        (Activation { pid: Some(&pid), fds: None }, "systemd passed no sockets"),
        (Activation { pid: Some("1"), fds: Some("1") }, "the sockets belong to another process"),
        (Activation { pid: Some(&pid), fds: Some("0") }, "LISTEN_FDS is not a number"),
        (Activation { pid: Some(&pid), fds: Some("99999999999") }, "LISTEN_FDS is not a number"),
    ] {
        let error = listen(&[ListenSpec::Systemd], 1, 0o660, activation).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot listen on 'systemd': {reason}")), "{error}");
    }
}

#[test]
fn a_socket_that_was_handed_over_is_looked_at_first() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let expected = ListenAddress::Tcp(tcp.local_addr().unwrap());
    let (listener, address) = inherited::adopt(tcp.into()).unwrap();
    assert_eq!(address, expected);
    assert!(fcntl_getfl(fd(&listener)).unwrap().contains(OFlags::NONBLOCK));
    let (_, address) = inherited::adopt(UnixListener::bind(&path).unwrap().into()).unwrap();
    assert_eq!(address, ListenAddress::Unix(path.clone()));
    let abstracted = unix::bind_abstract("fathom-test-adopt").unwrap();
    assert_eq!(
        inherited::adopt(abstracted.into()).unwrap().1,
        ListenAddress::Abstract("fathom-test-adopt".to_owned())
    );
    let not: [OwnedFd; 3] = [
        UnixStream::pair().unwrap().0.into(),
        std::net::UdpSocket::bind("127.0.0.1:0").unwrap().into(),
        fs::File::open(dir.path()).unwrap().into(),
    ];
    for fd in not {
        inherited::adopt(fd).unwrap_err();
    }
}

proptest! {
    #![proptest_config(fathom_cases::property(256))]

    #[test]
    fn any_word_is_read_back_from_its_own_text(text in "(\\[[0-9a-f:]{0,8}\\]|[a-z0-9.:@/\\[\\] é-]{0,12}):[0-9+-]{0,6}|unix:[@/a-z:]{0,9}") {
        if let Ok(read) = text.parse::<ListenSpec>() {
            prop_assert_eq!(read.to_string().parse::<ListenSpec>().unwrap(), read);
        }
    }
}
