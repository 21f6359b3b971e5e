//! Octets that are read as a DCCP packet, written and read again are the same packet, and no endpoint minds them.
#![no_main]

mod checksums;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use whyloss_transport::datagram::dccp::{Ccid, Command, Config, Endpoint, Input};
use whyloss_transport::wire::dccp;
use whyloss_transport::{Instant, Ports};

fn read_and_write(octets: &[u8]) {
    let Ok(arrival) = dccp::parse(&Bytes::copy_from_slice(octets)) else { return };
    let mut written = Vec::new();
    // A damaged packet gets a checksum that holds, and padding between options is not kept.
    dccp::emit(&arrival.header, &arrival.packet, &mut written).expect("what was read can be written");
    let again = dccp::parse(&Bytes::from(written)).expect("what was written can be read");
    assert_eq!(again.packet, arrival.packet);
    for ccid in [Ccid::Two, Ccid::Three] {
        let mut end = Endpoint::new(Config { ccid, ..Config::default() }, Ports { local: 1, remote: 2 });
        end.handle(Instant::ZERO, Input::Command(Command::Listen));
        end.handle(Instant::ZERO, Input::Packet(&arrival.packet, arrival.data));
        end.handle(Instant::ZERO, Input::Command(Command::Produce { octets: 100, packets: u64::MAX }));
        for nanos in 1..20 {
            let now = Instant::from_nanos(nanos);
            end.handle(now, Input::Packet(&arrival.packet, arrival.data));
            while let Some(packet) = end.poll_transmit(now) {
                let mut out = Vec::new();
                dccp::emit(&arrival.header, &packet, &mut out).expect("what an endpoint sends can be written");
            }
            while end.poll_event().is_some() || end.read().is_some() {}
            end.handle_timeout(now);
        }
    }
}

fuzz_target!(|octets: &[u8]| {
    read_and_write(octets);
    let mut repaired = octets.to_vec();
    checksums::repair_dccp(&mut repaired);
    read_and_write(&repaired);
});
