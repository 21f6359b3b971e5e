//! Transfers between two hosts of the engine, across a path that does everything a path should not.

mod support;

use std::net::SocketAddr;
use std::time::{Duration, Instant};
use support::bed::{Bed, Family, PATIENCE};
use support::relay::Impairment;
use whyloss_net::bulk::{BulkTransfer, Load};
use whyloss_net::namespace::Namespace;
use whyloss_net::{Host, Tun};
use whyloss_transport::scheme::Selection;
use whyloss_transport::stack::Settings;
use whyloss_transport::tcp::Config;

fn host(namespace: &Namespace, address: std::net::IpAddr) -> Host {
    let tun = namespace.run(|| Tun::open("engine")).expect("a TUN device");
    Host::new(tun, Settings { addresses: vec![address], mtu: 1500, key: [7; 16] })
}

fn load(octets: Option<u64>, connections: u32) -> Load {
    let config = Config::profile("linux").expect("a profile");
    Load { octets, connections, chunk: 16_384, selection: Selection::default(), config }
}

fn prepare(bed: &Bed, load: Load) -> BulkTransfer {
    let (sender, receiver) = (host(&bed.near, Family::V4.engine()), host(&bed.peer, Family::V4.far_engine()));
    BulkTransfer::new(sender, receiver, SocketAddr::new(Family::V4.far_engine(), 80), load)
}

#[test]
fn all_of_it_arrives_over_several_connections() {
    let bad = Impairment { lose: 0.01, flip: 0.01, delay: Duration::from_millis(1), ..Impairment::default() };
    let Some(bed) = Bed::new([bad; 2], 3) else { return };
    let octets = 2_000_000;
    let transfer = prepare(&bed, load(Some(octets), 3));
    transfer.start(0).expect("a transfer");
    let began = Instant::now();
    while transfer.finished_ns().is_none() {
        assert!(began.elapsed() < PATIENCE, "{} of {octets} octets arrived", transfer.delivered());
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(transfer.delivered(), octets);
    assert!(transfer.finished_ns() > Some(transfer.started_ns()));
    let stats = transfer.stop().expect("both hosts ran to their end");
    assert!(stats.retransmissions > 0, "the path loses packets");
}

#[test]
fn one_without_end_goes_on_until_it_is_stopped() {
    let good = Impairment { delay: Duration::from_millis(1), ..Impairment::default() };
    let Some(bed) = Bed::new([good; 2], 3) else { return };
    let transfer = prepare(&bed, load(None, 1));
    transfer.start(0).expect("a transfer");
    let began = Instant::now();
    while transfer.delivered() < 1_000_000 {
        assert!(began.elapsed() < PATIENCE, "only {} octets arrived", transfer.delivered());
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(transfer.finished_ns(), None);
    transfer.stop().expect("both hosts ran to their end");
}

#[test]
fn one_that_was_never_started_can_be_asked_and_stopped() {
    let Some(bed) = Bed::new([Impairment::default(); 2], 3) else { return };
    let transfer = prepare(&bed, load(Some(1), 1));
    assert_eq!((transfer.started_ns(), transfer.finished_ns(), transfer.delivered()), (0, None, 0));
    assert_eq!(transfer.stop().expect("nothing to stop").retransmissions, 0);
    transfer.start(0).expect("it stays stopped");
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!((transfer.started_ns(), transfer.delivered()), (0, 0));
}

#[test]
fn one_that_begins_later_need_not_be_waited_for() {
    let Some(bed) = Bed::new([Impairment::default(); 2], 3) else { return };
    let transfer = prepare(&bed, load(None, 1));
    transfer.start(u64::MAX).expect("a transfer to come");
    let began = Instant::now();
    transfer.stop().expect("both hosts ran to their end");
    assert!(began.elapsed() < PATIENCE && transfer.delivered() == 0);
}

#[test]
fn a_second_start_changes_nothing_and_what_was_measured_stays_after_the_stop() {
    let Some(bed) = Bed::new([Impairment::default(); 2], 3) else { return };
    let transfer = prepare(&bed, load(Some(100_000), 1));
    transfer.start(0).expect("a transfer");
    transfer.start(u64::MAX).expect("it runs already");
    let began = Instant::now();
    while transfer.finished_ns().is_none() {
        assert!(began.elapsed() < PATIENCE, "{} octets arrived", transfer.delivered());
        std::thread::sleep(Duration::from_millis(2));
    }
    let measured = (transfer.started_ns(), transfer.finished_ns(), transfer.delivered());
    transfer.stop().expect("both hosts ran to their end");
    assert_eq!((transfer.started_ns(), transfer.finished_ns(), transfer.delivered()), measured);
    assert_eq!(transfer.delivered(), 100_000);
}
