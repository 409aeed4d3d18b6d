//! Metrics in the Prometheus text format 0.0.4. Each worker counts in atomics that it alone writes,
//! so a count is a few additions without contention for a cache line. Rendering adds them up.
//!
//! No label ever has a byte from a client: methods, statuses and sources come from fixed lists, and
//! any other value is `other`.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::log::BodySource;

/// The `Content-Type` of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const METHODS: [&str; 8] = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH", OTHER];
const STATUSES: [u16; 31] = [
    100, 200, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 406, 408, 412, 413, 414, 415,
    416, 417, 421, 429, 431, 500, 501, 503, 504, 505,
];
const OTHER: &str = "other";
/// The upper bounds of the histogram buckets, in microseconds.
const BUCKETS: [u64; 16] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];
/// The most filesystems that are named: the number of label values has to be bounded.
const DEVICES_MAX: usize = 32;

/// The counter index for each status from 100 to 599, so that a request does not search.
const STATUS_SLOTS: [u8; 500] = {
    let mut slots = [STATUSES.len() as u8; 500];
    let mut at = 0;
    while at < STATUSES.len() {
        slots[STATUSES[at] as usize - 100] = at as u8;
        at += 1;
    }
    slots
};

/// The counters of one worker, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct WorkerCounters {
    requests: [[AtomicU64; STATUSES.len() + 1]; METHODS.len()],
    sources: [AtomicU64; BodySource::ALL.len()],
    response_bytes: AtomicU64,
    opened: AtomicU64,
    closed: AtomicU64,
    durations: Histogram,
    stalls: Histogram,
}

impl WorkerCounters {
    /// Counts a request. `bytes` is the length of the response body.
    pub fn record_request(
        &self,
        method: &http::Method,
        status: u16,
        source: BodySource,
        bytes: u64,
        duration: Duration,
    ) {
        if let Some(count) =
            self.requests.get(method_slot(method)).and_then(|row| row.get(status_slot(status)))
        {
            add(count, 1);
        }
        if let Some(count) = self.sources.get(source.index()) {
            add(count, 1);
        }
        add(&self.response_bytes, bytes);
        self.durations.observe(duration);
    }

    /// Counts an accepted connection.
    pub fn connection_opened(&self) {
        add(&self.opened, 1);
    }

    /// Counts a closed connection.
    pub fn connection_closed(&self) {
        add(&self.closed, 1);
    }

    /// Records that one call blocked the worker for `duration`, during which it polled none of its
    /// connections.
    pub fn record_stall(&self, duration: Duration) {
        self.stalls.observe(duration);
    }
}

#[derive(Debug, Default)]
struct Histogram {
    /// The counts by bucket; the last one is of durations above all bounds.
    counts: [AtomicU64; BUCKETS.len() + 1],
    sum_us: AtomicU64,
}

impl Histogram {
    fn observe(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let slot = BUCKETS.iter().position(|&end| micros <= end).unwrap_or(BUCKETS.len());
        if let Some(count) = self.counts.get(slot) {
            add(count, 1);
        }
        add(&self.sum_us, micros);
    }
}

fn add(count: &AtomicU64, more: u64) {
    // Relaxed: no other data depends on a counter.
    count.fetch_add(more, Ordering::Relaxed);
}

fn get(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

fn method_slot(method: &http::Method) -> usize {
    let name = method.as_str();
    METHODS.iter().position(|&known| known == name).unwrap_or(METHODS.len() - 1)
}

fn status_slot(status: u16) -> usize {
    let slot = usize::from(status).checked_sub(100).and_then(|at| STATUS_SLOTS.get(at));
    slot.map_or(STATUSES.len(), |&slot| usize::from(slot))
}

/// The gauges of listings.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListingGauges {
    /// Directories that were read or are being read.
    pub reads: u64,
    /// Directories that are being read.
    pub reading: u64,
    /// Bytes of entries and pages in memory.
    pub bytes: u64,
}

/// The values that are kept outside the counters, sampled for one rendering.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    /// Requests that wait for a thread of the pool.
    pub pool_queue: u64,
    /// Threads of the pool.
    pub pool_threads: u64,
    /// Listings.
    pub listings: ListingGauges,
    /// Unsent response bytes in memory.
    pub buffered_bytes: u64,
    /// Panics that were caught.
    pub panics: u64,
    /// Lines that the access log has lost.
    pub log_lines_dropped: u64,
    /// Filesystems, by major and minor number of their device, that refuse `RWF_NOWAIT`.
    pub nowait_unsupported: Vec<(u32, u32)>,
}

