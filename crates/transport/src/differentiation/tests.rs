//! The sender's belief in reports: honest, repeated, forged and excessive ones.

use super::{Cause, Credits, Evidence, LossDifferentiator, Reported, Trust};
use crate::path::{self, Ack, Loss, Path, ReportedSegment, Trigger};
use crate::segment::{CorruptionReport, Options, PositionBasis, Report, ReportedPosition};
use crate::seq::Seq;
use crate::time::{Duration, Instant};

const MSS: u64 = 1000;
const PAPER: Trust = Trust {
    evidence: Evidence::CountOnly,
    credits: Credits::Each,
    nonce: false,
    wrong_echoes: 0,
    rate_limit: false,
    p_wl_max: 1.0,
    max_rtx: 5,
};
const HARDENED: Trust = Trust { evidence: Evidence::SeqConfirmed, nonce: true, rate_limit: true, p_wl_max: 0.3, ..PAPER };

/// A sender on a path of 100 ms, at a time in milliseconds. Segment `n` left `n` ms after the beginning.
struct Sender {
    differentiator: Reported,
    path: Path,
}

impl Sender {
    fn new(trust: Trust) -> Self {
        let rtt = |ms| Some(Duration::from_millis(ms));
        let path = Path { srtt: rtt(100), min_rtt: rtt(100), max_rtt: rtt(120), mss: MSS as u32, ..Path::default() };
        Self { differentiator: Reported::new(trust), path }
    }

    fn at(&mut self, ms: u64) -> &mut Self {
        self.path.now = time(ms);
        self
    }

    fn report(&mut self, report: CorruptionReport, segment: impl Into<Option<ReportedSegment>>) -> &mut Self {
        let report = Report::Corruption(report);
        self.differentiator.on_report(&path::Reported { path: &self.path, report: &report, news: true, segment: segment.into() });
        self
    }

    fn cause(&mut self, n: u64, transmission: u32, sent_ms: u64) -> Cause {
        let verdict = self.differentiator.judge(&Loss {
            path: &self.path,
            start: n * MSS,
            len: MSS as u32,
            transmission,
            sent_at: time(sent_ms),
            trigger: Trigger::DuplicateAcks,
            first_of_episode: true,
        });
        assert_eq!(verdict.score, if verdict.cause == Cause::Corruption { 1.0 } else { 0.0 });
        verdict.cause
    }

    /// The verdicts on the first transmissions of segments that are found lost at once.
    fn found<const N: usize>(&mut self, first_of_episode: bool, segments: [u64; N]) -> [Cause; N] {
        let loss =
            |n: u64| Loss { first_of_episode: false, ..Loss::new(&self.path, n * MSS, MSS as u32, time(n), Trigger::Rack) };
        let mut losses = segments.map(loss);
        losses[0].first_of_episode = first_of_episode;
        self.differentiator.on_found(&losses);
        losses.map(|loss| self.differentiator.judge(&loss).cause)
    }

    /// The verdict on the first transmission of segment `n`.
    fn judge(&mut self, n: u64) -> Cause {
        self.cause(n, 0, n)
    }

    fn deliver(&mut self, segments: u64) -> &mut Self {
        let ack = Ack {
            path: &self.path,
            acked: 0,
            delivered: segments * MSS,
            rtt: None,
            delay: None,
            newest_sent_at: None,
            duplicate: true,
            ece: false,
            in_recovery: false,
            window_limited: true,
            sample: None,
            options: &Options::default(),
        };
        self.differentiator.on_ack(&ack);
        self
    }
}

fn time(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(1000 + ms)
}

fn named(count: u8, n: u64, basis: PositionBasis, echo: Option<u32>) -> CorruptionReport {
    let position = Some(ReportedPosition { seq: Seq::from(n * MSS), len: MSS as u16, basis });
    CorruptionReport { count, position, echo, ..CorruptionReport::default() }
}

fn confirmed(count: u8, n: u64) -> CorruptionReport {
    named(count, n, PositionBasis::SeqConfirmed, None)
}

fn unnamed(count: u8) -> CorruptionReport {
    CorruptionReport { count, ..CorruptionReport::default() }
}

/// Segment `n` as the engine finds it outstanding, transmitted once. Its nonce is `n + 1000`.
fn outstanding(n: u64) -> ReportedSegment {
    transmitted(n, 0, n)
}

