//! Files that change while they are served: a response has one state of its file, with that state's
//! length and tag, or it ends early.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use fathom_serve::Model;

use crate::support::{
    Client, LONG, Response, TestServer, Tree, eventually, io, meanwhile, models, noise, request,
};

/// The time after which a few states are enough.
const SHORT: Duration = Duration::from_secs(30);
/// The maximum time for a few states of a file: each is written to a disk, which other programs may
/// keep busy.
const PATIENCE: Duration = Duration::from_secs(90);

/// Returns state `number` of a file: it repeats its number, and its length is unique.
fn state(number: usize, base: usize) -> Vec<u8> {
    let line = format!("{number:08}\n").into_bytes();
    line.iter().copied().cycle().take(base + number).collect()
}

/// Makes states of a file with `change` while `act` runs.
fn changing(change: impl Fn(usize) + Send, act: impl FnOnce()) -> usize {
    let paced = move |number| {
        change(number);
        std::thread::sleep(Duration::from_micros(300));
    };
    meanwhile(paced, act).1
}

fn replace(path: &Path, bytes: &[u8]) {
    let new = path.with_extension("new");
    fs::write(&new, bytes).unwrap();
    fs::rename(new, path).unwrap();
}

fn plain(response: &Response) -> Vec<u8> {
    let mut body = Vec::new();
    match response.field("content-encoding") {
        Some("gzip") => drop(flate2::read::GzDecoder::new(&*response.body).read_to_end(&mut body).unwrap()),
        None => body.clone_from(&response.body),
        Some(other) => panic!("{other}"),
    }
    body
}

/// Returns the number of the state that a body holds, after checking all bytes.
#[track_caller]
fn number(body: &[u8], base: usize) -> usize {
    let number = std::str::from_utf8(&body[..8]).unwrap().parse().unwrap();
    assert!(body == state(number, base), "a mixture, beginning with state {number}, of {} bytes", body.len());
    number
}

/// Returns whether enough states were seen; a busy disk may need a while for each.
fn is_enough(seen: usize, start: Instant) -> bool {
    seen >= 20 || (seen >= 3 && start.elapsed() > SHORT)
}

/// Requests the file until enough states were seen. Each is complete, none is older than the one
/// before, and each has its own tag.
fn ask_for_states(served: &TestServer, base: usize, context: &str) {
    let (mut client, mut last, mut seen) = (served.connect(), 0, 0);
    let mut tags: HashMap<String, usize> = HashMap::new();
    let start = Instant::now();
    for asked in 0.. {
        if is_enough(seen, start) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{context}: {seen} states, after {asked} requests");
        let accept = if asked % 2 == 0 { "gzip" } else { "identity" };
        client.send(request("GET", "/file.txt", &[("Accept-Encoding", accept)]));
        let Ok(response) = client.try_receive() else {
            // The file was replaced while it was sent.
            client = served.connect();
            continue;
        };
        assert!(matches!(response.status, 200 | 404 | 503), "{context}: {response:?}");
        assert!(accept == "gzip" || response.field("content-encoding").is_none(), "{context}");
        let body = plain(&response);
        // A file is empty between its creation and its first write.
        if response.status != 200 || body.is_empty() {
            continue;
        }
        let number = number(&body, base);
        assert!(number >= last, "{context}: state {number} after {last}");
        let tagged = *tags.entry(response.etag().to_owned()).or_insert(number);
        assert_eq!(tagged, number, "{context}: one tag for two states");
        seen += usize::from(number > last);
        last = number;
    }
}

#[test]
fn a_file_that_is_replaced_is_one_or_the_other() {
    let tree = Tree::new(&[]);
    for model in models() {
        for base in [2000, 150_000] {
            let path = tree.at("file.txt");
            replace(&path, &state(0, base));
            let served = TestServer::new(
                &tree,
                &format!("{}cache = {{ age-ms = 1 }}\n", io(model)),
                "compress = { codings = ['gzip'] }",
            );
            changing(
                |number| replace(&path, &state(number, base)),
                || ask_for_states(&served, base, model.name()),
            );
            // Removed, and back with other contents.
            let away = |number| {
                fs::remove_file(&path).unwrap();
                replace(&path, &state(10_000 + number, base));
            };
            changing(away, || ask_for_states(&served, base, model.name()));
        }
    }
}

