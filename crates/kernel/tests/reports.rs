//! The integer cores of the reports of damaged segments: their options beside the engine's, and what a sender believes.

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use std::hash::Hasher as _;
// For the C code that is linked into it.
use whyloss_kernel as _;
use whyloss_transport::segment::{CompactReport, Options, PositionBasis, Report as Told};

const LIMIT: u64 = 0x7fff_ffff;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Report {
    seq: u32,
    echo: u32,
    echoed: u32,
    len: u16,
    count: u8,
    counted: u8,
    confirmed: u8,
    congested: u8,
    limited: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Read {
    report: Report,
    nonce: u32,
    permitted: u8,
    words: u8,
    has_nonce: u8,
    has_report: u8,
}

extern "C" {
    fn wl_host_options_read(options: *mut Read, octets: *const u8, len: u32, ack: u32);
    fn wl_host_report_write(octets: *mut u8, report: *const Report) -> u32;
    fn wl_host_report_at(report: *mut Report, octets: *const u8, len: u32, number: u32, ack: u32) -> i32;
    fn wl_host_words_write(octets: *mut u8, nonce: u32, reports: *const Report, count: u32, ack: u32) -> u32;
    fn wl_host_room_make(octets: *mut u8, len: u32, report: *const u8, size: u32) -> i32;
    fn wl_host_siphash(k0: u64, k1: u64, word: u64) -> u64;
    static wl_host_sender_size: usize;
    fn wl_host_sender_init(sender: *mut u64, key: u64, nonces: i32);
    fn wl_host_sender_send(sender: *mut u64, seq: u32, len: u32, mss: u32, again: i32) -> u32;
    fn wl_host_sender_report(sender: *mut u64, report: *const Report, una: u32, nxt: u32) -> u32;
    fn wl_host_sender_delivered(sender: *mut u64, segments: u32, window: u32);
    fn wl_host_sender_pass(sender: *mut u64, elapsed: u32);
    fn wl_host_sender_counts(sender: *const u64, counts: *mut u32);
    static wl_host_kept_size: usize;
    fn wl_host_kept_begin(kept: *mut u64, sender: *const u64, cwnd: u32, path: u32, reported: i32, marked: i32) -> u32;
    fn wl_host_kept_ack(kept: *mut u64, sender: *const u64, patience: u32, repaired: i32) -> u32;
    fn wl_host_kept_mark(kept: *mut u64, sender: *const u64) -> u32;
    fn wl_host_kept_end(kept: *mut u64);
    fn wl_host_kept_threshold(kept: *const u64) -> u32;
    static wl_host_delay_size: usize;
    fn wl_host_delay_init(delay: *mut u64, cwnd: u32);
    fn wl_host_delay_round(delay: *mut u64, rtt: u32, base: u32) -> u32;
    fn wl_host_delay_long(cwnd: u32, rtt: u32, base: u32) -> i32;
    fn wl_host_delay_path(cwnd: u32, rtt: u32, base: u32) -> u32;
    fn wl_host_ticket_take(tail: *mut u32, head: u32, places: u32, ticket: *mut u32) -> i32;
}

fn read(octets: &[u8], ack: u32) -> Read {
    let mut found = Read::default();
    // SAFETY: the function reads `len` octets and writes one structure.
    unsafe { wl_host_options_read(&raw mut found, octets.as_ptr(), octets.len() as u32, ack) };
    found
}

fn written(report: &Report) -> Vec<u8> {
    let mut octets = vec![0; 15];
    // SAFETY: the function writes at most 15 octets.
    let len = unsafe { wl_host_report_write(octets.as_mut_ptr(), report) };
    octets.truncate(len as usize);
    octets
}

fn written_compact(report: &Report, ack: u32) -> Vec<u8> {
    written_words(None, &[*report], ack)
}

/// An option of words.
fn written_words(nonce: Option<u32>, reports: &[Report], ack: u32) -> Vec<u8> {
    let mut octets = vec![0; 40];
    // SAFETY: the function writes no more than 40 octets for as many words as a header has room for, and reads the reports.
    let len =
        unsafe { wl_host_words_write(octets.as_mut_ptr(), nonce.unwrap_or(0), reports.as_ptr(), reports.len() as u32, ack) };
    octets.truncate(len as usize);
    octets
}

/// All reports that the core finds.
fn read_all(octets: &[u8], ack: u32) -> Vec<Report> {
    let mut found = Vec::new();
    loop {
        let mut report = Report::default();
        // SAFETY: the function reads `len` octets and writes one structure.
        let is_there =
            unsafe { wl_host_report_at(&raw mut report, octets.as_ptr(), octets.len() as u32, found.len() as u32, ack) };
        if is_there == 0 {
            return found;
        }
        found.push(report);
    }
}

/// What the engine reads, in the terms of the core: the nonce, the reports, and what the peer permits.
fn engine(octets: &[u8], ack: u32) -> (Option<u32>, Vec<Report>, (bool, bool)) {
    let (options, _) = Options::parse(&bytes::Bytes::copy_from_slice(octets), true);
    let rare = options.rare.clone().unwrap_or_default();
    let compact = |told: &CompactReport| Report {
        seq: ack.wrapping_add(told.offset),
        echo: told.echo.into(),
        echoed: 0x3FF,
        confirmed: 1,
        congested: u8::from(told.congestion_experienced),
        ..Report::default()
    };
    let reports = match &rare.report {
        Some(Told::Corruption(told)) => Vec::from_iter(told.position.map(|position| Report {
            seq: position.seq.0,
            echo: told.echo.unwrap_or(0),
            echoed: if told.echo.is_some() { u32::MAX } else { 0 },
            len: position.len,
            count: told.count,
            counted: 1,
            confirmed: u8::from(position.basis == PositionBasis::SeqConfirmed),
            congested: u8::from(told.congestion_experienced),
            limited: u8::from(told.rate_limited),
        })),
        Some(Told::Compact(told)) => vec![compact(told)],
        Some(Told::List(told)) => told.as_slice().iter().map(compact).collect(),
        _ => Vec::new(),
    };
    (options.any_nonce(), reports, (rare.reports_permitted, rare.words_permitted))
}

/// Options as they may come: some of ours, some of others, some damaged.
fn options(random: &mut Pcg64Mcg) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut reported = false;
    while octets.len() < 40 && random.random_bool(0.8) {
        let fill = |random: &mut Pcg64Mcg, len: usize| (0..len).map(|_| random.random()).collect::<Vec<u8>>();
        let option = match random.random_range(0..9) {
            0 => vec![1],
            1 => [vec![8, 10], fill(random, 8)].concat(),
            2 => vec![253, 4, 0x57, 0x4C],
            3 => [vec![253, 9, 0x57, 0x4C, 6], fill(random, 4)].concat(),
            4 if !reported => {
                reported = true;
                let len: u8 = [7, 11, 15][random.random_range(0..3)];
                [vec![253, len, 0x57, 0x4C, 4], fill(random, usize::from(len) - 5)].concat()
            }
            5 if !reported => {
                reported = true;
                [vec![253, 8, 0x57, 0x4C, 0x80 | random.random::<u8>()], fill(random, 3)].concat()
            }
            6 => vec![254, 4, 0x57, 0x4C],
            7 if !reported => {
                // Words, of which some are none.
                reported = true;
                let words: u8 = random.random_range(1..=9);
                let mut option = [vec![253, 4 + 4 * words, 0x57, 0x4C], fill(random, 4 * usize::from(words))].concat();
                for word in option[4..].chunks_mut(4).skip(1) {
                    word[0] |= if random.random_bool(0.97) { 0x80 } else { 0 };
                }
                option[4] |= 0x40;
                option
            }
            _ => [vec![30, 4], fill(random, 2)].concat(),
        };
        octets.extend(option);
    }
    octets.truncate(40);
    if random.random_bool(0.1) && !octets.is_empty() {
        // Only lengths, so that no option of ours becomes another one of the engine's.
        let at = random.random_range(0..octets.len());
        octets.truncate(at);
    }
    octets
}

