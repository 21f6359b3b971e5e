//! Work on all cores: one thread reads, the connections are parted among a fixed number of shards, and these among the workers.
//!
//! A shard sees the same segments in the same order whoever works on it, so what comes out does not depend on the number of workers,
//! bounds that are reached included.

use crate::headers::Segment;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread;

/// Shards of the connections: more than this many workers have nothing to do.
pub const SHARDS: usize = 8;
/// Segments that are handed to a worker at once.
const BATCH: usize = 512;
/// Batches that wait for a worker; then the reader waits.
const WAITING: usize = 8;

/// Who follows the connections of a shard.
pub trait Shard: Send {
    /// The next segment of its connections.
    fn on_segment(&mut self, segment: &Segment);
}

/// The shard of a segment's connection, for both directions the same.
pub fn shard_of(segment: &Segment) -> usize {
    // Any odd number whose bits look random; this is 2^64 over the golden ratio.
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    let end = |end: SocketAddr| {
        let address = match end.ip() {
            IpAddr::V4(address) => u64::from(u32::from(address)),
            IpAddr::V6(address) => {
                let address = u128::from(address);
                (address >> 64) as u64 ^ address as u64
            }
        };
        (address ^ u64::from(end.port()) << 40).wrapping_mul(MIX)
    };
    let both = end(segment.src).wrapping_add(end(segment.dst));
    (((both ^ both >> 32).wrapping_mul(MIX)) >> 61) as usize % SHARDS
}

/// Workers that this machine has room for, beside the reader.
pub fn workers() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Lets `read` hand out segments, which go to their shards.
///
/// With one worker all is done by the calling thread; with more, each is a thread, and the calling one reads.
pub fn run<S: Shard, R>(shards: Vec<S>, workers: usize, read: impl FnOnce(&mut dyn FnMut(&Segment)) -> R) -> (Vec<S>, R) {
    let mut shards = shards;
    let workers = workers.min(shards.len());
    if workers <= 1 {
        let read = read(&mut |segment| shards[shard_of(segment)].on_segment(segment));
        return (shards, read);
    }
    thread::scope(|scope| {
        let mut groups: Vec<Vec<(usize, S)>> = (0..workers).map(|_| Vec::new()).collect();
        shards.into_iter().enumerate().for_each(|(number, shard)| groups[number % workers].push((number, shard)));
        let (empty_again, empty) = sync_channel(workers * (WAITING + 2));
        let mut threads = Vec::new();
        let mut lines: Vec<Line> = Vec::new();
        for group in groups {
            let (full, work) = sync_channel(WAITING);
            let empty_again = empty_again.clone();
            threads.push(scope.spawn(move || follow(group, workers, &work, &empty_again)));
            lines.push(Line { full, batch: Vec::with_capacity(BATCH) });
        }
        let read = read(&mut |segment| lines[shard_of(segment) % workers].push(segment, &empty));
        for line in lines {
            // A worker that is gone panicked, which joining tells.
            line.full.send(line.batch).ok();
        }
        let mut shards: Vec<(usize, S)> = Vec::new();
        for thread in threads {
            match thread.join() {
                Ok(group) => shards.extend(group),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        shards.sort_by_key(|(number, _)| *number);
        (shards.into_iter().map(|(_, shard)| shard).collect(), read)
    })
}

/// What goes to a worker.
struct Line {
    full: SyncSender<Vec<Segment>>,
    batch: Vec<Segment>,
}

impl Line {
    fn push(&mut self, segment: &Segment, empty: &Receiver<Vec<Segment>>) {
        self.batch.push(*segment);
        if self.batch.len() == BATCH {
            let next = empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
            self.full.send(std::mem::replace(&mut self.batch, next)).ok();
        }
    }
}

fn follow<S: Shard>(
    mut group: Vec<(usize, S)>,
    workers: usize,
    work: &Receiver<Vec<Segment>>,
    empty_again: &SyncSender<Vec<Segment>>,
) -> Vec<(usize, S)> {
    for mut batch in work {
        for segment in &batch {
            // The shards of a group follow each other at steps of the number of workers.
            group[shard_of(segment) / workers].1.on_segment(segment);
        }
        batch.clear();
        empty_again.try_send(batch).ok();
    }
    group
}
