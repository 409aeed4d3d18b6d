//! Injected faults affect the same entries with each model as with the blocking one.

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;

use fathom_io::blocking::Blocking;
use fathom_io::sim::{CallCounts, Faults, Rates};
use fathom_io::{Dir, Errno, Fields, FileType, Follow, MetadataModel, Names};

/// Name and type of an entry, and the inode number in its metadata.
type Seen = (Vec<u8>, FileType, Result<u64, Errno>);

/// The entries of a directory up to the first read error, and that error.
type Listed = Result<(Vec<Seen>, Option<Errno>), Errno>;

/// Rates at which every fault affects some directories or entries, but not all.
const RATES: Rates = Rates {
    open_eacces: 0.2,
    open_emfile: 0.3,
    emfile_tries: 1,
    read_eio: 0.2,
    read_part: 0.3,
    unknown_type: 0.5,
    short_read: 0.5,
    stat_enoent: 0.2,
    stat_eio: 0.2,
    slow: 0.0,
    slow_us: 0,
    no_magic: false,
};

pub(crate) fn faults_affect_the_same_entries_with_every_model<M: MetadataModel>(
    make: impl Fn() -> Option<M>,
) {
    let temp = tempfile::tempdir().unwrap();
    for dir in 0..20 {
        let dir = temp.path().join(format!("d{dir}"));
        fs::create_dir(&dir).unwrap();
        (0..10).for_each(|file| fs::write(dir.join(format!("f{file}")), b"x").unwrap());
    }
    for seed in 0..4 {
        let Some(model) = make() else { return };
        let (blocking, faults) = (Faults::new(seed, RATES), Faults::new(seed, RATES));
        let expected = list_all(&blocking.over(Blocking), temp.path());
        assert_eq!(list_all(&faults.over(model), temp.path()), expected, "seed {seed}");
        // A read may return fewer names than one of the blocking model.
        let failed = |counts: CallCounts| CallCounts { read: 0, ..counts };
        assert_eq!(failed(faults.counts()), failed(blocking.counts()), "seed {seed}");
        assert!(faults.counts().failed > 0, "seed {seed}");
    }
}

/// Lists every directory in `top` twice, because the second open gets a descriptor.
fn list_all<M: MetadataModel>(model: &M, top: &Path) -> Vec<Listed> {
    let top = Dir::from_fd(fs::File::open(top).unwrap().into());
    let names =
        (0..20).flat_map(|dir| [dir, dir]).map(|dir| std::ffi::CString::new(format!("d{dir}")).unwrap());
    names.map(|name| model.run(list(model, &top, &name))).collect()
}

async fn list<M: MetadataModel>(model: &M, top: &Dir, name: &std::ffi::CStr) -> Listed {
    let dir = model.open(top.as_fd(), name, Follow::No).await?;
    let mut names = Names::new();
    let error = loop {
        match model.read(&dir, &mut names, usize::MAX).await {
            Ok(true) => {}
            Ok(false) => break None,
            Err(errno) => break Some(errno),
        }
    };
    let mut metas = Vec::new();
    model.stat(dir.as_fd(), &names, 0..names.len(), Follow::No, Fields::IDENTITY, &mut metas).await;
    model.close(dir).await;
    let inode = |meta: Option<Result<fathom_io::Meta, Errno>>| meta.unwrap().map(|meta| meta.ino);
    let seen = names.iter().zip(metas);
    Ok((
        seen.map(|(name, meta)| (name.name.to_bytes().to_vec(), name.file_type, inode(meta))).collect(),
        error,
    ))
}
