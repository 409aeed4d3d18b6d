//! Passwords that wait to be checked: their number is limited, and clients that have gone hold
//! nothing up. A check takes the only thread of the pool, which the test holds.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use fathom_io::Clock;
use fathom_serve::Config;
use fathom_serve::generator::{GenerateError, GeneratedAnswer, Generator};
use fathom_serve::server::StartOptions;

use crate::support::frames::{END_STREAM, Http2Client};
use crate::support::{Client, LONG, MemoryLog, TestServer, Tree, eventually, request};
use crate::users::{basic, hash};

/// The checks that one address may have at once.
const OWN: usize = 4;

/// A generator whose answers wait until the gate is open.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

impl Generator for Gate {
    fn answer(&self, _root: &Path, _query: &str) -> Result<GeneratedAnswer, GenerateError> {
        let waiting = self.opened.wait_while(self.is_open.lock().unwrap(), |is_open| !*is_open);
        drop(waiting.unwrap());
        Ok(GeneratedAnswer::json("1".to_owned()))
    }
}

/// A server whose default site occupies the only thread of the pool until the gate is open, and
/// whose site `b` has passwords. The clock stands still.
struct Held {
    served: TestServer,
    gate: Arc<Gate>,
    errors: MemoryLog,
    /// The client whose request occupies the thread.
    holder: Option<Client>,
    _tree: Tree,
}

impl Held {
    fn start(limits: &str) -> Self {
        let tree = Tree::new(&[("a", b"private")]);
        let root = tree.root();
        let text = format!(
            "listen = ['127.0.0.1:0']\nworkers = 1\nhealth = '/health'\nmetrics = '/metrics'\n\
             pool = {{ threads = 1 }}\nlimits = {{ password-checks = {}, {limits} }}\n\
             site = {{ root = '{root}', explore = true, names = ['a', 'site.example'] }}\n\
             [[host]]\nnames = ['b']\nroot = '{root}'\nauth.users.anna = '{}'\n",
            8 * OWN,
            hash("secret"),
            root = root.display(),
        );
        let (gate, errors) = (Arc::new(Gate::default()), MemoryLog::default());
        let options = StartOptions {
            clock: Clock::held(),
            generator: Some(gate.clone()),
            errors: Some(Box::new(errors.clone())),
            ..StartOptions::default()
        };
        let served = TestServer::with(&Config::from_toml(&text).unwrap(), options);
        let mut holder = served.connect();
        holder.send(request("GET", "/", &[("Host", "a")]));
        let held = Self { served, gate, errors, holder: Some(holder), _tree: tree };
        eventually("the thread was not taken", || {
            held.gauge("fathom_pool_threads") == 1 && held.gauge("fathom_pool_queue") == 0
        });
        held
    }

    /// Returns a metric. The request needs no thread of the pool.
    fn gauge(&self, name: &str) -> u64 {
        let metrics = self.served.get("/metrics");
        let line = metrics.text().lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap().parse().unwrap()
    }

    /// Sends a request with `password`, and waits until the check waits.
    fn send(&self, password: &str) -> Client {
        let waiting = self.gauge("fathom_pool_queue");
        let mut client = self.served.connect();
        client.send(request("GET", "/a", &[("Host", "b"), ("Authorization", &basic("anna", password))]));
        eventually("the check does not wait", || self.gauge("fathom_pool_queue") == waiting + 1);
        client
    }

    /// Returns the status for `password` and the value of `Retry-After`.
    fn ask(&self, password: &str) -> (u16, Option<u64>) {
        let fields = [("Host", "b"), ("Authorization", &*basic("anna", password))];
        let response = self.served.ask("GET", "/a", &fields);
        (response.status, response.field("retry-after").map(|after| after.parse().unwrap()))
    }
}

#[test]
fn checks_of_an_address_are_limited_and_nothing_else_waits_for_them() {
    let mut held = Held::start("wrong-passwords-per-min = 0");
    let waiting: Vec<_> = (0..OWN).map(|_| held.send("secret")).collect();
    assert_eq!(held.ask("secret"), (429, Some(1)));
    assert_eq!(held.served.get("/health").status, 200);
    let refused = "a password from 127.0.0.1 was not checked: too many checks of this client";
    eventually("it is not reported", || held.errors.text().contains(refused));
    held.gate.open();
    for mut client in waiting {
        client.receive("GET").is(200, b"private");
    }
    held.holder.take().unwrap().receive("GET").is(200, b"1");
    assert_eq!(held.ask("secret"), (200, None));
}