#[test]
fn core_and_engine_read_the_same_options() {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let (mut reports, mut lists) = (0, 0);
    for _ in 0..300_000 {
        let (octets, ack) = (options(&mut random), random.random());
        let found = read(&octets, ack);
        let (nonce, told, permitted) = engine(&octets, ack);
        assert_eq!((found.has_nonce != 0).then_some(found.nonce), nonce, "{octets:02x?}");
        assert_eq!(read_all(&octets, ack), told, "{octets:02x?}");
        assert_eq!((found.has_report != 0).then_some(found.report), told.first().copied(), "{octets:02x?}");
        assert_eq!((found.permitted != 0, found.words != 0), permitted, "{octets:02x?}");
        reports += u32::from(!told.is_empty());
        lists += u32::from(told.len() > 1);
    }
    assert!(reports > 30_000 && lists > 5_000, "{reports}, {lists}");
}

#[test]
fn the_engine_reads_what_the_core_writes() {
    let mut random = Pcg64Mcg::seed_from_u64(2);
    for _ in 0..100_000 {
        let echo: Option<u32> = random.random_bool(0.5).then(|| random.random());
        let report = Report {
            seq: random.random(),
            echo: echo.unwrap_or(0),
            echoed: if echo.is_some() { u32::MAX } else { 0 },
            len: random.random_range(0..=15) * 128,
            count: random.random(),
            counted: 1,
            confirmed: random.random_range(0..=1),
            congested: random.random_range(0..=1),
            limited: random.random_range(0..=1),
        };
        assert_eq!(engine(&written(&report), 0).1, [report]);
        let ack = report.seq.wrapping_sub(random.random_range(0..1 << 20));
        let compact =
            Report { len: 0, count: 0, counted: 0, confirmed: 1, limited: 0, echo: report.echo & 0x3FF, echoed: 0x3FF, ..report };
        assert_eq!(engine(&written_compact(&report, ack), ack).1, [compact]);
        let nonce = random.random_bool(0.5).then(|| random.random_range(1..1 << 30));
        let most = if nonce.is_some() { 8 } else { 9 };
        let reports = vec![compact; random.random_range(1..=most)];
        assert_eq!(engine(&written_words(nonce, &reports, ack), ack), (nonce, reports, (false, false)));
    }
}

