//! Whole transfers over chosen faults: what each mechanism buys, and what nobody may break.

use proptest::prelude::*;
use whyloss_testkit::ring::{Closes, End, Fault, Link, Reads, Ring, Setup, Side};
use whyloss_transport::scheme::Selection;
use whyloss_transport::segment::{Flags, Integrity, Segment};
use whyloss_transport::tcp::{Closing, State, PROFILES};
use whyloss_transport::{BitRate, Command, Config, Duration, Instant, Seq};

const OCTETS: u64 = 200_000;

fn link() -> Link {
    Link::new(Duration::from_millis(20))
}

fn at_ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// A transfer of [`OCTETS`] from the client to the server, to its end.
fn transfer(config: &Config, forward: Link, backward: Link) -> Ring {
    let mut ring =
        Ring::new(1, Setup::sender(config.clone(), OCTETS), Setup::receiver(config.clone()), forward, backward).unwrap();
    assert_eq!(ring.run().unwrap_or_else(|failure| panic!("{failure}")), End::Quiet);
    assert_eq!(ring.host(Side::Server).received(), OCTETS);
    for side in [Side::Client, Side::Server] {
        assert!(matches!(ring.host(side).told.closed, Some((_, Closing::Normal))), "{side:?}");
    }
    ring
}

/// When the server had everything.
fn took(ring: &Ring) -> Duration {
    ring.host(Side::Server).told.peer_closed.expect("it ended").since(Instant::ZERO)
}

#[test]
fn a_clean_path_needs_no_repair_in_any_profile() {
    for (name, profile) in PROFILES {
        let ring = transfer(&profile(), link(), link());
        let stats = *ring.host(Side::Client).endpoint.stats();
        assert_eq!((stats.retransmissions, stats.timeouts, stats.losses), (0, 0, 0), "{name}");
        assert_eq!(stats.data_octets_sent, OCTETS, "{name}");
    }
}

#[test]
fn one_loss_costs_one_retransmission_and_one_reduction() {
    for sack in [true, false] {
        let config = Config { sack, ..Config::modern() };
        let ring = transfer(&config, link().fault_at(Fault::Drop, [40]), link());
        let stats = ring.host(Side::Client).endpoint.stats();
        assert_eq!((stats.retransmissions, stats.timeouts, stats.reductions), (1, 0, 1), "SACK: {sack}");
    }
}

/// SACK repairs five losses of a window in about one round trip, NewReno one a round trip, while new data goes on.
#[test]
fn sack_repairs_many_losses_at_once() {
    let lossy = || link().fault_at(Fault::Drop, [40, 42, 44, 46, 48]);
    let with = transfer(&Config::modern(), lossy(), link());
    let without = transfer(&Config { sack: false, ..Config::modern() }, lossy(), link());
    for ring in [&with, &without] {
        assert_eq!(ring.host(Side::Client).endpoint.stats().timeouts, 0);
        assert_eq!(ring.host(Side::Client).endpoint.stats().retransmissions, 5);
    }
    assert!(took(&with) + Duration::from_millis(60) < took(&without), "{} against {}", took(&with), took(&without));
}

/// Losses that are noticed in one recovery bear one number, and the next recovery bears the next.
#[test]
fn the_losses_of_an_episode_bear_its_number() {
    let episodes = |config: &Config, lost: &[u64]| -> Vec<u32> {
        let ring = transfer(config, link().fault_at(Fault::Drop, lost.iter().copied()), link());
        ring.host(Side::Client).told.losses.iter().map(|loss| loss.episode).collect()
    };
    let modern = Config::modern();
    assert_eq!(episodes(&modern, &[40, 42, 44, 110]), [0, 0, 0, 1]);
    assert_eq!(episodes(&Config { sack: false, ..modern }, &[40, 42, 44, 110]), [0, 0, 0, 1]);
    // The first repair of the first segment is lost too: only the timer tells, and that is an episode of its own.
    let ring = transfer(
        &Config { sack: false, tlp: false, ..Config::modern() },
        link().fault(Fault::Drop, |p| p.offset == Some(40 * 1448) && p.transmission < 3),
        link(),
    );
    let told = &ring.host(Side::Client).told.losses;
    let numbers: Vec<_> = told.iter().map(|loss| (loss.trigger.name(), loss.episode)).collect();
    assert_eq!(numbers, [("duplicate-acks", 0), ("timeout", 1), ("timeout", 1)]);
}

/// The last segment is lost: the probe repairs it after two round trips, the timer only after its minimum.
#[test]
fn a_lost_tail_is_probed() {
    let config = Config { min_rto: Duration::from_secs(1), ..Config::modern() };
    let lossy = || link().fault(Fault::Drop, |p| p.segment.flags.contains(Flags::FIN) && p.transmission == 0);
    let with = transfer(&config, lossy(), link());
    let without = transfer(&Config { tlp: false, ..config }, lossy(), link());
    assert_eq!(with.host(Side::Client).endpoint.stats().timeouts, 0);
    assert_eq!(without.host(Side::Client).endpoint.stats().timeouts, 1);
    assert!(took(&with) + Duration::from_millis(500) < took(&without));
}

