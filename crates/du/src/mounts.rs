//! Which directories are mount points: a directory that is one of its own ancestors is no corruption if one is.

use fathom_walk::mounts::{self, Mount};
use fathom_walk::stat;

/// Device and inode numbers of all local mount points, read when first asked for.
#[derive(Debug, Default)]
pub(crate) struct Mounts(Option<Vec<(u64, u64)>>);

impl Mounts {
    pub(crate) fn has(&mut self, id: (u64, u64)) -> bool {
        let id_of = |mount: Mount| stat(&mount.point).ok().map(|meta| meta.id());
        let ids = || mounts::read().unwrap_or_default().into_iter().filter_map(id_of).collect();
        self.0.get_or_insert_with(ids).contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_directory_is_a_mount_point() {
        assert!(Mounts::default().has(stat(c"/").unwrap().id()));
        assert!(!Mounts::default().has((0, 0)));
    }
}