fn transmitted(n: u64, transmission: u32, sent_ms: u64) -> ReportedSegment {
    let nonce = Some(nonce(n, transmission));
    ReportedSegment { start: n * MSS, len: MSS as u32, transmission, sent_at: time(sent_ms), nonce }
}

fn nonce(n: u64, transmission: u32) -> u32 {
    n as u32 + 1000 * (transmission + 1)
}

fn proven(count: u8, n: u64) -> CorruptionReport {
    named(count, n, PositionBasis::SeqConfirmed, Some(nonce(n, 0)))
}

#[test]
fn what_is_reported_is_corruption_and_nothing_else() {
    let mut sender = Sender::new(PAPER);
    sender.at(110).report(confirmed(1, 5), outstanding(5));
    assert_eq!(sender.judge(4), Cause::Congestion);
    assert_eq!(sender.judge(5), Cause::Corruption);
    assert_eq!(sender.judge(6), Cause::Congestion);
    assert_eq!(sender.cause(5, 1, 120), Cause::Congestion, "another transmission of it");
}

#[test]
fn a_repeated_report_excuses_nothing_more() {
    let mut sender = Sender::new(PAPER);
    sender.at(110).report(confirmed(1, 5), outstanding(5));
    // Retransmitted at 115; the receiver repeats its report until the hole is filled.
    for ms in [120, 180, 230] {
        sender.at(ms).report(confirmed(1, 5), transmitted(5, 1, 115));
    }
    assert_eq!(sender.cause(5, 1, 115), Cause::Congestion);
}

#[test]
fn a_repeated_report_does_not_excuse_the_retransmission() {
    let mut sender = Sender::new(PAPER);
    sender.at(100).report(confirmed(1, 5), outstanding(5));
    sender.at(110).report(unnamed(2), None);
    // A queue dropped the retransmission; the report comes again with a count whose step named no position.
    sender.at(210).report(confirmed(2, 5), transmitted(5, 1, 101));
    assert_eq!(sender.cause(5, 1, 101), Cause::Congestion);
    assert_eq!(sender.cause(5, 0, 5), Cause::Corruption);
}

#[test]
fn a_report_too_early_for_the_retransmission_concerns_the_original() {
    let mut sender = Sender::new(PAPER);
    sender.at(130).report(confirmed(1, 5), transmitted(5, 1, 120));
    assert_eq!(sender.cause(5, 1, 120), Cause::Congestion);
    assert_eq!(sender.judge(5), Cause::Corruption);
}

#[test]
fn a_damaged_retransmission_is_excused_up_to_a_limit() {
    let mut sender = Sender::new(Trust { max_rtx: 2, ..PAPER });
    for transmission in 0..5u32 {
        let sent = u64::from(transmission) * 200;
        sender.at(sent + 110).report(confirmed(transmission as u8 + 1, 5), transmitted(5, transmission, sent));
        let expected = if transmission <= 2 { Cause::Corruption } else { Cause::Congestion };
        assert_eq!(sender.cause(5, transmission, sent), expected, "transmission {transmission}");
    }
}

#[test]
fn congestion_wins_over_corruption() {
    let marked = |report| CorruptionReport { congestion_experienced: true, ..report };
    let mut sender = Sender::new(PAPER);
    sender.at(110).report(marked(confirmed(1, 5)), outstanding(5));
    sender.report(marked(unnamed(2)), None);
    assert_eq!(sender.judge(5), Cause::Congestion);
}

#[test]
fn a_count_excuses_as_many_losses_as_it_counts_within_its_time() {
    let mut sender = Sender::new(PAPER);
    // Sent between 300 - 120 - 100 and 300 - 100.
    sender.at(300).report(unnamed(2), None);
    assert_eq!(sender.judge(79), Cause::Congestion, "left too early");
    assert_eq!(sender.judge(201), Cause::Congestion, "left too late");
    assert_eq!(sender.judge(80), Cause::Corruption);
    assert_eq!(sender.judge(200), Cause::Corruption);
    assert_eq!(sender.judge(150), Cause::Congestion, "used up");
}

