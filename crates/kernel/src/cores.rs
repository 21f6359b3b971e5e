//! The integer cores of the congestion controls, compiled for the host: the very text that the BPF programs are made of.
//!
//! What they compute is compared with the transport engine's algorithms in `tests/cores.rs`. Windows and amounts are in full segments,
//! times in microseconds on a 32-bit clock, scores in 1 / [`ONE`].

use std::ffi::{c_char, c_int, CStr};
use std::fmt;

/// A score of certain corruption.
pub const ONE: u32 = 1 << 16;

/// A limit of growth that does not limit: what the kernel's controls use.
pub const UNLIMITED: u8 = u8::MAX;

/// Octets that the kernel has for a control, and those of them that are the core's.
pub const PRIVATE_SIZE: usize = 104;
/// What a control itself needs of them.
pub const CONTROL_SIZE: usize = 24;
const CORE_SIZE: usize = PRIVATE_SIZE - CONTROL_SIZE;

/// Congestion window and slow-start threshold in segments.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Congestion window, in segments.
    pub cwnd: u32,
    /// Slow-start threshold, in segments; `0x7fff_ffff` before the first loss.
    pub ssthresh: u32,
}

/// An acknowledgement (`struct wl_ack`). Amounts are in segments, times in microseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// Arrival, on the 32-bit clock.
    pub now: u32,
    /// `SND.UNA` after it.
    pub una: u32,
    /// `SND.NXT` when it arrived.
    pub nxt: u32,
    /// Congestion window when it arrived.
    pub cwnd: u32,
    /// Segments that it is to grow the window for.
    pub acked: u32,
    /// Segments that it newly reports as delivered.
    pub delivered: u32,
    /// Round trip of the newest segment newly delivered; below 0 if unknown.
    pub delay: i32,
    /// Smoothed round-trip time; 0 before the first sample.
    pub srtt: u32,
    /// The receiver's timestamp (`TSval`), in its own ticks.
    pub tsval: u32,
    /// 1 if `tsval` was there.
    pub stamped: u8,
    /// 1 if it advances nothing.
    pub duplicate: u8,
    /// Fast recovery holds the window.
    pub in_recovery: u8,
    /// The window was what limited the sender.
    pub limited: u8,
}

/// A segment is taken for lost (`struct wl_loss`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Loss {
    /// When, on the 32-bit clock.
    pub now: u32,
    /// Congestion window before any reaction.
    pub cwnd: u32,
    /// Segments outstanding, no more than the window.
    pub flight: u32,
    /// Smoothed round-trip time, in microseconds.
    pub srtt: u32,
    /// 1 if by the retransmission timer.
    pub timeout: u8,
    /// 1 if it is the first of its episode.
    pub first: u8,
}

/// What a core says of a loss: 0 unknown, 1 congestion, 2 corruption.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// 0 unknown, 1 congestion, 2 corruption.
    pub cause: u32,
    /// From 0, certain congestion, to [`ONE`], certain corruption.
    pub score: u32,
}

/// A row of the table in `bpf/host.c`.
#[repr(C)]
struct Row {
    name: *const c_char,
    size: usize,
    init: unsafe extern "C" fn(*mut u64, u8, u8),
    ack: unsafe extern "C" fn(*mut u64, *const Ack),
    grow: unsafe extern "C" fn(*mut u64, *mut Window, *const Ack),
    judge: unsafe extern "C" fn(*mut u64, *const Loss) -> Verdict,
    save: unsafe extern "C" fn(*mut u64),
    threshold: unsafe extern "C" fn(*mut u64, *const Loss) -> u32,
    corrupted: unsafe extern "C" fn(*mut u64, *const Loss) -> u32,
    episode: unsafe extern "C" fn(*mut u64, u32),
    timeout: unsafe extern "C" fn(*mut u64),
    undo: unsafe extern "C" fn(*mut u64),
}

// SAFETY: a row is constant, and so is the name that it points to.
unsafe impl Sync for Row {}