#[test]
fn the_last_sack_blocks_give_way_to_a_report() {
    let report = Report { seq: 7_000_000, echo: 0x1234_5678, echoed: u32::MAX, counted: 1, confirmed: 1, ..Report::default() };
    let ack = 6_900_000;
    let forms = [written_compact(&report, ack), written_words(None, &[report; 3], ack), written(&report)];
    for stamped in [false, true] {
        for blocks in 1..=4_u32 {
            let sack: Vec<u8> = (0..2 * blocks).flat_map(|edge| (8_000_000 + edge * 5000).to_be_bytes()).collect();
            let mut octets = if stamped { vec![1, 1, 8, 10, 0, 1, 2, 3, 4, 5, 6, 7] } else { Vec::new() };
            octets.extend([1, 1, 5, 2 + sack.len() as u8]);
            octets.extend(sack);
            for form in &forms {
                let (mut changed, give) = ([0xEE; 64], form.len().div_ceil(8) as u32);
                changed[..octets.len()].copy_from_slice(&octets);
                let mut padded = form.clone();
                padded.resize(16, 0);
                // SAFETY: the function reads and writes no more than 40 octets, and reads 16 of the report.
                let made = unsafe {
                    wl_host_room_make(changed.as_mut_ptr(), octets.len() as u32, padded.as_ptr(), form.len() as u32) != 0
                };
                let fits = octets.len() <= 40 && blocks > give;
                assert_eq!(made, fits, "{blocks} blocks, {} octets", form.len());
                assert_eq!(changed[octets.len()..], [0xEE; 64][octets.len()..], "no longer than before");
                if !made {
                    assert_eq!(changed[..octets.len()], octets);
                    continue;
                }
                let (told, flaw) = Options::parse(&bytes::Bytes::copy_from_slice(&changed[..octets.len()]), false);
                assert!(flaw.is_none(), "{flaw:?}");
                let (before, _) = Options::parse(&bytes::Bytes::copy_from_slice(&octets), false);
                let left = (blocks - give) as usize;
                assert_eq!(told.sack.as_slice(), &before.sack.as_slice()[..left], "the latest blocks");
                assert_eq!(told.timestamps, before.timestamps);
                let alone = Options::parse(&bytes::Bytes::copy_from_slice(form), false).0;
                assert_eq!(told.rare.as_ref().and_then(|rare| rare.report), alone.rare.as_ref().and_then(|rare| rare.report));
            }
        }
    }
    // Nothing that is not laid out like that is touched.
    let mut random = Pcg64Mcg::seed_from_u64(9);
    for _ in 0..20_000 {
        let mut octets = [0; 40];
        random.fill(&mut octets);
        octets[0] |= 2;
        let before = octets;
        // SAFETY: as above.
        assert_eq!(unsafe { wl_host_room_make(octets.as_mut_ptr(), 40, [0; 16].as_ptr(), 8) }, 0);
        assert_eq!(octets, before);
    }
}

#[test]
#[allow(deprecated)]
fn nonces_are_siphash_2_4() {
    let mut random = Pcg64Mcg::seed_from_u64(3);
    for _ in 0..10_000 {
        let (k0, k1, word) = (random.random(), random.random(), random.random());
        let mut theirs = std::hash::SipHasher::new_with_keys(k0, k1);
        theirs.write_u64(u64::to_le(word));
        // SAFETY: numbers in, a number out.
        assert_eq!(unsafe { wl_host_siphash(k0, k1, word) }, theirs.finish());
    }
}

/// A full queue gives no ticket, which is not the first ticket.
#[test]
fn each_ticket_of_a_queue_is_told_from_none() {
    for head in [0, 7, u32::MAX - 40] {
        let mut tail = head;
        let mut take = || {
            let mut ticket = 0xDEAD;
            // SAFETY: the function reads and writes the two numbers.
            let taken = unsafe { wl_host_ticket_take(&raw mut tail, head, 64, &raw mut ticket) };
            (taken != 0).then_some(ticket)
        };
        for place in 0..64 {
            assert_eq!(take(), Some(head.wrapping_add(place)));
        }
        assert_eq!([take(), take()], [None, None], "all places are taken");
        assert_eq!(tail, head.wrapping_add(64));
    }
}