/// The counters of all workers.
///
/// ```
/// use fathom_serve::metrics::{Gauges, Metrics};
///
/// let metrics = Metrics::new(2);
/// metrics.worker(0).unwrap().connection_opened();
/// assert_eq!(metrics.connections(), 1);
/// assert!(metrics.worker(2).is_none());
/// assert!(metrics.render(&Gauges::default()).contains("fathom_build_info"));
/// ```
#[derive(Debug)]
pub struct Metrics {
    workers: Vec<WorkerCounters>,
}

impl Metrics {
    /// Creates the counters of `workers` workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self { workers: (0..workers).map(|_| WorkerCounters::default()).collect() }
    }

    /// Returns the counters of one worker, if it exists.
    #[must_use]
    pub fn worker(&self, worker: usize) -> Option<&WorkerCounters> {
        self.workers.get(worker)
    }

    /// Returns the number of open connections.
    #[must_use]
    pub fn connections(&self) -> u64 {
        // Load the closed connections first: a connection that opens and closes between the two
        // loads would otherwise count as closed only. `saturating_sub` covers a reordering of the
        // loads, which are Relaxed.
        let closed = self.sum(|worker| &worker.closed);
        self.sum(|worker| &worker.opened).saturating_sub(closed)
    }

    /// Renders all metrics in the format of [`CONTENT_TYPE`].
    #[must_use]
    pub fn render(&self, gauges: &Gauges) -> String {
        let mut exposition = Exposition::default();
        exposition.family("fathom_build_info", "gauge", "Always 1; the label has the version.");
        exposition.sample("fathom_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        self.render_requests(&mut exposition);
        self.render_histogram(
            &mut exposition,
            "fathom_request_duration_seconds",
            "Time from the first to the last byte.",
            |w| &w.durations,
        );
        let stalls = "Time that a worker spent in one call.";
        self.render_histogram(&mut exposition, "fathom_worker_stall_seconds", stalls, |w| &w.stalls);
        exposition.single("fathom_connections", "gauge", "Open connections.", self.connections());
        let opened = self.sum(|worker| &worker.opened);
        exposition.single("fathom_connections_total", "counter", "Accepted connections.", opened);
        exposition.single("fathom_pool_queue", "gauge", "Requests waiting for a thread.", gauges.pool_queue);
        exposition.single("fathom_pool_threads", "gauge", "Threads of the pool.", gauges.pool_threads);
        let ListingGauges { reads, reading, bytes } = gauges.listings;
        exposition.single("fathom_listing_reads_total", "counter", "Directories read for listings.", reads);
        exposition.single("fathom_listing_reads", "gauge", "Directories being read for listings.", reading);
        exposition.single("fathom_listing_bytes", "gauge", "Bytes of entries and pages of listings.", bytes);
        let buffered = "Bytes of responses in memory, waiting for their clients.";
        exposition.single("fathom_buffered_bytes", "gauge", buffered, gauges.buffered_bytes);
        let panics = "Panics: each is a bug, and closed one connection or call.";
        exposition.single("fathom_panics_total", "counter", panics, gauges.panics);
        let lost = "Lines lost by the access log.";
        exposition.single("fathom_log_lines_dropped_total", "counter", lost, gauges.log_lines_dropped);
        render_nowait(&mut exposition, &gauges.nowait_unsupported);
        exposition.text
    }

    fn render_requests(&self, exposition: &mut Exposition) {
        exposition.family("fathom_requests_total", "counter", "Answered requests.");
        for (row, method) in METHODS.iter().enumerate() {
            for slot in 0..=STATUSES.len() {
                let count = self.sum_of(|worker| worker.requests.get(row)?.get(slot));
                let status = STATUSES.get(slot).map_or_else(|| OTHER.to_owned(), u16::to_string);
                if count > 0 {
                    exposition.sample(
                        "fathom_requests_total",
                        &[("method", method), ("status", &status)],
                        count,
                    );
                }
            }
        }
        let bytes = self.sum(|worker| &worker.response_bytes);
        exposition.single("fathom_response_bytes_total", "counter", "Bytes of bodies sent.", bytes);
        exposition.family("fathom_sources_total", "counter", "Responses by the source of their bytes.");
        for source in BodySource::ALL {
            let word = if source == BodySource::Other { OTHER } else { source.word() };
            let count = self.sum_of(|worker| worker.sources.get(source.index()));
            exposition.sample("fathom_sources_total", &[("source", word)], count);
        }
    }

    fn render_histogram(
        &self,
        exposition: &mut Exposition,
        name: &str,
        help: &str,
        of: impl Fn(&WorkerCounters) -> &Histogram,
    ) {
        exposition.family(name, "histogram", help);
        let mut count = 0;
        for slot in 0..=BUCKETS.len() {
            count += self.sum_of(|worker| of(worker).counts.get(slot));
            let end = BUCKETS.get(slot).map_or_else(|| "+Inf".to_owned(), |&end| seconds(end));
            exposition.sample(&format!("{name}_bucket"), &[("le", &end)], count);
        }
        let sum = self.sum(|worker| &of(worker).sum_us);
        exposition.sample(&format!("{name}_sum"), &[], seconds(sum));
        exposition.sample(&format!("{name}_count"), &[], count);
    }

    fn sum(&self, of: impl Fn(&WorkerCounters) -> &AtomicU64) -> u64 {
        self.sum_of(|worker| Some(of(worker)))
    }

    /// Returns the sum over all workers. A sum wraps around, as Prometheus expects of counters.
    fn sum_of<'a>(&'a self, of: impl Fn(&'a WorkerCounters) -> Option<&'a AtomicU64>) -> u64 {
        self.workers.iter().filter_map(of).map(get).fold(0, u64::wrapping_add)
    }
}