#[link(name = "whyloss_cores", kind = "static")]
extern "C" {
    #[link_name = "wl_host_cores"]
    static ROWS: Row;
    #[link_name = "wl_host_core_count"]
    static ROW_COUNT: usize;

    #[link_name = "wl_host_auto_size"]
    static AUTO_SIZE: usize;
    fn wl_host_auto_init(control: *mut u64, limit: u8, limit_after_timeout: u8, nxt: u32, total: u32, first: u32);
    fn wl_host_auto_ack(control: *mut u64, window: *mut Window, ack: *const Ack, news: *const News) -> c_int;
    fn wl_host_auto_lost(control: *mut u64, segments: u32) -> u32;
    fn wl_host_auto_lost_first(control: *mut u64, segments: u32);
    fn wl_host_auto_excused(control: *mut u64, segments: u32);
    fn wl_host_auto_is_answering(control: *const u64, una: u32) -> c_int;
    fn wl_host_auto_is_beginning(control: *const u64, una: u32) -> c_int;
    fn wl_host_auto_timeout(control: *mut u64, loss: *const Loss, nxt: u32) -> u32;
    fn wl_host_auto_save(control: *mut u64);
    fn wl_host_auto_undo(control: *mut u64, window: *mut Window);
    fn wl_host_rate(delivered: u32, micros: u32) -> u32;

    fn wl_host_spike_trip(spike: *mut u32, trip: i32);
    fn wl_host_spike_verdict(spike: *const u32, least_range: u32) -> Verdict;
    fn wl_host_aware_timeout(aware: *mut u32, now: u32, rto: u32, silence: u32, in_a_row: u32, repairing: c_int, cause: u32);
    fn wl_host_aware_ack(aware: *mut u32, now: u32, rto: u32, silence: u32, advances: c_int, genuine: c_int) -> c_int;
    fn wl_host_trust_look(trust: *mut u32, delivered: u32, repeated: u32) -> c_int;
    fn wl_host_prr_window(prr: *const Prr) -> u32;
}

fn rows() -> &'static [Row] {
    // SAFETY: bpf/host.c defines an array of as many rows as it says, which nothing changes.
    unsafe { std::slice::from_raw_parts(&raw const ROWS, ROW_COUNT) }
}

fn name_of(row: &Row) -> &'static str {
    // SAFETY: the name is a string constant.
    unsafe { CStr::from_ptr(row.name) }.to_str().expect("names are ASCII")
}

/// The names of all cores: those of the controls without `wl_`.
pub fn names() -> Vec<&'static str> {
    rows().iter().map(name_of).collect()
}

/// The core of one control with its state.
#[derive(Clone)]
pub struct Core {
    row: &'static Row,
    state: [u64; CORE_SIZE / 8],
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("name", &name_of(self.row)).finish_non_exhaustive()
    }
}

impl Core {
    /// The core `name` for a new connection, if there is one. An acknowledgement grows the window by at most `limit` segments in slow
    /// start, by `limit_after_timeout` in that after a timeout.
    ///
    /// # Panics
    /// If the core does not fit into what the kernel has for it.
    pub fn new(name: &str, limit: u8, limit_after_timeout: u8) -> Option<Self> {
        let row = rows().iter().find(|row| name_of(row) == name)?;
        assert!(row.size <= CORE_SIZE, "{name} has {} octets, {CORE_SIZE} are left to it", row.size);
        let mut core = Self { row, state: [0; CORE_SIZE / 8] };
        // SAFETY: the state is large enough, as was just seen, and aligned for everything a core consists of. So below.
        unsafe { (row.init)(core.state.as_mut_ptr(), limit, limit_after_timeout) };
        Some(core)
    }

    /// Octets of its state.
    pub fn size(&self) -> usize {
        self.row.size
    }

    /// An acknowledgement arrived, and what it reveals is not yet judged.
    pub fn ack(&mut self, ack: &Ack) {
        // SAFETY: see `new`; `ack` is what C expects.
        unsafe { (self.row.ack)(self.state.as_mut_ptr(), ack) }
    }

    /// The acknowledgement may grow the window.
    pub fn grow(&mut self, window: &mut Window, ack: &Ack) {
        // SAFETY: see `new`.
        unsafe { (self.row.grow)(self.state.as_mut_ptr(), window, ack) }
    }

    /// Why was this lost?
    pub fn judge(&mut self, loss: &Loss) -> Verdict {
        // SAFETY: see `new`.
        unsafe { (self.row.judge)(self.state.as_mut_ptr(), loss) }
    }