/// What became of a report, in the order of `enum wl_belief`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Belief {
    Believed,
    Repeated,
    Stale,
    Marked,
    Unproven,
    Wrong,
    Limited,
    Distrusted,
}

use Belief::{Believed, Distrusted, Limited, Marked, Repeated, Stale, Unproven, Wrong};

/// A sender with data outstanding.
struct Sender {
    state: Vec<u64>,
    una: u32,
    nxt: u32,
}

const MSS: u32 = 1000;

impl Sender {
    fn new() -> Self {
        // SAFETY: a constant.
        let mut state = vec![0; unsafe { wl_host_sender_size }.div_ceil(8)];
        // SAFETY: `state` has the octets of the structure.
        unsafe { wl_host_sender_init(state.as_mut_ptr(), 0x1234_5678_9abc_def0, 1) };
        Self { state, una: 0, nxt: 0 }
    }

    fn transmit(&mut self, seq: u32, len: u32) -> u32 {
        let again = seq < self.nxt;
        self.nxt = self.nxt.max(seq + len);
        // SAFETY: see `new`.
        unsafe { wl_host_sender_send(self.state.as_mut_ptr(), seq, len, MSS, i32::from(again)) }
    }

    fn transmit_new(&mut self, len: u32) -> u32 {
        let seq = self.nxt;
        self.nxt = seq.wrapping_add(len);
        // SAFETY: see `new`.
        unsafe { wl_host_sender_send(self.state.as_mut_ptr(), seq, len, MSS, 0) }
    }

    fn report(&mut self, report: &Report) -> Belief {
        let all = [Believed, Repeated, Stale, Marked, Unproven, Wrong, Limited, Distrusted];
        // SAFETY: see `new`.
        all[unsafe { wl_host_sender_report(self.state.as_mut_ptr(), report, self.una, self.nxt) } as usize]
    }

    fn told(&mut self, seq: u32, echo: u32) -> Belief {
        self.report(&Report { seq, echo, echoed: u32::MAX, confirmed: 1, ..Report::default() })
    }

    fn delivered(&mut self, segments: u32, window: u32) {
        // SAFETY: see `new`.
        unsafe { wl_host_sender_delivered(self.state.as_mut_ptr(), segments, window) };
    }

    fn pass(&mut self, elapsed: u32) {
        // SAFETY: see `new`.
        unsafe { wl_host_sender_pass(self.state.as_mut_ptr(), elapsed) };
    }

    /// Believed, of these sent again, distrusted, lately.
    fn counts(&self) -> [u32; 4] {
        let mut counts = [0; 4];
        // SAFETY: see `new`; the function writes four numbers.
        unsafe { wl_host_sender_counts(self.state.as_ptr(), counts.as_mut_ptr()) };
        counts
    }
}

#[test]
fn a_report_is_believed_once_and_with_the_nonce_of_that_transmission() {
    let mut sender = Sender::new();
    let nonces: Vec<u32> = (0..10).map(|n| sender.transmit(n * MSS, MSS)).collect();
    assert_eq!(sender.told(3 * MSS, nonces[3]), Believed);
    assert_eq!(sender.told(3 * MSS, nonces[3]), Repeated);
    assert_eq!(sender.told(4 * MSS, nonces[3]), Wrong, "another segment's");
    assert_eq!(sender.told(11 * MSS, nonces[3]), Stale, "not sent yet");
    assert_eq!(sender.report(&Report { seq: 5 * MSS, confirmed: 1, ..Report::default() }), Unproven);
    let marked = Report { seq: 5 * MSS, echo: nonces[5], echoed: u32::MAX, confirmed: 1, congested: 1, ..Report::default() };
    assert_eq!(sender.report(&marked), Marked);
    // Ten bits of the nonce, as the compact form has them.
    assert_eq!(
        sender.report(&Report { echo: nonces[6] & 0x3FF, echoed: 0x3FF, seq: 6 * MSS, confirmed: 1, ..Report::default() }),
        Believed
    );
    assert_eq!(sender.told(6 * MSS, nonces[6]), Repeated, "the same in full");
    // The retransmission is damaged too: a report of its own.
    let again = sender.transmit(3 * MSS, MSS);
    assert_ne!(again, nonces[3]);
    assert_eq!(sender.told(3 * MSS, again), Believed);
    assert_eq!(sender.counts(), [3, 1, 0, 1]);
    // Later than the data itself: it counts if the segment was sent again, else it is an old story.
    let late = sender.transmit(3 * MSS, MSS);
    sender.transmit(7 * MSS, MSS);
    sender.una = 9 * MSS;
    assert_eq!(sender.told(7 * MSS, nonces[7]), Believed);
    assert_eq!(sender.told(8 * MSS, nonces[8]), Stale);
    assert_eq!(sender.told(3 * MSS, late), Stale, "the transmission that arrived");
}

