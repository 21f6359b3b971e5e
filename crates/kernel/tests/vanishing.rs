//! Somebody on the way drops what carries our option: what a connection loses by it, and what the next one there.
#![cfg(feature = "bpf")]

mod support;

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use std::collections::BTreeMap;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};
use support::middlebox::{Forged, Meddled, Meddler, Way};
use support::path::Link;
use support::traffic::{carry, connect_across};
use support::Loaded;
use whyloss_kernel::stat::{stat, Counts};
use whyloss_transport::segment::Flags;
use whyloss_transport::Segment;

/// Which packets the path drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dropped {
    /// SYNs with the option.
    Syns,
    /// The first two SYNs to each of these ports.
    SynsOf(&'static [u16]),
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
    /// SYNs, by the port that they are for.
    syns: BTreeMap<u16, u32>,
    /// Segments with a nonce that were let through: all, and behind what was dropped.
    nonces: u32,
    nonces_after: u32,
    in_vain: u32,
}

impl Dropper {
    fn new(dropped: Dropped) -> Self {
        Self { dropped, first: None, since: None, offers: 0, syns: BTreeMap::new(), nonces: 0, nonces_after: 0, in_vain: 0 }
    }

    fn goes_on(&mut self, way: Way, segment: &Segment) -> bool {
        let offers = segment.options.rare.as_ref().is_some_and(|rare| rare.reports_permitted);
        self.offers += u32::from(offers && way == Way::In);
        let nonce = segment.options.any_nonce().is_some();
        let first = *self.first.get_or_insert(segment.seq.0);
        let at = |octet: u32| !segment.is_empty() && segment.seq.0.wrapping_sub(first) as i32 >= octet as i32;
        let goes_on = match self.dropped {
            Dropped::Syns => !(offers && segment.flags.contains(Flags::SYN)),
            Dropped::SynsOf(ports) if way == Way::In && segment.flags.contains(Flags::SYN) => {
                let syns = self.syns.entry(segment.dst_port).or_insert(0);
                *syns += 1;
                *syns > 2 || !ports.contains(&segment.dst_port)
            }
            _ if way == Way::Out => match self.dropped {
                Dropped::AllFrom(_, time) => self.since.is_none_or(|since| since.elapsed() > time),
                _ => true,
            },
            Dropped::SynsOf(_) => true,
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

/// Connections in a row for which something vanishes until their destination is avoided.
const AFTER: u16 = 3;

/// The same for connections to each of `ports` at once.
fn carried_at_once(loaded: &Loaded, meddled: &Meddled<Dropper>, ports: Range<u16>, octets: usize) -> Vec<(f64, f64, Counts)> {
    thread::scope(|scope| {
        let threads: Vec<_> = ports.map(|port| scope.spawn(move || carried(loaded, meddled, port, octets))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a transfer")).collect()
    })
}

fn reports(loaded: &Loaded) -> Counts {
    stat(&loaded.place).expect("counts").reports
}

#[test]
fn data_that_vanishes_with_a_nonce_goes_without_and_so_do_later_connections_there() {
    let Some(loaded) = Loaded::new("x1_", &["wl_checksum"]) else { return };
    let meddled = Meddled::new(&Link::default(), Dropper::new(Dropped::Data));
    for (_, seconds, _) in carried_at_once(&loaded, &meddled, 5201..5201 + AFTER, 100_000) {
        println!("first ones {seconds:.2} s");
        // Two timeouts, of 0.2 s and twice that, and the transfer.
        assert!((0.5..5.0).contains(&seconds), "{seconds} s");
    }
    let told = reports(&loaded);
    assert_eq!((told["vanished"], told["avoided"]), (AFTER.into(), 0), "{told:?}");
    let (_, later, told) = carried(&loaded, &meddled, 5211, 100_000);
    println!("later {later:.2} s, {told:?}");
    assert!(later < 0.5, "{later} s");
    assert_eq!((told["vanished"], told["avoided"]), (AFTER.into(), 1), "{told:?}");

    // When that time is over, one connection tries it again.
    let map = avoided(&loaded);
    let keys: Vec<_> = map.keys().collect();
    assert_eq!(keys.len(), 1);
    let mut value = map.lookup(&keys[0], MapFlags::ANY).expect("an entry").expect("is there");
    value[..8].copy_from_slice(&1_u64.to_ne_bytes());
    map.update(&keys[0], &value, MapFlags::ANY).expect("an entry");
    for port in 5212..5215 {
        carried(&loaded, &meddled, port, 10_000);
    }
    let told = reports(&loaded);
    assert_eq!((told["vanished"], told["avoided"]), (u64::from(AFTER) + 1, 3), "{told:?}");
    let dropper = meddled.middlebox.stop();
    println!("{dropper:?}");
    assert_eq!((dropper.offers, dropper.nonces), (u32::from(AFTER) + 1, 0));
    assert!(dropper.in_vain >= 20, "{dropper:?}");
}

#[test]
fn syns_that_vanish_cost_only_the_first_connections_to_a_destination_the_time() {
    let Some(loaded) = Loaded::new("x2_", &["wl_checksum"]) else { return };
    let meddled = Meddled::new(&Link::default(), Dropper::new(Dropped::Syns));
    for (seconds, _, _) in carried_at_once(&loaded, &meddled, 5201..5201 + AFTER, 10_000) {
        println!("first ones {seconds:.2} s");
        assert!((1.5..5.0).contains(&seconds), "{seconds} s");
    }
    for port in 5211..5214 {
        let (seconds, _, told) = carried(&loaded, &meddled, port, 10_000);
        println!("later {seconds:.2} s, {told:?}");
        assert!(seconds < 0.5, "{seconds} s");
        assert_eq!(told["agreed"], 0, "{told:?}");
    }
    // Two SYNs of each of the first, none of the others.
    assert_eq!(meddled.middlebox.stop().offers, 2 * u32::from(AFTER));
}

#[test]
fn syns_that_are_lost_by_chance_are_no_evidence() {
    let Some(loaded) = Loaded::new("x5_", &["wl_checksum"]) else { return };
    let meddled = Meddled::new(&Link::default(), Dropper::new(Dropped::SynsOf(&[5201, 5202, 5204])));
    carried_at_once(&loaded, &meddled, 5201..5203, 10_000);
    for port in 5203..5206 {
        carried(&loaded, &meddled, port, 10_000);
    }
    let told = reports(&loaded);
    println!("{told:?}");
    // Both ends of those whose SYNs were not lost.
    assert_eq!((told["avoided"], told["agreed"]), (0, 4), "{told:?}");
}

#[test]
fn a_path_that_begins_to_drop_nonces_is_told_from_an_outage() {
    let Some(loaded) = Loaded::new("x3_", &["wl_checksum"]) else { return };
    let through = |dropped, port| {
        let meddled = Meddled::new(&Link::default(), Dropper::new(dropped));
        let (_, seconds, _) = carried(&loaded, &meddled, port, 1_000_000);
        (seconds, meddled.middlebox.stop())
    };
    let ((outage, silent), (changed, dropping)) = thread::scope(|scope| {
        let outage = scope.spawn(|| through(Dropped::AllFrom(200_000, Duration::from_millis(1500)), 5201));
        let changed = scope.spawn(|| through(Dropped::DataFrom(200_000), 5202));
        (outage.join().expect("a transfer"), changed.join().expect("a transfer"))
    });
    let told = reports(&loaded);
    println!("outage: {outage:.2} s, {silent:?}; route that changes: {changed:.2} s, {dropping:?}; {told:?}");
    assert_eq!(told["vanished"], 1, "{told:?}");
    assert!(silent.nonces_after > 200, "after the outage: {silent:?}");
    assert!(dropping.in_vain >= 10 && changed < 8.0, "{changed} s, {dropping:?}");
}

#[test]
fn what_is_remembered_of_destinations_is_bounded() {
    let Some(loaded) = Loaded::new("x4_", &["wl_checksum"]) else { return };
    let map = avoided(&loaded);
    for number in 0..20_000_u64 {
        let key = [&0_u64.to_ne_bytes()[..], &[0; 8], &number.to_be_bytes()].concat();
        map.update(&key, &[0xff; 16], MapFlags::ANY).expect("the oldest gives way");
    }
    let kept = map.keys().count();
    assert!((1000..=4096).contains(&kept), "{kept}");
}