#[test]
fn an_episode_with_more_losses_than_reports_is_congestion_as_a_whole() {
    use Cause::{Congestion, Corruption};
    let sender = |credits, reports: u8| {
        let mut sender = Sender::new(Trust { credits, ..PAPER });
        sender.at(300).report(confirmed(1, 90), outstanding(90)).report(unnamed(1 + reports), None);
        sender
    };
    // One report names segment 90, one or two name none. Found at once, each loss beside what the other reading says of it.
    for (reports, segments, each, episode) in [
        (1, [90, 101], [Corruption; 2], [Corruption; 2]),
        (1, [100, 101], [Corruption, Congestion], [Congestion; 2]),
        (2, [100, 101], [Corruption; 2], [Corruption; 2]),
        (2, [100, 250], [Corruption, Congestion], [Congestion; 2]), // which left too late for either
    ] {
        assert_eq!(sender(Credits::Each, reports).found(true, segments), each, "{segments:?}");
        assert_eq!(sender(Credits::Episode, reports).found(true, segments), episode, "{segments:?}");
    }
    let mut careful = sender(Credits::Episode, 1);
    assert_eq!(careful.found(true, [90, 100, 101]), [Corruption, Congestion, Congestion], "what was named was damaged");
    assert_eq!(careful.found(true, [102]), [Corruption], "the report was not used up");

    // One a round trip, as without SACK: the first is excused, for nobody knows of the second.
    let mut careful = sender(Credits::Episode, 1);
    assert_eq!([careful.found(true, [100]), careful.found(false, [101])], [[Corruption], [Congestion]]);
    careful.report(unnamed(3), None);
    assert_eq!(careful.found(false, [102]), [Congestion], "the episode has had its verdict");
    assert_eq!(careful.found(true, [103]), [Corruption]);
}

#[test]
fn a_position_found_later_takes_the_place_of_its_count() {
    let mut sender = Sender::new(PAPER);
    sender.at(300).report(unnamed(1), None).report(named(1, 190, PositionBasis::OrderInferred, None), outstanding(190));
    assert_eq!(sender.judge(180), Cause::Congestion);
    assert_eq!(sender.judge(190), Cause::Corruption);
}

#[test]
fn the_count_survives_lost_reports_its_wrap_and_overtaking() {
    let mut sender = Sender::new(PAPER);
    sender.at(300).report(unnamed(100), None).report(unnamed(200), None).report(unnamed(254), None);
    let excused = |sender: &mut Sender, from| (from..from + 50).filter(|n| sender.judge(*n) == Cause::Corruption).count();
    assert_eq!(excused(&mut sender, 80), 32, "a receiver that counts without end gains no more");
    sender.report(unnamed(1), None); // 254 -> 1: three steps
    sender.report(unnamed(0), None); // overtaken
    assert_eq!(excused(&mut sender, 130), 3);
}

#[test]
fn weaker_evidence_than_asked_for_does_not_count() {
    use PositionBasis::{OrderInferred, SeqConfirmed};
    let bases = [None, Some(OrderInferred), Some(SeqConfirmed)];
    for (asked, counting) in [(Evidence::CountOnly, 3), (Evidence::OrderInferred, 2), (Evidence::SeqConfirmed, 1)] {
        let believed = bases
            .iter()
            .filter(|basis| {
                let mut sender = Sender::new(Trust { evidence: asked, ..PAPER });
                match basis {
                    Some(basis) => sender.at(300).report(named(1, 150, *basis, None), outstanding(150)),
                    None => sender.at(300).report(unnamed(1), None),
                };
                sender.judge(150) == Cause::Corruption
            })
            .count();
        assert_eq!(believed, counting, "{asked:?}");
    }
}

#[test]
fn hardened_believes_the_right_nonce() {
    let mut sender = Sender::new(HARDENED);
    sender.at(110).report(proven(1, 5), outstanding(5));
    assert_eq!(sender.judge(5), Cause::Corruption);
}

