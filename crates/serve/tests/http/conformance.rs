//! All models give the same responses, to the byte, however the bytes were read and the file is
//! stored.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, UNIX_EPOCH};

use crate::support::{Client, MTIME_S, Response, TestServer, Tree, io, models, noise};

/// File lengths around the sizes of pages, of reads, and of sendfile windows.
const LENGTHS: [usize; 12] =
    [0, 1, 4095, 4096, 4097, 65_535, 65_536, 65_537, 262_145, 1 << 20, (1 << 20) + 1, (5 << 20) + 3];
const SPARSE: usize = 3 << 20;

fn tree() -> (Tree, Vec<(String, Vec<u8>)>) {
    let tree = Tree::new(&[]);
    let mut files: Vec<_> = LENGTHS.map(|len| (format!("f{len}.bin"), noise(len, len as u64))).into();
    files.iter().for_each(|(name, bytes)| tree.write(name, bytes));
    let mut sparse = vec![0; SPARSE];
    sparse[2 << 20..(2 << 20) + 5000].copy_from_slice(&noise(5000, 1));
    let file = File::create(tree.at("sparse.bin")).unwrap();
    file.set_len(SPARSE as u64).unwrap();
    file.write_all_at(&noise(5000, 1), 2 << 20).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(MTIME_S)).unwrap();
    files.push(("sparse.bin".to_owned(), sparse));
    (tree, files)
}

/// Returns the `Range` headers for a file of `len` bytes, and the ranges they select.
fn ranges(len: usize) -> Vec<(String, std::ops::Range<usize>)> {
    if len == 0 {
        return Vec::new();
    }
    let middle = len / 2;
    let all =
        [0..1, len - 1..len, 1.min(len - 1)..len, middle..len, middle..middle + (len - middle).min(4097)];
    all.into_iter().map(|range| (format!("bytes={}-{}", range.start, range.end - 1), range)).collect()
}

/// Returns a response without its date, and with a constant boundary.
fn comparable(mut response: Response) -> Response {
    response = response.without_date();
    let boundary = response
        .field("content-type")
        .and_then(|kind| kind.split_once("boundary="))
        .map(|(_, b)| b.to_owned());
    if let Some(boundary) = boundary {
        let text: String = response.body.iter().copied().map(char::from).collect();
        response.body = text.replace(&boundary, "B").into_bytes();
        response.fields.iter_mut().for_each(|(_, value)| *value = value.replace(&boundary, "B"));
    }
    response
}

fn answers(client: &mut Client, files: &[(String, Vec<u8>)]) -> Vec<Response> {
    let mut answers = Vec::new();
    for (name, bytes) in files {
        let target = format!("/{name}");
        let whole = client.get(&target);
        whole.is(200, bytes);
        answers.push(client.ask("HEAD", &target, &[]));
        answers.push(client.ask("GET", &target, &[("If-None-Match", whole.etag())]));
        for (range, part) in ranges(bytes.len()) {
            let response = client.ask("GET", &target, &[("Range", &range)]);
            response.is(206, &bytes[part]);
            answers.push(response);
        }
        answers.push(client.ask("GET", &target, &[("Range", "bytes=0-99,4000-4200,-1")]));
        answers.push(whole);
    }
    answers.into_iter().map(comparable).collect()
}

#[test]
fn all_models_answer_alike() {
    let (tree, files) = tree();
    let mut first: Option<Vec<Response>> = None;
    for model in models() {
        let served = TestServer::new(&tree, &io(model), "");
        let mut client = served.connect();
        let answers = answers(&mut client, &files);
        match &first {
            None => first = Some(answers),
            Some(first) => first.iter().zip(&answers).for_each(|(expected, answer)| {
                assert!(expected == answer, "{model}: {:?}, wanted {:?}", answer.fields, expected.fields);
            }),
        }
    }
}

/// Several slow clients at once on one worker: none receives the bytes of another.
#[test]
fn concurrent_clients_get_their_own_responses() {
    let (tree, files) = tree();
    for model in models() {
        let served = TestServer::new(&tree, &io(model), "");
        std::thread::scope(|scope| {
            for start in 0..4 {
                let (served, files) = (&served, &files);
                scope.spawn(move || {
                    let mut client = served.connect();
                    for at in 0..files.len() {
                        let (name, bytes) = &files[(at * 5 + start * 3) % files.len()];
                        client.get(&format!("/{name}")).is(200, bytes);
                    }
                });
            }
        });
    }
}
