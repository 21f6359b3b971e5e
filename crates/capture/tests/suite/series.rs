//! Copies of segments and their fates, in exchanges that are written down here.

use std::net::SocketAddr;
use whyloss_capture::connections::Connections;
use whyloss_capture::headers::{Checksum, Options, Segment};
use whyloss_capture::series::{Copy, Fate, Recorder};
use whyloss_transport::segment::Flags;
use whyloss_transport::time::{Duration, Instant};

const FIRST: u32 = u32::MAX - 1500;

/// A sender and a receiver of segments of 1000 octets; numbers of segments count from 0.
struct Talk {
    connections: Connections,
    recorder: Recorder,
    number: u64,
}

impl Talk {
    fn new(rows: usize) -> Self {
        Self { connections: Connections::default(), recorder: Recorder::new(rows), number: 0 }
    }

    fn segment(&mut self, ms: u64, to_server: bool) -> Segment {
        self.number += 1;
        let (client, server): (SocketAddr, SocketAddr) = ("10.0.0.1:4000".parse().unwrap(), "10.0.0.2:80".parse().unwrap());
        Segment {
            number: self.number,
            at: Instant::ZERO + Duration::from_millis(ms),
            src: if to_server { client } else { server },
            dst: if to_server { server } else { client },
            seq: 0,
            ack: 0,
            flags: Flags::ACK,
            window: 60_000,
            len: 0,
            partial: false,
            options: Options::default(),
            ip_id: Some(0),
            hop_limit: 64,
            ecn: 0,
            packet_len: 40,
            checksum: Checksum::Right,
            bad_frame: false,
        }
    }

    fn put(&mut self, segment: &Segment) {
        self.connections.on_segment(segment, &mut self.recorder);
    }

    fn data(&mut self, ms: u64, segment: u32) {
        self.octets(ms, segment, 1000);
    }

    fn octets(&mut self, ms: u64, segment: u32, len: u32) {
        let seq = FIRST.wrapping_add(segment * 1000);
        let sent = Segment { seq, len, packet_len: 40 + len, ..self.segment(ms, true) };
        self.put(&sent);
    }

    /// Everything below `segment` has arrived, and these.
    fn ack(&mut self, ms: u64, segment: u32, sacked: &[(u32, u32)]) {
        let seq = |segment: u32| FIRST.wrapping_add(segment * 1000);
        let mut octets = vec![5, 2 + 8 * sacked.len() as u8];
        for (from, to) in sacked {
            octets.extend(seq(*from).to_be_bytes());
            octets.extend(seq(*to).to_be_bytes());
        }
        let options = if sacked.is_empty() { Options::default() } else { Options::read(&octets) };
        let answer = Segment { ack: seq(segment), seq: 7, options, ..self.segment(ms, false) };
        self.put(&answer);
    }

    fn copies(mut self) -> Vec<Copy> {
        self.connections.finish(&mut self.recorder);
        let series = self.recorder.finish();
        assert!(series.copies.len() < 4 || series.left_out == 0);
        series.copies
    }
}

fn fates(copies: &[Copy]) -> Vec<(u64, Fate)> {
    copies.iter().map(|copy| (copy.offset / 1000, copy.fate)).collect()
}

#[test]
fn what_is_sent_again_was_lost_and_what_is_acknowledged_arrived() {
    let mut talk = Talk::new(100);
    (0..5).for_each(|segment| talk.data(u64::from(segment), segment));
    talk.ack(50, 1, &[]);
    // 1 is missing.
    talk.ack(52, 1, &[(2, 3)]);
    talk.ack(53, 1, &[(2, 4)]);
    talk.ack(54, 1, &[(2, 5)]);
    talk.data(55, 1);
    talk.ack(105, 5, &[]);
    talk.data(106, 5);
    let copies = talk.copies();
    use Fate::{Arrived, Lost, Open};
    let expected = [(0, Arrived), (1, Lost), (2, Arrived), (3, Arrived), (4, Arrived), (1, Arrived), (5, Open)];
    assert_eq!(fates(&copies), expected);
    let times: Vec<_> = copies.iter().map(|copy| copy.acked.map(|acked| acked.1.as_nanos() / 1_000_000)).collect();
    assert_eq!(times, [Some(50), None, Some(52), Some(53), Some(54), Some(105), None]);
    assert!(copies[5].again && !copies[4].again && copies.iter().all(|copy| copy.packet_octets == 1040));
}