fn render_nowait(exposition: &mut Exposition, devices: &[(u32, u32)]) {
    let name = "fathom_nowait_unsupported";
    exposition.family(name, "gauge", "File systems that refuse reads without waiting.");
    for (major, minor) in devices.iter().take(DEVICES_MAX) {
        exposition.sample(name, &[("device", &format!("{major}:{minor}"))], 1);
    }
}

/// Formats microseconds as seconds, without rounding.
fn seconds(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[derive(Default)]
struct Exposition {
    text: String,
}

/// Writing to a `String` cannot fail.
impl Exposition {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// Writes one sample. Labels need no escapes: their values are numbers and words of this
    /// program.
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let labels: Vec<_> = labels.iter().map(|(label, text)| format!("{label}=\"{text}\"")).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.text, "{name}{labels} {value}");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use http::Method;
    use proptest::prelude::*;

    use super::*;

    /// Parses samples by name and labels. Panics on text that Prometheus rejects: a sample without
    /// its family's head, a repeated head or sample, an invalid name, a value that is no number.
    fn parse(text: &str) -> BTreeMap<String, f64> {
        let (mut kinds, mut samples) = (BTreeMap::new(), BTreeMap::new());
        let mut helped = BTreeSet::new();
        assert!(text.ends_with('\n'));
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                assert!(helped.insert(help.split(' ').next().unwrap()), "{line}");
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                assert!(["counter", "gauge", "histogram"].contains(&kind) && helped.contains(name), "{line}");
                assert!(kinds.insert(name, kind).is_none(), "{line}");
            } else {
                let (key, value) = line.rsplit_once(' ').unwrap();
                check_key(key, &kinds);
                assert!(samples.insert(key.to_owned(), value.parse().unwrap()).is_none(), "{line}");
            }
        }
        samples
    }

    fn check_key(key: &str, kinds: &BTreeMap<&str, &str>) {
        let (name, labels) = key.split_once('{').unwrap_or((key, "}"));
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{key}");
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let histogram = base.is_some_and(|base| kinds.get(base) == Some(&"histogram"));
        assert!(histogram || kinds.contains_key(name), "{key} has no type");
        assert_eq!(kinds.get(name) == Some(&"counter"), !histogram && name.ends_with("_total"), "{key}");
        let labels = labels.strip_suffix('}').unwrap();
        for label in labels.split(',').filter(|label| !label.is_empty()) {
            let (_, value) = label.split_once("=\"").unwrap();
            let value = value.strip_suffix('"').unwrap();
            assert!(!value.contains(['"', '\\', '\n']), "{key}");
        }
    }

    fn check_histogram(samples: &BTreeMap<String, f64>, name: &str) -> f64 {
        let ends = BUCKETS.iter().map(|&end| seconds(end)).chain(["+Inf".to_owned()]);
        let counts: Vec<_> = ends.map(|end| samples[&format!("{name}_bucket{{le=\"{end}\"}}")]).collect();
        assert!(counts.is_sorted(), "{counts:?}");
        assert_eq!(counts.last(), samples.get(&format!("{name}_count")));
        samples[&format!("{name}_count")]
    }

    #[test]
    fn workers_are_added_up() {
        let metrics = Metrics::new(2);
        let [first, second] = [metrics.worker(0).unwrap(), metrics.worker(1).unwrap()];
        first.connection_opened();
        second.connection_opened();
        second.connection_closed();
        first.record_request(&Method::GET, 200, BodySource::Cache, 10, Duration::from_micros(90));
        second.record_request(&Method::GET, 200, BodySource::Pool, 5, Duration::from_micros(1_500_001));
        second.record_request(&Method::HEAD, 304, BodySource::Other, 0, Duration::from_secs(60));
        second.record_stall(Duration::from_millis(1));
        let gauges = Gauges {
            pool_queue: 3,
            pool_threads: 4,
            listings: ListingGauges { reads: 6, reading: 7, bytes: 8 },
            buffered_bytes: 9,
            panics: 10,
            log_lines_dropped: 5,
            nowait_unsupported: vec![(0, 45)],
        };
        let samples = parse(&metrics.render(&gauges));
        for (key, value) in [
            ("fathom_requests_total{method=\"GET\",status=\"200\"}", 2.0),
            ("fathom_requests_total{method=\"HEAD\",status=\"304\"}", 1.0),
            ("fathom_response_bytes_total", 15.0),
            ("fathom_sources_total{source=\"cache\"}", 1.0),
            ("fathom_sources_total{source=\"other\"}", 1.0),
            ("fathom_connections", 1.0),
            ("fathom_connections_total", 2.0),
            ("fathom_request_duration_seconds_bucket{le=\"0.0001\"}", 1.0),
            ("fathom_request_duration_seconds_bucket{le=\"2.5\"}", 2.0),
            ("fathom_request_duration_seconds_sum", 61.500_091),
            ("fathom_worker_stall_seconds_bucket{le=\"0.001\"}", 1.0),
            ("fathom_pool_queue", 3.0),
            ("fathom_pool_threads", 4.0),
            ("fathom_listing_reads_total", 6.0),
            ("fathom_listing_reads", 7.0),
            ("fathom_listing_bytes", 8.0),
            ("fathom_buffered_bytes", 9.0),
            ("fathom_panics_total", 10.0),
            ("fathom_log_lines_dropped_total", 5.0),
            ("fathom_nowait_unsupported{device=\"0:45\"}", 1.0),
        ] {
            assert_eq!(samples.get(key), Some(&value), "{key}");
        }
        assert_eq!(check_histogram(&samples, "fathom_request_duration_seconds"), 3.0);
    }

    #[test]
    fn a_clients_words_never_become_a_label() {
        let metrics = Metrics::new(1);
        let counters = metrics.worker(0).unwrap();
        for at in 0..1000_u16 {
            let method = Method::from_bytes(format!("EVIL{at}").as_bytes()).unwrap();
            counters.record_request(&method, at.saturating_mul(70), BodySource::Other, 0, Duration::ZERO);
        }
        let text = metrics.render(&Gauges::default());
        assert!(!text.contains("EVIL"));
        let requests = parse(&text).keys().filter(|key| key.starts_with("fathom_requests_total")).count();
        assert!((1..=STATUSES.len() + 1).contains(&requests), "{requests}");
    }

    #[test]
    fn filesystems_without_end_are_not_named() {
        let gauges =
            Gauges { nowait_unsupported: (0..1000).map(|minor| (0, minor)).collect(), ..Gauges::default() };
        assert_eq!(
            Metrics::new(1).render(&gauges).matches("fathom_nowait_unsupported{").count(),
            DEVICES_MAX
        );
    }

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        #[test]
        fn every_request_is_counted_once(
            requests in proptest::collection::vec((any::<u16>(), 0_usize..6, any::<u32>(), any::<u64>()), 0..50),
        ) {
            let metrics = Metrics::new(3);
            for (at, &(status, source, bytes, micros)) in requests.iter().enumerate() {
                let counters = metrics.worker(at % 3).unwrap();
                let duration = Duration::from_micros(micros >> 12);
                counters.record_request(&Method::POST, status, BodySource::ALL[source], u64::from(bytes), duration);
            }
            let samples = parse(&metrics.render(&Gauges::default()));
            let total = |prefix: &str| -> f64 {
                samples.iter().filter(|(key, _)| key.starts_with(prefix)).map(|(_, value)| value).sum()
            };
            let count = requests.len() as f64;
            prop_assert_eq!(total("fathom_requests_total{"), count);
            prop_assert_eq!(total("fathom_sources_total{"), count);
            prop_assert_eq!(check_histogram(&samples, "fathom_request_duration_seconds"), count);
            let bytes: u64 = requests.iter().map(|request| u64::from(request.2)).sum();
            prop_assert_eq!(samples["fathom_response_bytes_total"], bytes as f64);
            for (at, status) in STATUSES.iter().enumerate() {
                prop_assert_eq!(status_slot(*status), at);
            }
        }
    }
}