#[test]
fn segments_handed_down_at_once_share_a_nonce_that_excuses_each_of_them_and_no_other() {
    let mut sender = Sender::new();
    let nonce = sender.transmit(0, 8 * MSS);
    let next = sender.transmit(8 * MSS, 3 * MSS);
    assert_eq!(sender.told(5 * MSS, nonce), Believed);
    assert_eq!(sender.told(6 * MSS, nonce), Believed);
    assert_eq!(sender.told(5 * MSS, nonce), Repeated);
    assert_eq!(sender.told(10 * MSS, next), Believed);
    // Sent again together, with a nonce of their own.
    let again = sender.transmit(5 * MSS, 2 * MSS);
    assert_eq!(sender.told(6 * MSS, again), Believed);
    assert_eq!(sender.told(5 * MSS + 1, nonce), Wrong, "no segment begins there");
    assert_eq!(sender.told(8 * MSS, nonce), Wrong, "of the packet behind it");
    assert_eq!(sender.told(7 * MSS, again), Wrong, "as long as the first was, but it had two");
}

#[test]
fn the_nonces_of_the_latest_packets_are_known() {
    let mut sender = Sender::new();
    // Around the end of the sequence numbers, in packets of two to five segments.
    sender.una = 0_u32.wrapping_sub(2000 * MSS);
    sender.nxt = sender.una;
    let packets: Vec<_> = (0..1000)
        .map(|n| {
            let (seq, segments) = (sender.nxt, 2 + n % 4);
            (seq, segments, sender.transmit_new(segments * MSS))
        })
        .collect();
    let (forgotten, known) = packets.split_at(packets.len() - 512);
    for &(seq, segments, nonce) in known {
        for segment in 0..segments {
            sender.delivered(100, 100);
            assert_eq!(sender.told(seq.wrapping_add(segment * MSS), nonce), Believed, "segment {segment} of {segments}");
        }
    }
    let &(seq, _, nonce) = forgotten.last().expect("one that is forgotten");
    sender.delivered(100, 100);
    assert_eq!(sender.told(seq.wrapping_add(MSS), nonce), Wrong);
    assert_eq!(sender.told(seq, nonce), Believed, "what begins a packet needs no memory");
}

/// Where little leaves at once for long, packets of several segments lie further apart than sequence numbers reach.
#[test]
fn packets_long_ago_do_not_hide_those_of_now() {
    for apart in [1 << 20, 300 << 20, 900 << 20, 1 << 30, 1500 << 20, 2100 << 20, 3000_u32 << 20] {
        for packets in [1, 2, 5, 300, 700] {
            let mut sender = Sender::new();
            for _ in 0..packets {
                sender.transmit_new(2 * MSS);
            }
            for _ in 0..12 {
                // Segments by themselves, of which nothing is kept.
                sender.nxt = sender.nxt.wrapping_add(apart);
                sender.una = sender.nxt;
                let (seq, nonce) = (sender.nxt, sender.transmit_new(4 * MSS));
                let (next, another) = (sender.nxt, sender.transmit_new(4 * MSS));
                sender.delivered(100, 100);
                assert_eq!(sender.told(seq.wrapping_add(2 * MSS), nonce), Believed, "{apart} octets apart, {packets} before");
                sender.delivered(100, 100);
                assert_eq!(sender.told(next.wrapping_add(3 * MSS), another), Believed, "{apart} octets apart, {packets} before");
            }
        }
    }
}

/// After 4 GiB the same numbers are those of other octets.
#[test]
fn what_was_sent_again_long_ago_is_not_sent_again_now() {
    let mut sender = Sender::new();
    sender.transmit_new(MSS);
    sender.transmit(0, MSS);
    sender.nxt = 0;
    for _ in 0..1 << 12 {
        sender.transmit_new(MSS);
        sender.nxt = sender.nxt.wrapping_add((1 << 20) - MSS);
    }
    assert_eq!(sender.nxt, 0);
    let nonce = sender.transmit_new(MSS);
    assert_eq!((sender.told(0, nonce), sender.counts()[1]), (Believed, 0), "it was not sent again");
    sender.transmit(0, MSS);
    assert_eq!(sender.counts()[1], 1);
}

/// Its report was believed, but the segment had come and was never sent again.
#[test]
fn a_report_long_ago_excuses_no_loss_of_now() {
    let mut sender = Sender::new();
    let nonce = sender.transmit_new(MSS);
    assert_eq!((sender.told(0, nonce), sender.counts()), (Believed, [1, 0, 0, 0]));
    sender.nxt = 0;
    for _ in 0..1 << 12 {
        sender.transmit_new(MSS);
        sender.nxt = sender.nxt.wrapping_add((1 << 20) - MSS);
        sender.una = sender.nxt;
    }
    assert_eq!(sender.nxt, 0);
    let nonce = sender.transmit_new(MSS);
    sender.transmit(0, MSS);
    assert_eq!(sender.counts()[1], 0, "no report is of this loss");
    assert_eq!((sender.told(0, nonce), sender.counts()[1]), (Believed, 1), "before its own comes");
}

