//! Clients that read nothing, or next to nothing: the bytes that the server holds for them, and
//! their timeouts.

use fathom_files::POOL_READ_BYTES;
use h3::error::StreamError;

use crate::Http3Site;
use crate::client::{Client, Stream, run};
use crate::support::{LONG, Tree, eventually};

const CONNECTIONS: usize = 8;
const STREAMS: usize = 120;
/// A connection with this many unsent bytes reads no more, except for a piece of each stream.
const CONNECTION_BYTES: u64 = 1 << 20;
/// The bytes that a waiting stream counts for.
const STREAM_BYTES: u64 = 4 << 10;

/// Serves a file that is longer than any buffer, and reads it with `model`.
fn site(model: &str, limits: &str) -> Http3Site {
    let tree = Tree::new(&[("short", b"here")]);
    std::fs::File::create(tree.at("large")).unwrap().set_len(1 << 30).unwrap();
    Http3Site::new(
        tree,
        &format!("io = '{model}'\nlimits = {{ write-timeout-ms = 3600000, {limits} }}\n"),
        "",
    )
}

fn buffered(site: &Http3Site) -> u64 {
    try_buffered(site).unwrap()
}

/// Returns the bytes that the server holds for its clients.
///
/// # Errors
/// The request for the metrics was cancelled, which a short write timeout may do.
fn try_buffered(site: &Http3Site) -> Result<u64, StreamError> {
    let metrics = String::from_utf8(run(site.connect().ask("GET", "/metrics", &[]))?.body).unwrap();
    let value = metrics.lines().find_map(|line| line.strip_prefix("fathom_buffered_bytes "));
    Ok(value.unwrap().parse().unwrap())
}

/// Opens clients that have received the headers of their responses, and read no more than `window`
/// bytes.
fn ask(site: &Http3Site, window: u32) -> Vec<(Client, Vec<Stream>)> {
    let connect = |_| {
        run(async {
            let connector = site.connector().window(window);
            let mut client = connector.connect(site.served.address()).await.unwrap();
            let mut streams = Vec::new();
            for _ in 0..STREAMS {
                let mut stream = client.begin("GET", "/large", &[]).await.unwrap();
                stream.recv_response().await.unwrap();
                streams.push(stream);
            }
            (client, streams)
        })
    };
    (0..CONNECTIONS).map(connect).collect()
}

fn shorten_write_timeout(site: &mut Http3Site) {
    site.config.limits.write_timeout_ms = 1;
    let config = site.config.clone();
    site.served.server().reload(&config).unwrap();
}

#[test]
fn streams_with_closed_windows_hold_little_and_end() {
    let mut site = site("auto", "");
    let clients = ask(&site, 1000);
    let most = CONNECTIONS as u64 * (CONNECTION_BYTES + STREAMS as u64 * STREAM_BYTES + (64 << 10));
    let now = buffered(&site);
    assert!(now > 0 && now <= most, "{now} bytes of {most}");
    assert_eq!(run(site.connect().get("/short")).body, b"here");
    shorten_write_timeout(&mut site);
    for (_client, streams) in clients {
        for mut stream in streams {
            let end = run(async {
                while stream.recv_data().await?.is_some() {}
                Ok::<_, StreamError>(())
            });
            assert!(end.is_err(), "a stream is whole");
        }
    }
    eventually("they are still counted", || try_buffered(&site).is_ok_and(|bytes| bytes == 0));
    assert!(site.served.drain(LONG), "streams that had ended were cut off");
}

/// The windows are open, but the clients read nothing: unsent bytes are bounded.
#[test]
fn clients_that_never_read_hold_no_more_than_the_limit() {
    let limit = 2 << 20;
    let mut site = site("auto", &format!("buffer-bytes = {limit}"));
    let clients = ask_open(&site);
    let most = limit + CONNECTIONS as u64 * (CONNECTION_BYTES + STREAM_BYTES);
    for _ in 0..20 {
        let now = buffered(&site);
        assert!(now <= most, "{now} bytes of {most}");
    }
    assert_eq!(run(site.connect().get("/short")).body, b"here");
    shorten_write_timeout(&mut site);
    eventually("they are still counted", || try_buffered(&site).is_ok_and(|bytes| bytes == 0));
    drop(clients);
    assert!(site.served.drain(LONG));
}

/// Responses that wait for the pool find out whether there is room when they read. Before, they did
/// when they began to wait: then a connection held a piece of each of its streams.
#[test]
fn reads_that_wait_for_the_pool_take_the_room_of_one_connection() {
    let site = site("pool", "");
    // The client's runtime stops here, so that nothing is acknowledged from now on.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _client = runtime.block_on(async {
        let connector = site.connector().window(1 << 20);
        let mut client = connector.connect(site.served.address()).await.unwrap();
        let mut streams = Vec::new();
        for _ in 0..STREAMS {
            let mut stream = client.begin("GET", "/large", &[]).await.unwrap();
            stream.recv_response().await.unwrap();
            streams.push(stream);
        }
        (client, streams)
    });
    let most = CONNECTION_BYTES + POOL_READ_BYTES + STREAMS as u64 * STREAM_BYTES;
    eventually("the connection is not full", || buffered(&site) >= CONNECTION_BYTES);
    for _ in 0..50 {
        let now = buffered(&site);
        assert!(now <= most, "{now} bytes of {most}");
    }
}

fn ask_open(site: &Http3Site) -> Vec<(Client, Vec<Stream>)> {
    let connect = |_| {
        run(async {
            let connector = site.connector().window(1 << 20);
            let mut client = connector.connect(site.served.address()).await.unwrap();
            let mut streams = Vec::new();
            for _ in 0..STREAMS {
                streams.push(client.begin("GET", "/large", &[]).await.unwrap());
            }
            (client, streams)
        })
    };
    (0..CONNECTIONS).map(connect).collect()
}

/// A slow client is served as long as it keeps reading.
#[test]
fn a_client_that_reads_now_and_then_gets_everything() {
    let tree = Tree::new(&[("file", &crate::support::noise(300_000, 1))]);
    let site = Http3Site::new(tree, "limits = { write-timeout-ms = 60000 }\n", "");
    let mut client = run(site.connector().window(1000).connect(site.served.address())).unwrap();
    let mut stream = run(client.begin("GET", "/file", &[])).unwrap();
    let response = run(crate::client::finish(&mut stream)).unwrap();
    assert!(response.body == crate::support::noise(300_000, 1));
    drop((stream, client));
    assert!(site.served.drain(LONG));
}