    /// Notes what [`Core::undo`] needs.
    pub fn save(&mut self) {
        // SAFETY: see `new`.
        unsafe { (self.row.save)(self.state.as_mut_ptr()) }
    }

    /// The threshold for a loss that counts as congestion.
    pub fn threshold(&mut self, loss: &Loss) -> u32 {
        // SAFETY: see `new`.
        unsafe { (self.row.threshold)(self.state.as_mut_ptr(), loss) }
    }

    /// The threshold for a loss that counts as corruption; `None` if window and threshold stay.
    pub fn corrupted(&mut self, loss: &Loss) -> Option<u32> {
        // SAFETY: see `new`.
        let threshold = unsafe { (self.row.corrupted)(self.state.as_mut_ptr(), loss) };
        (threshold > 0).then_some(threshold)
    }

    /// A loss episode that was judged begins, not by a timeout.
    pub fn episode(&mut self, now: u32) {
        // SAFETY: see `new`.
        unsafe { (self.row.episode)(self.state.as_mut_ptr(), now) }
    }

    /// The retransmission timer has collapsed the window.
    pub fn timeout(&mut self) {
        // SAFETY: see `new`.
        unsafe { (self.row.timeout)(self.state.as_mut_ptr()) }
    }

    /// The reductions since [`Core::save`] proved wrong.
    pub fn undo(&mut self) {
        // SAFETY: see `new`.
        unsafe { (self.row.undo)(self.state.as_mut_ptr()) }
    }
}

/// What an acknowledgement tells `auto` beside [`Ack`] (`struct wl_news`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct News {
    /// Rate of delivery in 2^-24 segments a microsecond; 0 without a sample. See [`rate`].
    pub rate: u32,
    /// Segments delivered.
    pub total: u32,
    /// Segments delivered when the one that the sample is of had left.
    pub prior: u32,
    /// Segments outstanding, no more than the window.
    pub flight: u32,
    /// Segments that leave at once, 1 if each leaves by itself.
    pub burst: u32,
    /// 1 if the application limited the rate.
    pub app_limited: u32,
    /// 1 if a router marked a segment.
    pub marked: u32,
}

/// The rate of `delivered` segments in `micros` microseconds, as [`News`] has it.
pub fn rate(delivered: u32, micros: u32) -> u32 {
    // SAFETY: it takes and gives numbers.
    unsafe { wl_host_rate(delivered, micros) }
}

/// The core of `auto`, which is the whole control: it takes the window's side of losses too.
#[derive(Clone, Debug)]
pub struct Auto(Box<[u64]>);

impl Auto {
    /// For a connection whose next octet is `nxt`, that has delivered `total` segments, and of which what is below `first` leaves before the first
    /// acknowledgement; the limits as in [`Core::new`].
    pub fn new(limit: u8, limit_after_timeout: u8, nxt: u32, total: u32, first: u32) -> Self {
        // SAFETY: a constant of bpf/host.c.
        let size = unsafe { AUTO_SIZE };
        let mut state = vec![0; size.div_ceil(8)].into_boxed_slice();
        // SAFETY: the state is large enough and aligned for everything that it consists of. So below.
        unsafe { wl_host_auto_init(state.as_mut_ptr(), limit, limit_after_timeout, nxt, total, first) };
        Self(state)
    }

    /// An acknowledgement, after the losses that it revealed; whether it reduced the window for congestion.
    pub fn ack(&mut self, window: &mut Window, ack: &Ack, news: &News) -> bool {
        // SAFETY: see `new`; the structures are C's.
        unsafe { wl_host_auto_ack(self.0.as_mut_ptr(), window, ack, news) != 0 }
    }

    /// Segments were lost without explanation; how many of them at a full queue.
    pub fn lost(&mut self, segments: u32) -> u32 {
        // SAFETY: see `new`.
        unsafe { wl_host_auto_lost(self.0.as_mut_ptr(), segments) }
    }

    /// Segments were lost of what left before the first acknowledgement.
    pub fn lost_first(&mut self, segments: u32) {
        // SAFETY: see `new`.
        unsafe { wl_host_auto_lost_first(self.0.as_mut_ptr(), segments) }
    }

    /// The receiver has explained the loss of so many segments.
    pub fn excused(&mut self, segments: u32) {
        // SAFETY: see `new`.
        unsafe { wl_host_auto_excused(self.0.as_mut_ptr(), segments) }
    }

