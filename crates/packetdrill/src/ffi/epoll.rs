//! `epoll`.

use super::{done, returned, shared, Own};
use crate::errno::Errno;
use crate::outcome::Attempt;
use nix::libc::{self, c_int, epoll_event};
use whyloss_transport::{Duration, Instant};

pub(super) unsafe extern "C" fn epoll_create(own: Own, _size: c_int) -> c_int {
    // SAFETY: the pointer is ours.
    unsafe { shared(own) }.with(crate::world::World::epoll_create)
}

pub(super) unsafe extern "C" fn epoll_ctl(
    own: Own,
    instance: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    // SAFETY: the pointer is ours; packetdrill vouches for the event, which C packs.
    unsafe {
        let event = (!event.is_null()).then(|| event.read_unaligned()).map(|event| (event.events, event.u64));
        done(shared(own).with(|world| world.epoll_control(instance, operation, fd, event)))
    }
}

pub(super) unsafe extern "C" fn epoll_wait(
    own: Own,
    instance: c_int,
    out: *mut epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    let Ok(most) = usize::try_from(most) else { return done(Err(Errno(libc::EINVAL))) };
    let mut limit = None;
    // SAFETY: the pointer is ours.
    let result = unsafe { shared(own) }.wait(|world| {
        let limit = *limit.get_or_insert_with(|| match u64::try_from(timeout) {
            Ok(millis) => world.now + Duration::from_millis(millis),
            Err(_) => Instant::MAX,
        });
        match world.epoll_wait(instance, most) {
            Attempt::Waits(_) if world.now >= limit => Attempt::Done(Ok(Vec::new())),
            Attempt::Waits(_) => Attempt::Waits((limit != Instant::MAX).then_some(limit)),
            done @ Attempt::Done(_) => done,
        }
    });
    returned(result, |events| {
        for (at, (events, data)) in events.iter().enumerate() {
            // SAFETY: packetdrill vouches for room for `most` events, and there are no more.
            unsafe { out.add(at).write_unaligned(epoll_event { events: *events, u64: *data }) };
        }
        events.len() as isize
    }) as c_int
}