#[test]
fn who_guesses_nonces_is_soon_believed_no_more() {
    let mut random = Pcg64Mcg::seed_from_u64(4);
    let mut believed = 0;
    for _ in 0..1000 {
        let mut sender = Sender::new();
        let mut last = 0;
        for n in 0..200 {
            last = sender.transmit(n * MSS, MSS);
            // Every segment was dropped by a queue. The compact form asks for ten bits only.
            let guess =
                Report { seq: n * MSS, echo: random.random_range(0..0x400), echoed: 0x3FF, confirmed: 1, ..Report::default() };
            believed += u32::from(sender.report(&guess) == Believed);
        }
        assert_eq!(sender.counts()[2], 1);
        assert_eq!(sender.told(199 * MSS, last), Distrusted, "even the truth");
    }
    // Three guesses a connection at 1 in 1024.
    assert!(believed < 15, "{believed} lies of 200000 believed");
}

#[test]
fn reports_are_limited_to_a_share_of_the_segments() {
    let mut sender = Sender::new();
    let nonces: Vec<u32> = (0..300).map(|n| sender.transmit(n * MSS, MSS)).collect();
    let believed = |sender: &mut Sender, from: usize| {
        (from..from + 50).filter(|&n| sender.told(n as u32 * MSS, nonces[n]) == Believed).count()
    };
    assert_eq!(believed(&mut sender, 0), 32, "to begin with");
    sender.delivered(20, 10);
    assert_eq!(believed(&mut sender, 50), 5, "a quarter of what was delivered");
    sender.delivered(1000, 10);
    assert_eq!(believed(&mut sender, 100), 32, "no more than 32 are saved up");
    sender.delivered(1000, 160);
    assert_eq!(believed(&mut sender, 150), 40, "or a quarter of a window");
    assert_eq!(sender.counts()[3], 0, "nothing of it was sent again: the receiver has it");
    sender.transmit(150 * MSS, MSS);
    sender.delivered(255, 10);
    assert_eq!(sender.counts()[3], 1, "damage was seen lately");
    sender.delivered(1, 10);
    assert_eq!(sender.counts()[3], 0);
}

/// What becomes of the window.
struct Kept(Vec<u64>);

const PATIENCE: u32 = 100;

impl Kept {
    fn new() -> Self {
        // SAFETY: a constant.
        Self(vec![0; unsafe { wl_host_kept_size }.div_ceil(8)])
    }

    fn begin(&mut self, sender: &Sender, cwnd: u32, reported: bool) -> u32 {
        self.begin_on(sender, cwnd, 0, reported)
    }

    /// Where the path without its queue holds `path` segments.
    fn begin_on(&mut self, sender: &Sender, cwnd: u32, path: u32, reported: bool) -> u32 {
        // SAFETY: the vectors have the octets of the structures.
        unsafe { wl_host_kept_begin(self.0.as_mut_ptr(), sender.state.as_ptr(), cwnd, path, i32::from(reported), 0) }
    }

    fn begin_marked(&mut self, sender: &Sender, cwnd: u32) -> u32 {
        // SAFETY: see `begin`.
        unsafe { wl_host_kept_begin(self.0.as_mut_ptr(), sender.state.as_ptr(), cwnd, 0, 0, 1) }
    }

    fn mark(&mut self, sender: &Sender) -> Change {
        // SAFETY: see `begin`.
        CHANGES[unsafe { wl_host_kept_mark(self.0.as_mut_ptr(), sender.state.as_ptr()) } as usize]
    }

    fn ack(&mut self, sender: &Sender) -> Change {
        // SAFETY: see `begin`.
        CHANGES[unsafe { wl_host_kept_ack(self.0.as_mut_ptr(), sender.state.as_ptr(), PATIENCE, 1) } as usize]
    }

    /// Before everything lost was sent again.
    fn early_ack(&mut self, sender: &Sender) -> Change {
        // SAFETY: see `begin`.
        CHANGES[unsafe { wl_host_kept_ack(self.0.as_mut_ptr(), sender.state.as_ptr(), PATIENCE, 0) } as usize]
    }

    fn end(&mut self) {
        // SAFETY: see `begin`.
        unsafe { wl_host_kept_end(self.0.as_mut_ptr()) };
    }

    fn threshold(&self) -> u32 {
        // SAFETY: see `begin`.
        unsafe { wl_host_kept_threshold(self.0.as_ptr()) }
    }
}

/// In the order of `enum wl_change`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Same,
    Reduced,
    Restored,
}

use Change::{Reduced, Restored, Same};

const CHANGES: [Change; 3] = [Same, Reduced, Restored];

