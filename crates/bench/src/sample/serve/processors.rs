//! The processors of client and server. If both may run on any, the time of a sample depends on
//! whether the scheduler puts them on the same.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors that the process may use, divided: the last for the client, whose work is on one
/// thread, the others for the server.
#[derive(Debug)]
pub(super) struct Processors {
    /// `None` if there is only one, or the kernel does not report them.
    parts: Option<(CpuSet, CpuSet)>,
}

impl Processors {
    /// Divides the processors that the calling thread may use.
    pub(super) fn of_this_thread() -> Self {
        Self { parts: sched_getaffinity(None).ok().and_then(divide) }
    }

    /// Moves the calling thread to the processors of the server, which a process that it starts
    /// inherits.
    pub(super) fn take_for_server(&self) {
        self.parts.iter().for_each(|(server, _)| set(server));
    }

    /// Moves the calling thread to the processor of the client.
    pub(super) fn take_for_client(&self) {
        self.parts.iter().for_each(|(_, client)| set(client));
    }
}

/// Sets the processors of the calling thread. A failure leaves it on those it had, which makes
/// times less regular, and nothing else.
fn set(processors: &CpuSet) {
    let _ = sched_setaffinity(None, processors);
}

fn divide(all: CpuSet) -> Option<(CpuSet, CpuSet)> {
    let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| all.is_set(*cpu)).filter(|_| all.count() > 1)?;
    let (mut server, mut client) = (all, CpuSet::new());
    server.unset(last);
    client.set(last);
    Some((server, client))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_has_the_last_processor_and_the_server_the_others() {
        let mut all = CpuSet::new();
        all.set(3);
        assert!(divide(all).is_none(), "one processor is for both");
        all.set(5);
        all.set(7);
        let (server, client) = divide(all).unwrap();
        assert_eq!((server.count(), client.count()), (2, 1));
        assert!(server.is_set(3) && server.is_set(5) && client.is_set(7));
    }
}