/// Once, the seventeenth request at a time was answered 503, also for a page in memory.
#[test]
fn more_generated_answers_than_are_made_at_once_wait_for_their_turn() {
    let mut held = Held::start("wrong-passwords-per-min = 0");
    let ask = |_| {
        let mut client = held.served.connect();
        client.send(request("GET", "/", &[("Host", "a")]));
        client
    };
    let waiting: Vec<Client> = (0..40).map(ask).collect();
    eventually("they do not wait", || held.gauge("fathom_pool_queue") == 15);
    assert_eq!(held.served.get("/health").status, 200);
    held.gate.open();
    for mut client in waiting.into_iter().chain(held.holder.take()) {
        client.receive("GET").is(200, b"1");
    }
}

/// Once, a connection that waited for an answer did not see the end of its client, and the check of
/// a client that had gone was made.
#[test]
fn clients_that_have_gone_hold_no_connection_and_are_not_checked() {
    let mut held = Held::start("wrong-passwords-per-min = 1");
    let alone = held.gauge("fathom_connections");
    let gone: Vec<_> = (0..OWN - 1).map(|_| held.send("wrong")).collect();
    let mut half_closed = held.send("secret");
    drop(gone);
    half_closed.end();
    assert_eq!(held.gauge("fathom_connections"), alone + OWN as u64, "they may still be reading");
    held.served.advance(Duration::from_secs(2));
    eventually("they are connected", || held.gauge("fathom_connections") == alone);
    assert!(half_closed.rest().is_empty());
    held.gate.open();
    held.holder.take().unwrap().receive("GET").is(200, b"1");
    // Their places are free, and no wrong password has been counted: that would be the last.
    eventually("checks are left", || held.gauge("fathom_pool_queue") == 0);
    assert_eq!(held.ask("wrong").0, 401);
    assert_eq!(held.ask("secret").0, 429);
}

#[test]
fn clients_that_have_gone_do_not_hold_up_the_end() {
    let mut held = Held::start("wrong-passwords-per-min = 0");
    drop((0..OWN).map(|_| held.send("wrong")).collect::<Vec<_>>());
    drop(held.holder.take());
    assert!(held.served.drain(LONG), "requests were cut off");
}

#[test]
fn a_stream_of_http2_that_is_reset_is_not_checked() {
    let mut held = Held::start("wrong-passwords-per-min = 1");
    let mut client = Http2Client::connect(held.served.address(), &[]);
    let streams = || (0..OWN as u32).map(|number| 2 * number + 1);
    client.get_with(streams(), "/a", "b", Some(&basic("anna", "wrong")));
    eventually("the checks do not wait", || held.gauge("fathom_pool_queue") == OWN as u64);
    assert_eq!(held.ask("secret"), (429, Some(1)));
    client.reset(streams());
    // The answer to this comes after the resets have been read.
    client.get([2 * OWN as u32 + 1].into_iter(), "/health");
    client.read_until(1, |frame| frame.flags & END_STREAM != 0);
    held.gate.open();
    held.holder.take().unwrap().receive("GET").is(200, b"1");
    eventually("checks are left", || held.gauge("fathom_pool_queue") == 0);
    assert_eq!(held.ask("wrong").0, 401);
}

#[test]
fn wrong_passwords_of_an_address_are_limited_and_users_that_are_known_are_not() {
    let held = Held::start("wrong-passwords-per-min = 2");
    held.gate.open();
    assert_eq!(held.ask("secret").0, 200);
    assert_eq!([held.ask("1").0, held.ask("2").0], [401; 2]);
    assert_eq!(held.ask("3"), (429, Some(30)));
    assert_eq!(held.ask("secret").0, 200, "this one is known");
    assert_eq!(held.served.ask("GET", "/a", &[("Host", "b")]).status, 401, "without a password");
    held.served.advance(Duration::from_secs(30));
    assert_eq!([held.ask("4").0, held.ask("5").0], [401, 429]);
}
