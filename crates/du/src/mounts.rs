//! Mount points. A directory that is its own ancestor is not a corruption if the loop passes a
//! mount point.

use fathom_walk::mounts::{self, Mount};
use fathom_walk::stat;

/// Device and inode numbers of all local mount points, read on first use.
#[derive(Debug, Default)]
pub(crate) struct MountPoints(Option<Vec<(u64, u64)>>);

impl MountPoints {
    pub(crate) fn contains(&mut self, id: (u64, u64)) -> bool {
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
        assert!(MountPoints::default().contains(stat(c"/").unwrap().id()));
        assert!(!MountPoints::default().contains((0, 0)));
    }
}