/// A sender with 300 segments under way, and their nonces.
fn busy() -> (Sender, Vec<u32>) {
    let mut sender = Sender::new();
    let nonces = (0..300).map(|n| sender.transmit(n * MSS, MSS)).collect();
    sender.delivered(300, 300);
    (sender, nonces)
}

#[test]
fn an_episode_keeps_its_window_if_every_loss_is_explained() {
    let (mut sender, nonces) = busy();
    let mut kept = Kept::new();
    for n in [2, 5] {
        assert_eq!(sender.told(n * MSS, nonces[n as usize]), Believed);
    }
    assert_eq!(kept.begin(&sender, 40, true), 40);
    sender.transmit(2 * MSS, MSS);
    sender.transmit(5 * MSS, MSS);
    sender.pass(10 * PATIENCE);
    assert_eq!((kept.ack(&sender), kept.threshold()), (Same, 40));
    // A third is lost and never reported.
    sender.transmit(9 * MSS, MSS);
    sender.pass(PATIENCE);
    assert_eq!(kept.ack(&sender), Same);
    sender.pass(1);
    assert_eq!((kept.ack(&sender), kept.threshold()), (Reduced, 20));
    // One reduction an episode.
    sender.transmit(12 * MSS, MSS);
    assert_eq!(kept.ack(&sender), Same);
    sender.pass(PATIENCE + 1);
    assert_eq!(kept.ack(&sender), Same);
}

#[test]
fn a_late_report_brings_the_window_back() {
    for ended in [false, true] {
        let (mut sender, nonces) = busy();
        let mut kept = Kept::new();
        assert_eq!(kept.begin(&sender, 40, false), 20);
        assert_eq!(kept.early_ack(&sender), Same, "the loss is still to be sent again");
        sender.transmit(0, MSS);
        sender.transmit(MSS, MSS);
        assert_eq!(kept.ack(&sender), Same);
        if ended {
            kept.end();
        }
        assert_eq!(sender.told(0, nonces[0]), Believed);
        assert_eq!(kept.ack(&sender), Same, "one of two");
        assert_eq!(sender.told(MSS, nonces[1]), Believed);
        assert_eq!((kept.ack(&sender), kept.threshold()), (Restored, 40));
        assert_eq!(kept.ack(&sender), Same);
    }
    // Later than four times the patience.
    let (mut sender, nonces) = busy();
    let mut kept = Kept::new();
    kept.begin(&sender, 40, false);
    sender.transmit(0, MSS);
    sender.pass(4 * PATIENCE + 4);
    assert_eq!(kept.ack(&sender), Same);
    assert_eq!((sender.told(0, nonces[0]), kept.ack(&sender), kept.threshold()), (Believed, Same, 20));
}

#[test]
fn two_reductions_are_taken_back_together() {
    let (mut sender, nonces) = busy();
    let mut kept = Kept::new();
    kept.begin(&sender, 40, false);
    sender.transmit(0, MSS);
    kept.ack(&sender);
    kept.end();
    assert_eq!(kept.begin(&sender, 20, false), 10);
    sender.transmit(MSS, MSS);
    assert_eq!((sender.told(MSS, nonces[1]), kept.ack(&sender)), (Believed, Same));
    assert_eq!((sender.told(0, nonces[0]), kept.ack(&sender), kept.threshold()), (Believed, Restored, 40));
}

#[test]
fn each_loss_has_a_patience_of_its_own() {
    // Always one is open, but none for long.
    let (mut sender, nonces) = busy();
    let mut kept = Kept::new();
    kept.begin(&sender, 40, true);
    for n in 0..30 {
        sender.transmit(n * MSS, MSS);
        sender.pass(60);
        if n > 0 {
            sender.delivered(10, 40);
            assert_eq!(sender.told((n - 1) * MSS, nonces[n as usize - 1]), Believed);
        }
        assert_eq!(kept.ack(&sender), Same, "loss {n}");
    }
    assert_eq!(sender.told(29 * MSS, nonces[29]), Believed);
    // What others are excused by does not excuse the one that nobody has explained.
    sender.transmit(100 * MSS, MSS);
    let changes: Vec<_> = (30..34)
        .map(|n| {
            sender.pass(60);
            assert_eq!(sender.told(n * MSS, nonces[n as usize]), Believed);
            sender.transmit(n * MSS, MSS);
            kept.ack(&sender)
        })
        .collect();
    assert_eq!(changes[..2], [Same, Reduced]);
}

#[test]
fn a_receiver_that_calls_damaged_what_it_has_explains_nothing() {
    let (mut sender, nonces) = busy();
    let mut kept = Kept::new();
    for n in 3..8 {
        assert_eq!(sender.told(n * MSS, nonces[n as usize]), Believed);
    }
    kept.begin(&sender, 40, true);
    sender.transmit(0, MSS);
    sender.pass(PATIENCE + 1);
    assert_eq!(kept.ack(&sender), Reduced);
    // Nor does the report of another transmission of the same segment.
    let again = sender.transmit(0, MSS);
    assert_eq!((sender.told(0, again), kept.ack(&sender)), (Believed, Same));
}