/// Once it has seen segments out of order, RACK waits for a quarter of a round trip; three duplicate acknowledgements do not.
#[test]
fn rack_bears_reordering() {
    let late = |millis| Fault::Delay(Duration::from_millis(millis));
    // First by one segment, then by ten.
    let reordering = || {
        let link = link().fault_at(late(1), [31]);
        link.fault(late(6), |p| p.data_index.is_some_and(|n| n > 40 && n % 14 == 0))
    };
    let paced = |config: Config| {
        let forward = reordering().bottleneck(BitRate::from_bps(20_000_000), 1000);
        transfer(&config, forward, link())
    };
    let with = paced(Config::modern());
    let without = paced(Config { rack: false, tlp: false, undo: false, ..Config::modern() });
    let resent = |ring: &Ring| ring.host(Side::Client).endpoint.stats().retransmissions;
    assert!(resent(&with) == 0 && resent(&without) > 3, "{} against {}", resent(&with), resent(&without));
}

#[test]
fn an_outage_is_survived_and_backed_off_from() {
    let ring = transfer(&Config::modern(), link().down(at_ms(100), at_ms(8_100)), link());
    let stats = ring.host(Side::Client).endpoint.stats();
    // 8 s hold the timeouts after 0.2, 0.6, 1.4, 3 and 6.2 s and perhaps one more.
    assert!((4..=7).contains(&stats.timeouts), "{stats:?}");
}

/// The scheme of Garcia & Brunstrom 2004: damage is reported and repaired without giving up the window.
#[test]
fn reported_damage_keeps_the_window() {
    let damaging = || link().fault_at(Fault::Damage(Integrity::HeaderSuspect), [40]);
    let run = |scheme: &str| {
        let selection = Selection::scheme(scheme);
        let client = Setup::sender(Config::modern(), OCTETS).with(selection.clone());
        let server = Setup::receiver(Config::modern()).with(selection);
        let mut ring = Ring::new(3, client, server, damaging(), link()).unwrap();
        ring.run().unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(ring.host(Side::Server).received(), OCTETS);
        ring
    };
    let (kept, reduced) = (run("checksum-ld"), run("newreno"));
    assert_eq!(reduced.host(Side::Client).endpoint.stats().reductions, 1);
    let stats = kept.host(Side::Client).endpoint.stats();
    assert_eq!((stats.reductions, stats.retransmissions, stats.reports_received), (0, 1, 1));
    assert!(kept.host(Side::Client).endpoint.window().cwnd() > reduced.host(Side::Client).endpoint.window().cwnd());
}

#[test]
fn marks_reduce_without_loss() {
    let config = Config { ecn: true, ..Config::modern() };
    let ring = transfer(&config, link().fault_at(Fault::Mark, [40]), link());
    let stats = ring.host(Side::Client).endpoint.stats();
    assert_eq!((stats.ecn_reductions, stats.retransmissions), (1, 0));
}

#[test]
fn a_reader_that_sleeps_stops_the_sender_and_nobody_gives_up() {
    let config = Config { receive_buffer: 20_000, max_retransmissions: Some(3), ..Config::modern() };
    let server = Setup { reads: Reads::From(at_ms(60_000)), ..Setup::receiver(config.clone()) };
    let mut ring = Ring::new(1, Setup::sender(config, OCTETS), server, link(), link()).unwrap();
    ring.run().unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(ring.host(Side::Server).received(), OCTETS);
}

#[test]
fn both_directions_and_a_simultaneous_open() {
    let config = Config::modern();
    let host = || Setup { closes: Closes::AfterWriting, ..Setup::sender(config.clone(), OCTETS) };
    let mut ring = Ring::new(9, host(), host(), link(), link()).unwrap();
    ring.run().unwrap_or_else(|failure| panic!("{failure}"));
    for side in [Side::Client, Side::Server] {
        assert_eq!(ring.host(side).received(), OCTETS);
        assert!(matches!(ring.host(side).told.closed, Some((_, Closing::Normal))));
    }
}

#[test]
fn an_abort_reaches_the_peer() {
    let config = Config::modern();
    let server = Setup { closes: Closes::Never, ..Setup::receiver(config.clone()) };
    let client = Setup { closes: Closes::Never, ..Setup::sender(config, OCTETS) };
    let mut ring = Ring::new(1, client, server, link(), link()).unwrap();
    ring.run_until(at_ms(90), |_| false).unwrap();
    ring.command(Side::Client, Command::Abort).unwrap();
    ring.run().unwrap();
    assert!(matches!(ring.host(Side::Client).told.closed, Some((_, Closing::Aborted))));
    assert!(matches!(ring.host(Side::Server).told.closed, Some((_, Closing::Reset))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// An attacker who does not know the numbers: whatever segments he puts in, the data that arrives is the data that was sent, and
    /// only an exact reset ends the connection (RFC 5961).
    #[test]
    fn blind_segments_do_no_harm(
        forged in proptest::collection::vec((any::<u32>(), any::<u32>(), any::<u8>(), any::<u16>(), any::<bool>()), 1..30)
    ) {
        let config = Config { timestamps: false, receive_buffer: 65_535, ..Config::modern() };
        let client = Setup::sender(config.clone(), OCTETS);
        let mut ring = Ring::new(5, client, Setup::receiver(config), link(), link()).unwrap();
        ring.run_until(at_ms(70), |_| false).unwrap();
        for (seq, ack, flags, window, to_client) in forged {
            let to = if to_client { Side::Client } else { Side::Server };
            // No data: what is forged with the right numbers cannot be told from the peer's.
            let segment = Segment { seq: Seq(seq), ack: Seq(ack), flags: Flags(flags), window, ..Segment::default() };
            ring.inject(to, segment, Integrity::Intact);
        }
        // The chance to hit both windows of 64 KiB by guessing is one in 2^32; challenges cost time, not data.
        ring.run().map_err(|failure| TestCaseError::fail(failure.to_string()))?;
        let server = ring.host(Side::Server);
        prop_assert!(server.received() == OCTETS || server.endpoint.state() == State::Closed);
    }
}