    /// Whether what it answered last is not repaired yet.
    pub fn is_answering(&self, una: u32) -> bool {
        // SAFETY: see `new`.
        unsafe { wl_host_auto_is_answering(self.0.as_ptr(), una) != 0 }
    }

    /// Whether what is lost left at once when the connection began.
    pub fn is_beginning(&self, una: u32) -> bool {
        // SAFETY: see `new`.
        unsafe { wl_host_auto_is_beginning(self.0.as_ptr(), una) != 0 }
    }

    /// The timer expired, and nothing speaks for corruption: the threshold.
    pub fn timeout(&mut self, loss: &Loss, nxt: u32) -> u32 {
        // SAFETY: see `new`.
        unsafe { wl_host_auto_timeout(self.0.as_mut_ptr(), loss, nxt) }
    }

    /// An episode of losses begins, which may prove none.
    pub fn save(&mut self) {
        // SAFETY: see `new`.
        unsafe { wl_host_auto_save(self.0.as_mut_ptr()) }
    }

    /// The latest reduction or timeout proved wrong.
    pub fn undo(&mut self, window: &mut Window) {
        // SAFETY: see `new`.
        unsafe { wl_host_auto_undo(self.0.as_mut_ptr(), window) }
    }
}

/// Spike's state machine, without the acknowledgements that its trips come from.
#[derive(Clone, Debug, Default)]
pub struct Spike([u32; 6]);

impl Spike {
    /// A packet took so many microseconds, more or less than some other.
    pub fn trip(&mut self, micros: i32) {
        // SAFETY: `struct wl_spike` has 20 octets.
        unsafe { wl_host_spike_trip(self.0.as_mut_ptr(), micros) }
    }

    /// The verdict on a loss now; unknown if the trips differ by less than `least_range` microseconds.
    pub fn verdict(&self, least_range: u32) -> Verdict {
        // SAFETY: see `trip`.
        unsafe { wl_host_spike_verdict(self.0.as_ptr(), least_range) }
    }
}

/// Which timeouts are forgiven.
#[derive(Clone, Debug, Default)]
pub struct Aware([u32; 2]);

impl Aware {
    /// The timer expired for the `in_a_row`-th time after `silence`; see `bpf/core/aware.h`.
    pub fn timeout(&mut self, now: u32, rto: u32, silence: u32, in_a_row: u32, repairing: bool, cause: u32) {
        // SAFETY: `struct wl_aware` has 8 octets.
        unsafe { wl_host_aware_timeout(self.0.as_mut_ptr(), now, rto, silence, in_a_row, c_int::from(repairing), cause) }
    }

    /// An acknowledgement arrived; whether the window comes back now.
    pub fn ack(&mut self, now: u32, rto: u32, silence: u32, advances: bool, genuine: bool) -> bool {
        // SAFETY: see `timeout`.
        unsafe { wl_host_aware_ack(self.0.as_mut_ptr(), now, rto, silence, c_int::from(advances), c_int::from(genuine)) != 0 }
    }
}

/// Whether verdicts of corruption count.
#[derive(Clone, Debug, Default)]
pub struct Trust([u32; 3]);

impl Trust {
    /// So many segments were delivered, and so many sent again, since the connection began: whether a verdict counts now.
    pub fn look(&mut self, delivered: u32, repeated: u32) -> bool {
        // SAFETY: `struct wl_trust` has 12 octets.
        unsafe { wl_host_trust_look(self.0.as_mut_ptr(), delivered, repeated) != 0 }
    }
}

/// What proportional rate reduction goes by, in segments.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Prr {
    /// The window when recovery began.
    pub before: u32,
    /// The window to arrive at.
    pub target: u32,
    /// Delivered since recovery began.
    pub delivered: u32,
    /// Sent since recovery began.
    pub out: u32,
    /// Segments in the network (`pipe` of RFC 6937).
    pub pipe: u32,
    /// Delivered by this acknowledgement.
    pub newly: u32,
    /// It advanced and revealed no further loss.
    pub safe: u8,
}

impl Prr {
    /// The congestion window that these numbers give, in segments.
    pub fn window(&self) -> u32 {
        // SAFETY: the structure is C's.
        unsafe { wl_host_prr_window(self) }
    }
}
