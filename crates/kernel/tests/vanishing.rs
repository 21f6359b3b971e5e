//! Somebody on the way drops what carries our option: what a connection loses by it, and what the next one there.
#![cfg(feature = "bpf")]

mod support;

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use std::time::{Duration, Instant};
use support::middlebox::{Forged, Meddled, Meddler, Way};
use support::path::Link;
use support::traffic::{carry, connect_across};
use support::Loaded;
use whyloss_kernel::stat::{stat, Counts};
use whyloss_transport::segment::Flags;
use whyloss_transport::Segment;

/// What is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dropped {
    /// SYNs with the option.
    Syns,
    /// Data with a nonce.
    Data,
    /// The same, from this octet of the stream on.
    DataFrom(u32),
    /// Everything for as long, from this octet of the stream on.
    AllFrom(u32, Duration),
}

/// Drops it and counts what comes.
#[derive(Debug)]
struct Dropper {
    dropped: Dropped,
    first: Option<u32>,
    since: Option<Instant>,
    offers: u32,
    /// Segments with a nonce that were let through: all, and behind what was dropped.
    nonces: u32,
    nonces_after: u32,
    in_vain: u32,
}

impl Dropper {
    fn new(dropped: Dropped) -> Self {
        Self { dropped, first: None, since: None, offers: 0, nonces: 0, nonces_after: 0, in_vain: 0 }
    }

    fn goes_on(&mut self, way: Way, segment: &Segment) -> bool {
        let offers = segment.options.rare.as_ref().is_some_and(|rare| rare.reports_permitted);
        self.offers += u32::from(offers && way == Way::In);
        let nonce = segment.options.nonce.is_some();
        let first = *self.first.get_or_insert(segment.seq.0);
        let at = |octet: u32| !segment.is_empty() && segment.seq.0.wrapping_sub(first) as i32 >= octet as i32;
        let goes_on = match self.dropped {
            Dropped::Syns => !(offers && segment.flags.contains(Flags::SYN)),
            _ if way == Way::Out => match self.dropped {
                Dropped::AllFrom(_, time) => self.since.is_none_or(|since| since.elapsed() > time),
                _ => true,
            },
            Dropped::Data => !nonce,
            Dropped::DataFrom(octet) => !(nonce && at(octet)),
            Dropped::AllFrom(octet, time) => {
                if at(octet) {
                    self.since.get_or_insert_with(Instant::now);
                }
                self.since.is_none_or(|since| since.elapsed() > time)
            }
        };
        self.nonces += u32::from(nonce && goes_on);
        self.nonces_after += u32::from(nonce && goes_on && self.since.is_some());
        self.in_vain += u32::from(!goes_on);
        goes_on
    }
}

impl Meddler for Dropper {
    fn meddle(&mut self, way: Way, segment: &mut Segment, _: &mut Vec<Forged>) -> bool {
        self.goes_on(way, segment)
    }
}

/// Connects once for each of `ports` and carries `octets`; gives how long it took to connect and to carry, and what is told of reports.
fn carried(loaded: &Loaded, meddled: &Meddled<Dropper>, port: u16, octets: usize) -> (f64, f64, Counts) {
    let begin = Instant::now();
    let control = format!("{}checksum", loaded.place.prefix);
    let hosts = (meddled.bed.namespace(0), &meddled.behind);
    let ends = connect_across(hosts, (meddled.address, port).into(), &control);
    let connected = begin.elapsed().as_secs_f64();
    ends.1.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    carry((&ends.0, &ends.1), octets);
    (connected, begin.elapsed().as_secs_f64() - connected, stat(&loaded.place).expect("counts").reports)
}

fn avoided(loaded: &Loaded) -> MapHandle {
    MapHandle::from_pinned_path(loaded.place.mounted_on().join("maps/wl_avoided")).expect("a map")
}

