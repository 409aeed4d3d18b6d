//! Listings with a pool whose only thread is blocked until the test releases it: how often
//! directories are read and pages formatted, on which thread, and with how much memory.

use std::fs::File;
use std::rc::Rc;
use std::sync::mpsc;

use fathom_files::pool::PoolLimits;
use fathom_io::Errno;
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::{JoinHandle, spawn_local, yield_now};

use super::*;
use crate::listing::PAGE_ENTRIES;

const LIMIT: usize = 64 << 20;
const CLIENTS: usize = 32;

struct Fixture {
    _tree: tempfile::TempDir,
    root: Root,
    opened: OpenFile,
    listings: Rc<ListingCache>,
    context: JobContext,
}

impl Fixture {
    fn new(files: usize) -> Self {
        let tree = tempfile::tempdir().unwrap();
        (0..files).for_each(|file| drop(File::create(tree.path().join(format!("file-{file:06}"))).unwrap()));
        let root = Root::open(tree.path(), Links::Within).unwrap();
        let opened = OpenFile::new(root.beneath.open(b".", LookupMode::Blocking).unwrap().unwrap()).unwrap();
        let limits = PoolLimits { threads: 1, per_device: 1, queue: 1000 };
        let (pool, clock) = (ThreadPool::new(limits, 1, |_| ()), Clock::held());
        let context = JobContext { pool, client: 1, limit: LIMIT, clock };
        Self { _tree: tree, root, opened, listings: Rc::default(), context }
    }

    fn directory(&self, age: Option<Duration>) -> JoinHandle<Result<Arc<DirectorySnapshot>, FileError>> {
        let job = ReadDirectory {
            root: self.root.clone(),
            path: Box::from(&b""[..]),
            opened: self.opened.clone(),
            dotfiles: false,
            view: ListingView::default(),
            filter: EntryFilter::default(),
            links: Links::Within,
            age,
        };
        let (listings, context) = (Rc::clone(&self.listings), self.context.clone());
        spawn_local(async move { listings.directory(&context, job).await })
    }

    fn page(
        &self,
        directory: &Arc<DirectorySnapshot>,
        page: usize,
    ) -> JoinHandle<Result<FormattedPage, FileError>> {
        let view = ListingView { page, ..ListingView::default() };
        let job = FormatPage {
            path: Box::from(&b"/"[..]),
            archives: Vec::new(),
            view,
            format: ListingFormat::Html,
            coding: None,
            compress_min_bytes: 0,
        };
        let (listings, context) = (Rc::clone(&self.listings), self.context.clone());
        let directory = Arc::clone(directory);
        spawn_local(async move { listings.page(&context, directory, job).await })
    }

    /// Blocks the pool's thread until the sender is dropped.
    fn hold(&self) -> mpsc::Sender<()> {
        let (end, ended) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        self.context.pool.spawn(Resource::Cpu, move || {
            begin.send(()).unwrap();
            let _ended = ended.recv();
        });
        begun.recv().unwrap();
        end
    }
}

fn run(test: impl Future<Output = ()>) {
    Builder::new_current_thread().build_local(LocalOptions::default()).unwrap().block_on(test);
}

/// Lets the tasks of this thread run as far as they can without the pool.
async fn settle() {
    for _ in 0..10 {
        yield_now().await;
    }
}

#[test]
fn requests_share_one_read_and_one_page_and_no_worker_computes() {
    run(async {
        let fixture = Fixture::new(100);
        let held = fixture.hold();
        let asked: Vec<_> = (0..CLIENTS).map(|_| fixture.directory(None)).collect();
        settle().await;
        assert!(!asked.iter().any(JoinHandle::is_finished), "it waits for the pool");
        assert_eq!((fixture.listings.load().reads, fixture.context.pool.load().queued), (0, 1));
        drop(held);
        let mut directories = Vec::new();
        for asked in asked {
            directories.push(asked.await.unwrap().unwrap());
        }
        assert!(directories.iter().all(|directory| Arc::ptr_eq(directory, &directories[0])));
        assert_eq!((fixture.listings.load().reads, fixture.listings.load().reading), (1, 0));

        let held = fixture.hold();
        let asked: Vec<_> = (0..CLIENTS).map(|_| fixture.page(&directories[0], 0)).collect();
        settle().await;
        assert!(!asked.iter().any(JoinHandle::is_finished), "it waits for the pool");
        assert_eq!(fixture.context.pool.load().queued, 1);
        drop(held);
        let mut bodies = Vec::new();
        for asked in asked {
            bodies.push(asked.await.unwrap().unwrap().body.unwrap());
        }
        assert!(bodies.iter().all(|body| body.as_ptr() == bodies[0].as_ptr()), "one body for all");
        assert!(fixture.listings.load().bytes as usize >= bodies[0].len());
        drop((directories, bodies));
        assert_eq!(fixture.listings.load().bytes, 0, "nothing is kept that was not to be");
    });
}

#[test]
fn a_directory_that_has_changed_is_read_again_and_one_that_has_not_is_kept_for_its_age() {
    run(async {
        let mut fixture = Fixture::new(3);
        let age = Some(Duration::from_secs(600));
        let first = fixture.directory(age).await.unwrap().unwrap();
        let second = fixture.directory(age).await.unwrap().unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        fixture.opened.meta.mtime.sec += 1;
        let changed = fixture.directory(age).await.unwrap().unwrap();
        assert!(!Arc::ptr_eq(&first, &changed));
        fixture.context.clock.advance(Duration::from_secs(600));
        let third = fixture.directory(age).await.unwrap().unwrap();
        assert!(!Arc::ptr_eq(&changed, &third));
        let (one, two) = (fixture.page(&third, 0).await.unwrap(), fixture.page(&third, 0).await.unwrap());
        assert_eq!(one.unwrap().body.unwrap().as_ptr(), two.unwrap().body.unwrap().as_ptr());
        assert!(fixture.page(&third, 1).await.unwrap().unwrap().body.is_none());
        drop((first, second, changed, third));
        fixture.listings.pages.sweep(true);
        fixture.listings.directories.sweep(true);
        assert_eq!(fixture.listings.load().bytes, 0);
    });
}

#[test]
fn memory_is_limited_over_all_listings_and_kept_ones_make_room() {
    run(async {
        let mut fixture = Fixture::new(PAGE_ENTRIES + 100);
        let age = Some(Duration::from_secs(600));
        let entries = fixture.directory(age).await.unwrap().unwrap();
        let body = fixture.page(&entries, 0).await.unwrap().unwrap().body.unwrap();
        let needed = fixture.listings.load().bytes as usize;
        assert!(needed >= entries.listing.memory() + body.len());
        // With the entries held, the limit leaves no room for another page.
        fixture.context.limit = needed;
        let refused = fixture.page(&entries, 1).await.unwrap();
        assert_eq!(refused.unwrap_err(), FileError::System(Errno::NOMEM));
        // A response under way holds its page. When it ends, the cached page is dropped.
        drop(body);
        assert!(fixture.page(&entries, 1).await.unwrap().unwrap().body.is_some());
        fixture.context.limit = 1000;
        fixture.opened.meta.mtime.sec += 1;
        assert_eq!(fixture.directory(age).await.unwrap().unwrap_err(), FileError::System(Errno::NOMEM));
        drop(entries);
        assert_eq!(fixture.listings.load().bytes, 0, "a failure holds nothing");
    });
}