/// A write of a few bytes to an empty file is atomic for readers.
#[test]
fn a_file_that_is_written_anew_is_one_or_the_other() {
    let tree = Tree::new(&[]);
    for model in models() {
        let path = tree.at("file.txt");
        fs::write(&path, state(3000, 100)).unwrap();
        let top = format!("{}cache = {{ age-ms = 1 }}\n", io(model));
        let served = TestServer::new(&tree, &top, "compress = { codings = ['gzip'] }");
        // A longer state could be taken for an append: these are shorter, or empty.
        let write = |number: usize| fs::write(&path, state(3000 - number.min(2999), 100)).unwrap();
        changing(write, || ask_for_any_states(&served, model.name()));
    }
}

/// Requests the file until several states were seen, each complete.
fn ask_for_any_states(served: &TestServer, context: &str) {
    let (mut client, mut seen, start) = (served.connect(), HashSet::new(), Instant::now());
    while !is_enough(seen.len(), start) {
        assert!(start.elapsed() < PATIENCE, "{context}: {seen:?}");
        client.send(request("GET", "/file.txt", &[("Accept-Encoding", "gzip")]));
        match client.try_receive() {
            Ok(response) if response.status == 200 && !response.body.is_empty() => {
                seen.insert(number(&plain(&response), 100));
            }
            Ok(response) => assert!(matches!(response.status, 200 | 503), "{context}: {response:?}"),
            Err(_) => client = served.connect(),
        }
    }
}

#[test]
fn a_file_that_grows_is_sent_with_its_length_at_the_request() {
    let line = |number: usize| format!("line {number:08}\n");
    let tree = Tree::new(&[]);
    for model in models() {
        for before in [0, 20_000] {
            let path = tree.at("file.log");
            let lines: String = (0..before).map(line).collect();
            fs::write(&path, lines).unwrap();
            let mut file = File::options().append(true).open(&path).unwrap();
            file.flush().unwrap();
            let served = TestServer::new(&tree, &io(model), "");
            changing(
                |number| (&file).write_all(line(before + number - 1).as_bytes()).unwrap(),
                || {
                    let (mut len, start) = (0, Instant::now());
                    while start.elapsed() < Duration::from_millis(100) || len == 0 {
                        assert!(start.elapsed() < LONG, "{model}: it was never sent");
                        let mut client = served.connect();
                        client.send(request("GET", "/file.log", &[]));
                        let (status, body) = match client.try_receive() {
                            Ok(response) => (response.status, response.body),
                            Err(body) => (206, body),
                        };
                        assert!(matches!(status, 200 | 206 | 503), "{model}: {status}");
                        if status == 503 {
                            continue;
                        }
                        for (at, text) in body.chunks(14).enumerate() {
                            assert!(line(at).as_bytes().starts_with(text), "{model}: line {at}");
                        }
                        if status == 200 {
                            assert!(body.len() >= len, "{model}: it became shorter");
                            len = body.len();
                        }
                    }
                },
            );
        }
    }
}

/// Once, the model `sendfile` ended the response after the bytes that the socket took.
#[test]
fn a_response_goes_on_while_its_file_is_appended_to() {
    let old = noise(6 << 20, 1);
    let tree = Tree::new(&[]);
    let sendfile = [Model::Sendfile, Model::Auto].map(|model| (model, "sendfile = 'always'\n"));
    for (model, more) in models().into_iter().map(|model| (model, "")).chain(sendfile) {
        let served = TestServer::new(&tree, &format!("{}{more}", io(model)), "");
        let path = tree.at("large.log");
        // A log that is written to all the time, and one that was quiet before.
        for age in [Duration::ZERO, Duration::from_secs(60)] {
            fs::write(&path, &old).unwrap();
            File::open(&path).unwrap().set_modified(SystemTime::now() - age).unwrap();
            let mut client = Client::connect_narrow(served.address());
            client.send(request("GET", "/large.log", &[("Connection", "close")]));
            assert_eq!(client.head().field("content-length"), Some("6291456"), "{model}");
            (0..3).for_each(|_| assert_eq!(served.get("/none").status, 404));
            File::options().append(true).open(&path).unwrap().write_all(b"more").unwrap();
            let body = client.rest();
            assert!(body == old, "{model}, {age:?}: {} bytes", body.len());
        }
    }
}