#[test]
fn data_that_vanishes_with_a_nonce_goes_without_and_so_do_later_connections_there() {
    let Some(loaded) = Loaded::new("x1_", &["wl_checksum"]) else { return };
    let meddled = Meddled::new(&Link::default(), Dropper::new(Dropped::Data));
    let (_, first, told) = carried(&loaded, &meddled, 5201, 300_000);
    println!("first {first:.2} s, {told:?}");
    // Two timeouts, of 0.2 s and twice that, and the transfer.
    assert!(first < 4.0, "{first} s");
    assert_eq!(told["vanished"], 1, "{told:?}");
    let (_, second, told) = carried(&loaded, &meddled, 5202, 300_000);
    println!("second {second:.2} s, {told:?}");
    assert!(second < 1.0 && second < first, "{second} s");
    assert_eq!((told["vanished"], told["avoided"]), (1, 1), "{told:?}");

    // Later it is tried again.
    let map = avoided(&loaded);
    let keys: Vec<_> = map.keys().collect();
    assert_eq!(keys.len(), 1);
    map.update(&keys[0], &1_u64.to_ne_bytes(), MapFlags::ANY).expect("an entry");
    let (_, _, told) = carried(&loaded, &meddled, 5203, 10_000);
    assert_eq!(told["vanished"], 2, "{told:?}");
    let dropper = meddled.middlebox.stop();
    println!("{dropper:?}");
    assert_eq!((dropper.offers, dropper.nonces), (2, 0));
    assert!(dropper.in_vain >= 20, "{dropper:?}");
}

#[test]
fn syns_that_vanish_cost_one_connection_to_a_destination_the_time() {
    let Some(loaded) = Loaded::new("x2_", &["wl_checksum"]) else { return };
    let meddled = Meddled::new(&Link::default(), Dropper::new(Dropped::Syns));
    let (first, _, told) = carried(&loaded, &meddled, 5201, 10_000);
    println!("first {first:.2} s, {told:?}");
    assert!((1.5..4.0).contains(&first), "{first} s");
    for port in 5202..5205 {
        let (later, _, told) = carried(&loaded, &meddled, port, 10_000);
        println!("later {later:.2} s, {told:?}");
        assert!(later < 0.5, "{later} s");
        assert_eq!(told["agreed"], 0, "{told:?}");
    }
    // Both SYNs of the first, none of the others.
    assert_eq!(meddled.middlebox.stop().offers, 2);
}

#[test]
fn a_path_that_begins_to_drop_nonces_is_told_from_an_outage() {
    let Some(loaded) = Loaded::new("x3_", &["wl_checksum"]) else { return };
    let outage = Meddled::new(&Link::default(), Dropper::new(Dropped::AllFrom(200_000, Duration::from_millis(1500))));
    let (_, seconds, told) = carried(&loaded, &outage, 5201, 1_000_000);
    let dropper = outage.middlebox.stop();
    println!("outage: {seconds:.2} s, {dropper:?}, {told:?}");
    assert_eq!(told["vanished"], 0, "{told:?}");
    assert!(dropper.nonces_after > 200, "{dropper:?}");

    let changed = Meddled::new(&Link::default(), Dropper::new(Dropped::DataFrom(200_000)));
    let (_, seconds, told) = carried(&loaded, &changed, 5202, 1_000_000);
    let dropper = changed.middlebox.stop();
    println!("route that changes: {seconds:.2} s, {dropper:?}, {told:?}");
    assert_eq!(told["vanished"], 1, "{told:?}");
    assert!(seconds < 8.0, "{seconds} s");
}

#[test]
fn what_is_remembered_of_destinations_is_bounded() {
    let Some(loaded) = Loaded::new("x4_", &["wl_checksum"]) else { return };
    let map = avoided(&loaded);
    for number in 0..20_000_u64 {
        let key = [&0_u64.to_ne_bytes()[..], &[0; 8], &number.to_be_bytes()].concat();
        map.update(&key, &u64::MAX.to_ne_bytes(), MapFlags::ANY).expect("the oldest gives way");
    }
    let kept = map.keys().count();
    assert!((1000..=4096).contains(&kept), "{kept}");
}