#[test]
fn a_repair_that_the_receiver_reports_as_doubled_says_that_the_first_copy_arrived() {
    let mut talk = Talk::new(100);
    (0..4).for_each(|segment| talk.data(u64::from(segment), segment));
    talk.ack(50, 1, &[(2, 3)]);
    talk.ack(51, 1, &[(2, 4)]);
    talk.data(55, 1);
    talk.ack(60, 4, &[]);
    // RFC 2883, 4: the first block lies below the acknowledgement.
    talk.ack(105, 4, &[(1, 2)]);
    let copies = talk.copies();
    assert!(copies.iter().all(|copy| copy.fate == Fate::Arrived), "{:?}", fates(&copies));
    // 5 ms after the second copy the acknowledgement can only be that of the first.
    let at = |copy: &Copy| copy.acked.map(|acked| acked.1.as_nanos() / 1_000_000);
    assert_eq!((at(&copies[1]), at(&copies[4])), (Some(60), None));
}

#[test]
fn a_record_that_a_network_card_was_to_cut_is_several_packets() {
    let mut talk = Talk::new(100);
    let mss = Options::read(&[2, 4, 0x03, 0xE8]);
    let syn = Segment { flags: Flags::SYN, seq: FIRST.wrapping_sub(1), options: mss, ..talk.segment(0, true) };
    talk.put(&syn);
    let answer = Segment { flags: Flags::SYN | Flags::ACK, seq: 6, ack: FIRST, options: mss, ..talk.segment(20, false) };
    talk.put(&answer);
    talk.octets(21, 0, 2500);
    talk.ack(41, 2, &[]);
    let copies = talk.copies();
    let sizes: Vec<_> = copies.iter().map(|copy| (copy.offset, copy.octets, copy.packet_octets, copy.fate)).collect();
    assert_eq!(sizes, [(0, 1000, 1040, Fate::Arrived), (1000, 1000, 1040, Fate::Arrived), (2000, 500, 540, Fate::Open)]);
}

#[test]
fn sack_is_agreed_to_by_both_ends() {
    for (offered, answered) in [(true, true), (true, false), (false, false)] {
        let mut talk = Talk::new(100);
        let says = |sack: bool| if sack { Options::read(&[4, 2]) } else { Options::default() };
        let syn = Segment { flags: Flags::SYN, seq: FIRST.wrapping_sub(1), options: says(offered), ..talk.segment(0, true) };
        talk.put(&syn);
        let flags = Flags::SYN | Flags::ACK;
        let answer = Segment { flags, seq: 6, ack: FIRST, options: says(answered), ..talk.segment(20, false) };
        talk.put(&answer);
        talk.data(21, 0);
        talk.connections.finish(&mut talk.recorder);
        assert_eq!(talk.recorder.finish().ways[0].sack, Some(answered));
    }
}

#[test]
fn what_does_not_fit_is_counted() {
    let mut talk = Talk::new(3);
    (0..10).for_each(|segment| talk.data(u64::from(segment), segment));
    talk.ack(50, 10, &[]);
    talk.connections.finish(&mut talk.recorder);
    let series = talk.recorder.finish();
    assert_eq!((series.copies.len(), series.left_out), (3, 7));
    assert!(series.copies.iter().all(|copy| copy.fate == Fate::Arrived));
}

#[test]
fn without_sack_what_lay_behind_a_hole_had_arrived_though_it_was_sent_again() {
    let mut talk = Talk::new(100);
    talk.data(0, 0);
    talk.ack(50, 1, &[]);
    (1..6).for_each(|segment| talk.data(100 + u64::from(segment), segment));
    // 1 is missing; the timer expires, and two are sent again.
    (150..154).for_each(|at| talk.ack(at, 1, &[]));
    talk.data(400, 1);
    talk.data(401, 2);
    talk.ack(450, 6, &[]);
    use Fate::{Arrived, Lost, Open};
    let expected = [(0, Arrived), (1, Lost), (2, Arrived), (3, Arrived), (4, Arrived), (5, Arrived), (1, Arrived), (2, Open)];
    assert_eq!(fates(&talk.copies()), expected);
}