type FileOperation = (&'static str, fn(&Path, &[u8]));

/// Changes of a file after a part of it has been sent. The bytes differ, their number does not.
const CHANGES: [FileOperation; 7] = [
    ("replaced", |path, bytes| replace(path, bytes)),
    ("deleted", |path, _| fs::remove_file(path).unwrap()),
    ("deleted and made again", |path, bytes| {
        fs::remove_file(path).unwrap();
        fs::write(path, bytes).unwrap();
    }),
    ("truncated", |path, bytes| {
        File::options().write(true).open(path).unwrap().set_len(bytes.len() as u64 / 2).unwrap()
    }),
    ("emptied", |path, _| drop(File::create(path).unwrap())),
    ("rewritten", |path, bytes| {
        File::options().write(true).open(path).unwrap().write_all_at(bytes, 0).unwrap()
    }),
    ("rewritten longer", |path, bytes| {
        let file = File::options().write(true).open(path).unwrap();
        file.write_all_at(bytes, 0).unwrap();
        file.write_all_at(b"more", bytes.len() as u64).unwrap();
    }),
];

/// Operations on a file's names and inode after a part of the file has been sent. The content does
/// not change, and an open descriptor still reads all of it.
const HARMLESS: [FileOperation; 11] = [
    ("replaced", |path, bytes| replace(path, bytes)),
    ("deleted", |path, _| fs::remove_file(path).unwrap()),
    ("deleted and made again", |path, bytes| {
        fs::remove_file(path).unwrap();
        fs::write(path, bytes).unwrap();
    }),
    ("moved", |path, _| fs::rename(path, path.with_extension("moved")).unwrap()),
    ("linked", |path, _| fs::hard_link(path, path.with_extension("link")).unwrap()),
    ("unlinked elsewhere", |path, _| {
        fs::hard_link(path, path.with_extension("other")).unwrap();
        fs::remove_file(path.with_extension("other")).unwrap();
    }),
    ("given another mode", |path, _| fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap()),
    ("given to its owner", |path, _| {
        let meta = fs::metadata(path).unwrap();
        std::os::unix::fs::chown(path, Some(meta.uid()), Some(meta.gid())).unwrap();
    }),
    ("given an attribute", |path, _| {
        // Not every filesystem has extended attributes.
        let _ = rustix::fs::setxattr(path, "user.fathom", b"1", rustix::fs::XattrFlags::empty());
    }),
    ("given another access time", |path, _| {
        let times = fs::FileTimes::new().set_accessed(std::time::UNIX_EPOCH + PATIENCE);
        File::options().write(true).open(path).unwrap().set_times(times).unwrap();
    }),
    ("given its own modification time", |path, _| {
        let modified = fs::metadata(path).unwrap().modified().unwrap();
        crate::support::set_mtime(path, modified);
    }),
];

#[test]
fn a_response_goes_on_while_only_names_and_the_inode_change() {
    let (old, new) = (noise(3 << 20, 1), noise(3 << 20, 2));
    let tree = Tree::new(&[]);
    for model in models() {
        let served = TestServer::new(&tree, &format!("{}cache = {{ age-ms = 0 }}\n", io(model)), "");
        for (label, change) in HARMLESS {
            let path = tree.at("large");
            let _links = ["link", "moved"].map(|name| fs::remove_file(path.with_extension(name)));
            replace(&path, &old);
            let mut client = Client::connect_narrow(served.address());
            client.send(request("GET", "/large", &[("Connection", "close")]));
            assert_eq!(client.head().status, 200, "{model}, {label}");
            change(&path, &new);
            let body = client.rest();
            assert!(body == old, "{model}, {label}: it ended after {} bytes", body.len());
        }
    }
}

/// Returns whether the model sends pages that the change `label` modifies. sendfile(2) queues the
/// file's own pages: a write to them, or a truncation, changes unsent bytes. Only avoiding
/// sendfile(2) prevents that, so `auto` does not use it for files that have just changed. The
/// server can only ensure that a truncated file is never sent to its end.
fn shares_pages(model: Model, label: &str) -> bool {
    model == Model::Sendfile && !HARMLESS.iter().any(|(harmless, _)| *harmless == label)
}

#[test]
fn a_response_never_ends_with_bytes_of_another_content() {
    let (old, new) = (noise(6 << 20, 1), noise(6 << 20, 2));
    let tree = Tree::new(&[]);
    for model in models() {
        let served = TestServer::new(&tree, &format!("{}cache = {{ age-ms = 0 }}\n", io(model)), "");
        for (label, change) in CHANGES {
            let path = tree.at("large");
            let _old = fs::remove_file(&path);
            fs::write(&path, &old).unwrap();
            let mut client = Client::connect_narrow(served.address());
            client.send(request("GET", "/large", &[("Connection", "close")]));
            let head = client.head();
            assert_eq!((head.status, head.field("content-length")), (200, Some("6291456")));
            // Other requests are answered: the worker has done its part for this one.
            (0..3).for_each(|_| assert_eq!(served.get("/none").status, 404));
            change(&path, &new);
            let body = client.rest();
            let is_whole_or_short = match shares_pages(model, label) {
                true => label.starts_with("rewritten") || body.len() < old.len(),
                false => old.starts_with(&body),
            };
            assert!(is_whole_or_short, "{model}, {label}: other bytes among {}", body.len());
            let next = served.get("/large");
            let now = fs::read(&path).ok();
            assert_eq!(next.status, if now.is_some() { 200 } else { 404 }, "{model}, {label}");
            assert!(now.is_none_or(|now| now == next.body), "{model}, {label}: what it is now");
        }
    }
}

/// Returns the number of responses from the file cache.
fn kept(client: &mut Client) -> u64 {
    let metrics = client.get("/metrics");
    let is_kept = |line: &&str| line.starts_with("fathom_sources_total{source=\"cache\"}");
    metrics.text().lines().find(is_kept).unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

/// Files that are requested once do not evict files that are requested again.
#[test]
fn a_file_that_is_requested_once_is_not_cached() {
    let (content, tree) = (noise(3000, 1), Tree::new(&[]));
    let names: Vec<String> = (0..100).map(|number| format!("/{number}.bin")).collect();
    names.iter().for_each(|name| tree.write(&name[1..], &content));
    tree.write("often.bin", &content);
    let served = TestServer::new(&tree, "cache = { files = 8, age-ms = 60000 }\nmetrics = '/metrics'\n", "");
    let mut client = served.connect();
    eventually("it is not kept", || {
        let before = kept(&mut client);
        client.get("/often.bin").is(200, &content);
        kept(&mut client) > before
    });
    let before = kept(&mut client);
    names.iter().for_each(|name| client.get(name).is(200, &content));
    assert_eq!(kept(&mut client), before, "nobody had asked for them before");
    client.get("/often.bin").is(200, &content);
    assert_eq!(kept(&mut client), before + 1, "it had to go");
}

/// A long cached body is sent without a copy, also to the local host: the unsent pages are not the
/// file's.
#[test]
fn a_cached_body_is_sent_whole_after_its_file_changes() {
    const AGE: Duration = Duration::from_millis(100);
    let (old, new) = (noise(1 << 20, 1), noise(1 << 20, 2));
    let tree = Tree::new(&[]);
    let name = |sendfile: &str, label: &str| format!("{sendfile}/{}.bin", label.replace(' ', "-"));
    for sendfile in ["remote", "always", "never"] {
        CHANGES.iter().for_each(|(label, _)| tree.write(&name(sendfile, label), &old));
    }
    for sendfile in ["remote", "always", "never"] {
        let top = format!("cache = {{ age-ms = 100 }}\nmetrics = '/metrics'\nsendfile = '{sendfile}'\n");
        let served = TestServer::held(&tree, &top, "");
        for (label, change) in CHANGES {
            let (path, target) = (tree.at(&name(sendfile, label)), format!("/{}", name(sendfile, label)));
            let mut client = served.connect();
            eventually("it is not kept", || {
                served.advance(AGE);
                let before = kept(&mut client);
                client.get(&target).is(200, &old);
                kept(&mut client) > before
            });
            let part = client.ask("GET", &target, &[("Range", "bytes=100000-1000000")]);
            part.is(206, &old[100_000..=1_000_000]);
            client.ask("GET", &target, &[("Range", "bytes=5-9")]).is(206, &old[5..10]);
            let mut slow = Client::connect_narrow(served.address());
            // The second request is sent before the first response is complete.
            slow.send([request("GET", &target, &[]), request("HEAD", "/none", &[])].concat());
            assert_eq!(slow.head().status, 200);
            change(&path, &new);
            served.advance(AGE);
            let next = client.get(&target);
            assert_eq!(fs::read(&path).ok(), (next.status == 200).then_some(next.body), "{label}");
            while slow.pending() < old.len() {
                assert!(slow.more().unwrap() > 0, "{sendfile}, {label}: it ended");
            }
            assert!(slow.take(old.len()) == old, "{sendfile}, {label}: other bytes");
            assert_eq!(slow.receive("HEAD").status, 404, "{sendfile}, {label}");
        }
    }
}

/// The server decides for each response whether the bytes of a cached body are copied; the client
/// cannot tell from the response.
#[test]
fn a_cached_body_is_the_same_copied_or_sent_from_memory() {
    let lengths = [(32 << 10) - 1, 32 << 10, 50_000, 64 << 10, (64 << 10) + 1];
    let contents = lengths.map(|length| (format!("/{length}.bin"), noise(length, 3)));
    let tree = Tree::new(&[]);
    contents.iter().for_each(|(name, content)| tree.write(&name[1..], content));
    let served = TestServer::new(&tree, "metrics = '/metrics'\n", "");
    let mut client = served.connect();
    for (name, content) in &contents {
        eventually("it is not kept", || {
            let before = kept(&mut client);
            client.get(name).is(200, content);
            kept(&mut client) > before
        });
    }
    let before = kept(&mut client);
    let rounds = fathom_cases::count(150);
    for round in 0..rounds {
        for (name, content) in &contents {
            client.get(name).is(200, content);
            let part = client.ask("GET", name, &[("Range", &format!("bytes={round}-33000"))]);
            part.is(206, &content[round..content.len().min(33_001)]);
        }
    }
    let requests = (rounds * contents.len() * 2) as u64;
    assert_eq!(kept(&mut client), before + requests);
}

/// A cached file is revalidated when it is older than its maximum age: then every change shows.
#[test]
fn a_cached_file_is_revalidated_after_its_maximum_age() {
    const AGE: Duration = Duration::from_millis(100);
    let (old, new) = (noise(3000, 1), noise(3000, 2));
    let tree = Tree::new(&[]);
    let name = |label: &str| format!("{}.bin", label.replace(' ', "-"));
    CHANGES.iter().for_each(|(label, _)| tree.write(&name(label), &old));
    tree.write("same-times.bin", &old);
    let served =
        TestServer::held(&tree, "cache = { age-ms = 100 }\nmetrics = '/metrics'\n", "precompressed = true");
    let mut client = served.connect();
    let all: Vec<String> =
        CHANGES.iter().map(|(label, _)| name(label)).chain(["same-times.bin".to_owned()]).collect();
    eventually("not all of them are kept", || {
        served.advance(AGE);
        let before = kept(&mut client);
        all.iter().for_each(|name| client.get(&format!("/{name}")).is(200, &old));
        kept(&mut client) - before == all.len() as u64
    });
    for (label, change) in CHANGES {
        change(&tree.at(&name(label)), &new);
    }
    // With the mtime, the length and the path of the file before it.
    fs::write(tree.at("same-times.bin"), &new).unwrap();
    crate::support::set_mtime(
        &tree.at("same-times.bin"),
        std::time::UNIX_EPOCH + Duration::from_secs(crate::support::MTIME_S),
    );
    served.advance(AGE);
    for name in all {
        let response = client.get(&format!("/{name}"));
        match fs::read(tree.at(&name)) {
            Ok(now) => response.is(200, &now),
            Err(_) => assert_eq!(response.status, 404, "{name}"),
        }
    }
    // A path that did not exist is looked up again as well.
    assert_eq!(client.get("/later.bin").status, 404);
    tree.write("later.bin", b"later");
    tree.write("replaced.bin.gz", b"coded");
    served.advance(AGE);
    client.get("/later.bin").is(200, b"later");
    client.ask("GET", "/replaced.bin", &[("Accept-Encoding", "gzip")]).is(200, b"coded");
}