/// Every kind of report without the right nonce, tens of thousands of guesses: none excuses a loss.
#[test]
fn hardened_never_excuses_a_loss_without_the_right_nonce() {
    use PositionBasis::{OrderInferred, SeqConfirmed};
    for tolerance in [0, u32::MAX - 1] {
        for guess in 0..20_000u32 {
            let mut sender = Sender::new(Trust { wrong_echoes: tolerance, ..HARDENED });
            let echo = match guess % 4 {
                0 => None,
                _ if guess == nonce(5, 0) => continue,
                _ => Some(guess),
            };
            let basis = if guess % 3 == 0 { OrderInferred } else { SeqConfirmed };
            sender.at(110).report(unnamed((guess % 100) as u8), None).report(named(guess as u8, 5, basis, echo), outstanding(5));
            assert_eq!(sender.judge(5), Cause::Congestion, "guess {guess}");
        }
    }
}

#[test]
fn an_order_inferred_position_is_not_enough_with_the_right_nonce() {
    let mut sender = Sender::new(HARDENED);
    sender.at(110).report(named(1, 5, PositionBasis::OrderInferred, Some(nonce(5, 0))), outstanding(5));
    assert_eq!(sender.judge(5), Cause::Congestion);
}

#[test]
fn a_nonce_proves_one_transmission_only() {
    let mut sender = Sender::new(HARDENED);
    sender.at(400).report(proven(1, 5), transmitted(5, 1, 120));
    assert_eq!(sender.cause(5, 1, 120), Cause::Congestion);
}

#[test]
fn one_wrong_echo_ends_the_trust_for_good() {
    let mut sender = Sender::new(HARDENED);
    sender.at(110).report(proven(1, 5), outstanding(5));
    sender.report(named(2, 6, PositionBasis::SeqConfirmed, Some(1)), outstanding(6));
    assert_eq!(sender.judge(5), Cause::Congestion, "also what was believed before");
    sender.at(10_000).report(proven(3, 7), outstanding(7));
    assert_eq!(sender.judge(7), Cause::Congestion);

    let mut forgiving = Sender::new(Trust { wrong_echoes: 1, ..HARDENED });
    forgiving.at(110).report(named(1, 6, PositionBasis::SeqConfirmed, Some(1)), outstanding(6));
    forgiving.report(proven(2, 5), outstanding(5));
    assert_eq!((forgiving.judge(5), forgiving.judge(6)), (Cause::Corruption, Cause::Congestion));
}

#[test]
fn hardened_excuses_no_more_than_the_rate_limit() {
    let trust = Trust { p_wl_max: 1.0, ..HARDENED };
    let excused = |sender: &mut Sender| {
        (0..40u8).for_each(|n| {
            sender.report(proven(n + 1, u64::from(n)), outstanding(u64::from(n)));
        });
        (0..40).filter(|n| sender.judge(*n) == Cause::Corruption).count()
    };
    let mut at_rest = Sender::new(trust);
    at_rest.at(150);
    assert_eq!(excused(&mut at_rest), 4);
    let mut busy = Sender::new(trust);
    busy.at(50).deliver(0).deliver(80).at(150);
    assert_eq!(excused(&mut busy), 20);
}

#[test]
fn too_much_corruption_is_taken_for_congestion_until_the_share_falls() {
    let mut sender = Sender::new(Trust { rate_limit: false, ..HARDENED });
    sender.at(150).deliver(32);
    for n in 0..10u8 {
        sender.report(proven(n + 1, u64::from(n)), outstanding(u64::from(n)));
        let share = f64::from(n + 1) / 32.0;
        let expected = if share > 0.3 { Cause::Congestion } else { Cause::Corruption };
        assert_eq!(sender.judge(u64::from(n)), expected, "{share}");
    }
    sender.deliver(23);
    assert_eq!(sender.judge(9), Cause::Corruption);
}

#[test]
fn what_is_acknowledged_is_forgotten() {
    let mut sender = Sender::new(PAPER);
    sender.at(110).report(confirmed(1, 5), outstanding(5)).report(confirmed(2, 6), outstanding(6));
    sender.path.una = 6 * MSS;
    let ack_path = sender.path.clone();
    sender.differentiator.on_ack(&Ack {
        path: &ack_path,
        acked: MSS,
        delivered: MSS,
        rtt: None,
        delay: None,
        newest_sent_at: None,
        duplicate: false,
        ece: false,
        in_recovery: false,
        window_limited: true,
        sample: None,
        options: &Options::default(),
    });
    assert_eq!((sender.judge(5), sender.judge(6)), (Cause::Congestion, Cause::Corruption));
}