#[test]
fn without_sack_every_second_of_a_flight_was_lost() {
    let mut talk = Talk::new(100);
    talk.data(0, 0);
    talk.ack(50, 1, &[]);
    (1..6).for_each(|segment| talk.data(100 + u64::from(segment), segment));
    // 2 and 4 have arrived: two duplicates.
    (150..152).for_each(|at| talk.ack(at, 1, &[]));
    talk.data(400, 1);
    talk.ack(450, 3, &[]);
    (3..6).for_each(|segment| talk.data(448 + u64::from(segment), segment));
    // The repair of 3 fills a hole, that of 4 was not needed. 5 stands alone.
    talk.ack(501, 5, &[]);
    talk.ack(503, 6, &[]);
    use Fate::{Arrived, Lost, Open};
    let first = [(0, Arrived), (1, Lost), (2, Arrived), (3, Lost), (4, Arrived), (5, Lost), (1, Arrived), (3, Arrived)];
    assert_eq!(fates(&talk.copies()), [&first[..], &[(4, Open), (5, Arrived)]].concat());
}

#[test]
fn without_sack_either_of_two_copies_may_have_lain_behind_a_hole() {
    let mut talk = Talk::new(100);
    talk.data(0, 0);
    talk.ack(50, 1, &[]);
    (1..4).for_each(|segment| talk.data(100 + u64::from(segment), segment));
    talk.ack(151, 1, &[]);
    // Everything is sent again, and the first is lost again.
    (1..4).for_each(|segment| talk.data(400 + u64::from(segment), segment));
    (450..452).for_each(|at| talk.ack(at, 1, &[]));
    talk.data(900, 1);
    talk.ack(950, 4, &[]);
    use Fate::{Arrived, Lost, Open};
    let first = [(0, Arrived), (1, Lost), (2, Open), (3, Open), (1, Lost), (2, Open), (3, Open), (1, Arrived)];
    assert_eq!(fates(&talk.copies()), first);
}

#[test]
fn of_three_copies_of_which_two_arrived_the_middle_one_was_lost() {
    let mut talk = Talk::new(100);
    talk.data(0, 0);
    talk.ack(50, 1, &[]);
    // It arrives; the link is down when it is acknowledged, and when it is first sent again.
    talk.data(100, 1);
    talk.data(400, 1);
    talk.data(1000, 1);
    talk.ack(1050, 2, &[(1, 2)]);
    use Fate::{Arrived, Lost};
    assert_eq!(fates(&talk.copies()), [(0, Arrived), (1, Arrived), (1, Lost), (1, Arrived)]);
}

#[test]
fn an_acknowledgement_that_comes_too_soon_is_that_of_the_copy_before() {
    let mut talk = Talk::new(100);
    talk.data(0, 0);
    talk.ack(100, 1, &[]);
    (1..5).for_each(|segment| talk.data(200 + u64::from(segment), segment));
    talk.ack(302, 2, &[]);
    talk.ack(304, 2, &[(3, 4)]);
    talk.ack(305, 2, &[(3, 5)]);
    talk.data(310, 2);
    // The timer expires a moment before the acknowledgement comes.
    talk.data(405, 2);
    talk.ack(410, 5, &[]);
    talk.ack(505, 5, &[(2, 3)]);
    use Fate::{Arrived, Lost};
    let expected = [(0, Arrived), (1, Arrived), (2, Lost), (3, Arrived), (4, Arrived), (2, Arrived), (2, Arrived)];
    assert_eq!(fates(&talk.copies()), expected);
}

#[test]
fn a_repair_that_was_not_needed_can_have_been_lost() {
    let mut talk = Talk::new(100);
    talk.data(0, 0);
    talk.ack(50, 1, &[]);
    talk.data(100, 1);
    talk.data(400, 1);
    talk.data(1000, 1);
    // The receiver got it twice: at first, and at last. It says so of the stretch, which is that of both repairs.
    talk.ack(1050, 2, &[(1, 2)]);
    talk.ack(1051, 2, &[(1, 2)]);
    use Fate::{Arrived, Lost};
    assert_eq!(fates(&talk.copies()), [(0, Arrived), (1, Arrived), (1, Lost), (1, Arrived)]);
}
