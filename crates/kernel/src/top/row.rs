//! What the observer's programs write of a connection, octet by octet: `bpf/top/row.h` in Rust.

use std::mem::size_of;

/// Differentiators that listen, in the order of `enum wl_voice`.
pub const DIFFERENTIATORS: [&str; 5] = ["lda-eq", "spike", "jtcp", "ncpld", "veno"];

/// What an episode of losses can be, in the order of `WL_CAUSES`.
pub const CAUSES: [&str; 4] = ["unknown", "congestion", "corruption", "spurious"];

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Tally {
    pub episodes: u32,
    pub losses: u32,
    pub agreement: u64,
    pub score: u64,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Said {
    pub verdicts: [u32; 3],
    reserved: u32,
    pub score: u64,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Row {
    pub local: [u8; 16],
    pub remote: [u8; 16],
    pub local_port: u16,
    pub remote_port: u16,
    pub netns: u32,
    pub cookie: u64,
    pub cgroup: u64,
    pub since_ns: u64,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub bytes_retransmitted: u64,
    pub pacing_rate: u64,
    pub segments_out: u32,
    pub segments_in: u32,
    pub retransmissions: u32,
    pub losses: u32,
    pub probed: u32,
    pub timeouts: u32,
    pub marked: u32,
    pub srtt_us: u32,
    pub min_rtt_us: u32,
    pub cwnd: u32,
    pub ssthresh: u32,
    pub in_flight: u32,
    pub mss: u32,
    pub pid: u32,
    pub process: [u8; 16],
    pub control: [u8; 16],
    pub state: u8,
    pub recovery: u8,
    pub pending_cause: u8,
    pub closed: u8,
    pub whole: u8,
    pub pending_losses: u32,
    pub damaged: u32,
    pub tallies: [Tally; CAUSES.len()],
    pub said: [Said; DIFFERENTIATORS.len()],
}

impl Row {
    /// Octets of a row.
    pub const SIZE: usize = size_of::<Self>();

    /// The rows in `octets`, which hold nothing else.
    pub fn all(octets: &[u8]) -> impl Iterator<Item = Self> + '_ {
        octets.chunks_exact(Self::SIZE).map(|octets| {
            // SAFETY: there are as many octets as a row has, any octets are a row, because it holds integers only, and
            // `read_unaligned` does not mind where they lie.
            unsafe { octets.as_ptr().cast::<Self>().read_unaligned() }
        })
    }
}