#[test]
fn a_loss_is_not_forgotten_among_many() {
    let (mut sender, nonces) = busy();
    let mut kept = Kept::new();
    kept.begin(&sender, 40, true);
    sender.transmit(0, MSS);
    for n in 1..=256 {
        sender.delivered(10, 40);
        assert_eq!(sender.told(n * MSS, nonces[n as usize]), Believed);
        sender.transmit(n * MSS, MSS);
    }
    assert_eq!(kept.ack(&sender), Reduced);
}

#[test]
fn a_reduction_leaves_what_the_path_holds_but_no_less_than_half_and_no_more_than_cubic() {
    let (sender, _) = busy();
    for (path, left) in [(0, 20), (15, 20), (25, 25), (28, 28), (40, 28)] {
        assert_eq!(Kept::new().begin_on(&sender, 40, path, false), left, "{path}");
    }
}

#[test]
fn a_mark_is_not_taken_back() {
    let (mut sender, nonces) = busy();
    let mut kept = Kept::new();
    assert_eq!(kept.begin_marked(&sender, 40), 20);
    assert_eq!(sender.told(0, nonces[0]), Believed);
    sender.transmit(0, MSS);
    assert_eq!((kept.ack(&sender), kept.threshold()), (Same, 20));
}

#[test]
fn a_mark_in_a_recovery_that_kept_its_window_reduces_it_once() {
    let (mut sender, nonces) = busy();
    let mut kept = Kept::new();
    assert_eq!(kept.begin(&sender, 40, true), 40);
    assert_eq!((kept.mark(&sender), kept.threshold()), (Reduced, 20));
    assert_eq!(kept.mark(&sender), Same);
    assert_eq!(sender.told(0, nonces[0]), Believed);
    sender.transmit(0, MSS);
    assert_eq!((kept.ack(&sender), kept.threshold()), (Same, 20));
}

/// A delay-based sender on a path of 20 ms that carries one segment a millisecond, beside `others` segments of a queue that others hold.
fn rounds(count: usize, others: impl Fn(usize) -> u32) -> Vec<(u32, u32, bool)> {
    // SAFETY: a constant.
    let mut state = vec![0_u64; unsafe { wl_host_delay_size }.div_ceil(8)];
    // SAFETY: `state` has the octets of the structure.
    unsafe { wl_host_delay_init(state.as_mut_ptr(), 10) };
    let (mut window, mut seen) = (10, Vec::new());
    for round in 0..count {
        // With those of others in the queue, a window of w holds w segments of the 20 + queue that are under way.
        let rtt = 20_000.max((window + others(round)) * 1000);
        // SAFETY: as above.
        let told = unsafe { wl_host_delay_round(state.as_mut_ptr(), rtt, 20_000) };
        window = (u64::from(told) & LIMIT) as u32;
        seen.push((window, rtt - 20_000, told >> 31 != 0));
    }
    seen
}

#[test]
fn alone_a_small_queue_stands() {
    let seen = rounds(200, |_| 0);
    for (window, queue, competes) in &seen[40..] {
        assert!((20..=27).contains(window) && *queue <= 7_000 && !competes, "{window} {queue} {competes}");
    }
}

#[test]
fn beside_a_full_queue_it_competes_and_yields_when_that_has_gone() {
    let seen = rounds(800, |round| if (100..300).contains(&round) { 50 } else { 0 });
    assert!(!seen[99].2);
    let competing = (100..300).filter(|round| seen[*round].2).count();
    assert!(competing > 120, "{competing} of 200 rounds");
    for (window, queue, competes) in &seen[700..] {
        assert!((20..=27).contains(window) && *queue <= 7_000 && !competes, "{window} {queue} {competes}");
    }
}

#[test]
fn a_queue_is_long_from_what_the_path_holds() {
    // SAFETY: numbers in, a number out.
    let is_long = |cwnd, rtt, base| unsafe { wl_host_delay_long(cwnd, rtt, base) } != 0;
    assert!(!is_long(34, 40_000, 20_000) && is_long(34, 40_001, 20_000));
    assert!(!is_long(34, 60_000, 0), "no sample");
    assert!(!is_long(34, 5_100, 100) && is_long(34, 5_101, 100), "five milliseconds are nothing");
    assert!(
        !is_long(5, 100_000, 20_000) && is_long(6, 100_000, 20_000),
        "four segments in it are nothing: the queue is that of others"
    );
    // SAFETY: as above.
    let path = |cwnd, rtt, base| unsafe { wl_host_delay_path(cwnd, rtt, base) };
    // With a quarter of the round trip as queue.
    assert_eq!((path(40, 40_000, 20_000), path(40, 25_000, 20_000), path(40, 19_000, 20_000)), (25, 40, 40));
}
