//! The kernel's TCP against itself over the relay: proves the test bed.

mod support;

use std::net::{TcpListener, TcpStream};
use std::time::Duration;
use support::relay::{Impairment, Relay};
use support::skip::skip;
use support::stream::{exchange, octets, sha256, CloseOrder};
use whyloss_net::namespace::{missing_capability, Namespace};
use whyloss_net::Tun;

#[test]
fn the_kernel_talks_to_itself_over_a_bad_path() {
    if let Some(reason) = missing_capability() {
        skip(&reason);
        return;
    }
    let (left, right) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    let a = left.run(|| Tun::open("path")).unwrap();
    let b = right.run(|| Tun::open("path")).unwrap();
    for (ns, host, peer) in [(&left, 1, 2), (&right, 2, 1)] {
        ns.ip(&format!("addr add 10.7.0.{host} peer 10.7.0.{peer} dev path")).unwrap();
        ns.ip("link set path up").unwrap();
    }
    let impairment = Impairment {
        lose: 0.001,
        flip: 0.001,
        duplicate: 0.002,
        reorder: 0.005,
        hold: Duration::from_millis(2),
        delay: Duration::from_millis(1),
        ..Impairment::default()
    };
    let relay = Relay::start(a, b, [impairment; 2], 1);
    let listener = right.run(|| TcpListener::bind("10.7.0.2:80")).unwrap();
    let (one, two) = (octets(1, 16 << 20), octets(2, 16 << 20));
    let (got_left, got_right) = std::thread::scope(|scope| {
        let server = scope.spawn(|| exchange(listener.accept().unwrap().0, &two, CloseOrder::WhenSent));
        let client = left.run(|| TcpStream::connect("10.7.0.2:80")).unwrap();
        let got = exchange(client, &one, CloseOrder::AfterPeer);
        (got.unwrap(), server.join().unwrap().unwrap())
    });
    assert_eq!(got_left, (sha256(&two), two.len() as u64));
    assert_eq!(got_right, (sha256(&one), one.len() as u64));
    println!("{:#?}", relay.stop());
}
