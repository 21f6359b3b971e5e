//! The emulator between two kernels.

mod support;

use nix::sys::socket::{setsockopt, sockopt};
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::mpsc::{sync_channel, Receiver};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::skip::skip;
use whyloss_net::emulate::{Audit, Bounds, Chunk, Options, PacketFate, Record, Stretch};
use whyloss_net::namespace::{missing_capability, Namespace};
use whyloss_net::{Emulator, Tun};
use whyloss_sim::{
    AtEnd, Cause, Channel, ChannelSpec, Discipline, Effect, Errors, FqCoDel, LinkSpec, Pattern, Policer, QueueLimit, Trace,
};
use whyloss_transport::{self as transport, BitRate};

fn hop(name: &str, bps: u64, delay_ms: u64, queue: QueueLimit, channel: ChannelSpec) -> Stretch {
    let delay = transport::Duration::from_millis(delay_ms);
    let spec = LinkSpec { rate: BitRate::from_bps(bps), delay, queue, channel, ..LinkSpec::default() };
    Stretch { name: name.to_owned(), spec }
}

fn clean(name: &str) -> Stretch {
    hop(name, 1_000_000_000_000, 0, QueueLimit::Unlimited, ChannelSpec::default())
}

/// Two hosts, 10.7.0.1 and 10.7.0.2, with an emulator between them.
struct Bed {
    near: Namespace,
    far: Namespace,
    emulator: Emulator,
    records: Receiver<Chunk>,
}

impl Bed {
    /// `None`, with a word to the reader, where this machine cannot.
    fn new(chains: [Vec<Stretch>; 2], seed: u64, bounds: Bounds) -> Option<Self> {
        if let Some(reason) = missing_capability() {
            skip(&reason);
            return None;
        }
        let (near, far) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        let ends = [(&near, 1, 2), (&far, 2, 1)].map(|(namespace, own, other)| {
            let tun = namespace.run(|| Tun::open("wire")).unwrap();
            // Without IPv6 nobody speaks unasked.
            namespace.sysctl("ipv6/conf/wire/disable_ipv6", "1").unwrap();
            namespace.ip(&format!("addr add 10.7.0.{own} peer 10.7.0.{other} dev wire\nlink set wire up multicast off")).unwrap();
            tun
        });
        let (sender, records) = sync_channel(1 << 10);
        let options = Options { bounds, records: Some(sender), ..Options::new(seed, 0) };
        let emulator = Emulator::start(ends, chains, &options).unwrap();
        Some(Self { near, far, emulator, records })
    }

    /// Waits until `count` packets have come to an end in each direction of `directions`, and stops. Gives the records of the first
    /// direction.
    fn finish(self, count: u64) -> (Vec<Audit>, Vec<Record>) {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(5) {
            let audit = self.emulator.audit();
            let lost: u64 = audit[0].hops.iter().flat_map(|hop| &hop.dropped).map(|(_, count)| count).sum();
            if audit[0].sent + audit[0].refused + lost >= count {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let audit = self.emulator.stop().unwrap();
        let mut records: Vec<_> =
            self.records.iter().flat_map(|chunk| chunk.records).filter(|record| record.direction == 0).collect();
        records.sort_unstable_by_key(|record| record.number);
        (audit, records)
    }

    /// Sends `count` datagrams of `octets` octets of IP from near to far, `pause` apart, after `warm` more that the kernel needs; gives
    /// the socket that they go to.
    fn send(&self, count: u32, octets: usize, pause: Duration) -> UdpSocket {
        let far = self.far.run(|| UdpSocket::bind("10.7.0.2:4000")).unwrap();
        setsockopt(&far, sockopt::RcvBufForce, &(64 << 20)).unwrap();
        let near = self.near.run(|| UdpSocket::bind("10.7.0.1:4000")).unwrap();
        // Damaged datagrams arrive only if no checksum covers them.
        setsockopt(&near, sockopt::SndBufForce, &(64 << 20)).unwrap();
        let start = Instant::now();
        for number in 0..count {
            let mut payload = vec![0; octets - 28];
            payload[..4].copy_from_slice(&number.to_be_bytes());
            near.send_to(&payload, "10.7.0.2:4000").unwrap();
            let next = pause * (number + 1);
            if !pause.is_zero() {
                std::thread::sleep(next.saturating_sub(start.elapsed()));
            }
        }
        far
    }
}

fn losses(records: &[Record]) -> Vec<u64> {
    records.iter().filter(|record| matches!(record.fate, PacketFate::Lost(_))).map(|record| record.number).collect()
}

#[test]
fn the_pattern_of_losses_is_that_of_the_simulators_channel() {
    let gilbert = Errors::Gilbert { stay_good: 0.98, stay_bad: 0.5, hits: Errors::IN_BAD, step: whyloss_sim::Step::Packet };
    let spec = ChannelSpec { errors: gilbert, effect: Effect::Erase };
    let there = hop("emulator>client", 100_000_000, 1, QueueLimit::Unlimited, spec.clone());
    let chains = [vec![clean("server>emulator"), there], vec![clean("client>emulator")]];
    let Some(bed) = Bed::new(chains, 42, Bounds::default()) else { return };
    // At once they would overflow the queue of the device where the emulator does not get the processor.
    bed.send(2000, 100, Duration::from_micros(200));
    let (audit, records) = bed.finish(2000);
    let mut channel = Channel::new(&spec, 42, 0, "link emulator>client").unwrap();
    let mut flips = Vec::new();
    let erased = |_: &u64| channel.pass(100, transport::Instant::ZERO, &mut flips) == whyloss_sim::ChannelOutcome::Erased;
    let expected: Vec<_> = (0..2000).filter(erased).collect();
    assert!(expected.len() > 40);
    assert_eq!(losses(&records), expected);
    assert!(records.iter().all(|record| record.fate.cause().is_none_or(|cause| cause == Cause::Erased)));
    assert_eq!(audit[0].received, 2000);
    let hop = &audit[0].hops[1];
    assert_eq!((hop.delivered, &hop.dropped), (2000 - expected.len() as u64, &vec![("erased", expected.len() as u64)]));
    assert_eq!(hop.expected_error_share.map(|share| (share * 1e6).round()), Some((0.02 / 0.52 * 1e6f64).round()));
    assert_eq!(hop.error_share, expected.len() as f64 / 2000.0);
}

#[test]
fn flipped_bits_arrive_as_the_pattern_says() {
    // Datagrams of 100 octets, 28 of them headers: of every 800 bits those from 320 on lie behind the number in the payload.
    let bits: Vec<u64> = (0..200).map(|packet| packet * 800 + 320 + packet * 2).collect();
    let list: Vec<_> = bits.iter().map(u64::to_string).collect();
    let text =
        format!("whyloss bit-error pattern 1\ntotal_bits 160000\nber 0.01\nseed 1\ncount {}\n{}\n", list.len(), list.join("\n"));
    let pattern = Arc::new(Pattern::parse(text.as_bytes(), "test".as_ref()).unwrap());
    let errors = Errors::Pattern { pattern, at_end: AtEnd::Clean };
    let there = hop("a>b", 100_000_000, 0, QueueLimit::Unlimited, ChannelSpec { errors, effect: Effect::Damage });
    let Some(bed) = Bed::new([vec![there], vec![clean("b>a")]], 1, Bounds::default()) else { return };
    // A receiver of raw packets sees what the transport's checksum would hide.
    let raw = bed.far.run(|| {
        nix::sys::socket::socket(
            nix::sys::socket::AddressFamily::Inet,
            nix::sys::socket::SockType::Raw,
            nix::sys::socket::SockFlag::SOCK_NONBLOCK,
            nix::sys::socket::SockProtocol::Udp,
        )
    });
    let raw = raw.unwrap();
    setsockopt(&raw, sockopt::RcvBufForce, &(16 << 20)).unwrap();
    bed.send(220, 100, Duration::ZERO);
    let (audit, records) = bed.finish(220);
    let mut buffer = [0; 200];
    let mut found = BTreeMap::new();
    while let Ok(length) =
        nix::sys::socket::recv(std::os::fd::AsRawFd::as_raw_fd(&raw), &mut buffer, nix::sys::socket::MsgFlags::empty())
    {
        assert_eq!(length, 100);
        let number = u32::from_be_bytes(buffer[28..32].try_into().unwrap());
        let flipped: Vec<_> = (32 * 8..800).filter(|bit| buffer[bit / 8] & (0x80 >> (bit % 8)) != 0).collect();
        found.insert(number, flipped);
    }
    assert_eq!(found.len(), 220);
    for (number, flipped) in found {
        let expected = if number < 200 { vec![320 + number as usize * 2] } else { vec![] };
        assert_eq!(flipped, expected, "datagram {number}");
    }
    assert_eq!(audit[0].hops[0].damaged, 200);
    for record in &records {
        let expected = if record.number < 200 { PacketFate::Damaged(Cause::PayloadDamaged) } else { PacketFate::Delivered };
        assert_eq!(record.fate, expected, "{record:?}");
        assert_eq!(record.header.dst_port, 4000);
    }
}

#[test]
fn a_queue_drops_what_does_not_fit_and_a_link_takes_its_time() {
    // 1000 octets at 8 Mbit/s take 1 ms.
    let at_once = || {
        let there = hop("a>b", 8_000_000, 30, QueueLimit::Packets(10), ChannelSpec::default());
        let bed = Bed::new([vec![there], vec![clean("b>a")]], 1, Bounds::default())?;
        bed.send(50, 1000, Duration::ZERO);
        Some(bed.finish(50))
    };
    // On a busy machine the sender may be put aside between two packets.
    let together = |records: &[Record]| records.iter().all(|record| record.came.abs_diff(records[0].came) < 2_000_000);
    let Some((mut audit, mut records)) = at_once() else { return };
    for _ in 0..10 {
        if !together(&records) {
            (audit, records) = at_once().expect("there was one before");
        }
    }
    assert!(together(&records), "the sender was put aside each time");
    // One is in transmission, ten wait.
    let lost = losses(&records);
    assert!((35..=39).contains(&lost.len()), "{lost:?}");
    assert_eq!(audit[0].hops[0].dropped, [("queue-full", lost.len() as u64)]);
    assert_eq!(audit[0].hops[0].max_queue_packets, 10);
    let arrived: Vec<_> = records.iter().filter(|record| record.fate == PacketFate::Delivered).collect();
    for (place, record) in arrived.iter().enumerate() {
        assert!(record.left >= record.due);
        let since = record.due - arrived[0].came;
        if place <= 10 {
            assert_eq!(since, (place as u64 + 1) * 1_000_000 + 30_000_000);
        }
    }
    assert!(records.iter().filter(|record| record.fate != PacketFate::Delivered).all(|record| record.found_packets == 10));
}

#[test]
fn queues_mark_what_is_capable() {
    let there = hop("a>b", 8_000_000, 0, QueueLimit::Unlimited, ChannelSpec::default());
    let warn = Discipline::Warn(whyloss_sim::Warn { threshold: 3.0, weight: 1.0 });
    let there = Stretch { spec: LinkSpec { discipline: Some(warn), ..there.spec }, ..there };
    let Some(bed) = Bed::new([vec![there], vec![clean("b>a")]], 1, Bounds::default()) else { return };
    let far = bed.far.run(|| UdpSocket::bind("10.7.0.2:4000")).unwrap();
    setsockopt(&far, sockopt::Ipv4RecvTtl, &false).unwrap();
    let near = bed.near.run(|| UdpSocket::bind("10.7.0.1:4000")).unwrap();
    setsockopt(&near, sockopt::Ipv4Tos, &2).unwrap();
    for _ in 0..20 {
        near.send_to(&[0; 972], "10.7.0.2:4000").unwrap();
    }
    let (audit, records) = bed.finish(20);
    let marked = records.iter().filter(|record| record.marked).count();
    assert!((13..=16).contains(&marked), "{marked}");
    assert_eq!(audit[0].hops[0].marked, marked as u64);
    // With a wrong checksum the kernel would have thrown them away.
    far.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert_eq!(std::iter::from_fn(|| far.recv(&mut [0; 1000]).ok()).count(), 20);
}

#[test]
fn a_policer_drops_real_packets_that_exceed_it() {
    // A token bucket of ten packets that fills by one in a second.
    let there = hop("a>b", 8_000_000, 0, QueueLimit::Unlimited, ChannelSpec::default());
    let policer = Some(Policer { rate: BitRate::from_bps(8000), burst: 10_500 });
    let there = Stretch { spec: LinkSpec { policer, ..there.spec }, ..there };
    let Some(bed) = Bed::new([vec![there], vec![clean("b>a")]], 1, Bounds::default()) else { return };
    let near = bed.near.run(|| UdpSocket::bind("10.7.0.1:4000")).unwrap();
    for _ in 0..30 {
        near.send_to(&[0; 972], "10.7.0.2:4000").unwrap();
    }
    let (audit, records) = bed.finish(30);
    let lost = records.iter().filter(|record| record.fate == PacketFate::Lost(Cause::Policer)).count();
    assert_eq!(records.iter().filter(|record| record.fate == PacketFate::Delivered).count() + lost, 30);
    assert!((18..=20).contains(&lost), "{lost}: all but ten, or a little more if this took its time");
    assert_eq!(audit[0].hops[0].dropped, [("policer", lost as u64)]);
}

#[test]
fn queues_know_the_flows_of_real_packets() {
    // 1000 octets take 1 ms; a hundred of one flow come before ten of another.
    let there = hop("a>b", 8_000_000, 0, QueueLimit::Packets(50), ChannelSpec::default());
    let fair = Discipline::FqCoDel(FqCoDel::default());
    let there = Stretch { spec: LinkSpec { discipline: Some(fair), ..there.spec }, ..there };
    let Some(bed) = Bed::new([vec![there], vec![clean("b>a")]], 1, Bounds::default()) else { return };
    let near = bed.near.run(|| [5001, 5002].map(|port| UdpSocket::bind(("10.7.0.1", port)).unwrap()));
    for (socket, packets) in near.iter().zip([100, 10]) {
        for _ in 0..packets {
            socket.send_to(&[0; 972], "10.7.0.2:4000").unwrap();
        }
    }
    let (audit, records) = bed.finish(110);
    let of = |port| records.iter().filter(move |record| record.header.src_port == port);
    let lost = of(5001).filter(|record| record.fate != PacketFate::Delivered).count();
    // One is in transmission, fifty wait, ten of them the other's; a few may have been sent meanwhile.
    assert!((50..=59).contains(&lost), "{lost}");
    assert_eq!(audit[0].hops[0].dropped, [("queue-full", lost as u64)]);
    assert!(of(5002).all(|record| record.fate == PacketFate::Delivered));
    // In turns: the other's last packet leaves after about twenty, not after fifty.
    let last = of(5002).map(|record| record.due - record.came).max().unwrap();
    assert!(last < 25_000_000, "{last}");
}

#[test]
fn an_emulator_that_is_too_late_says_so() {
    let there = hop("a>b", 100_000_000, 1, QueueLimit::Unlimited, ChannelSpec::default());
    // Nothing is ever on time to the nanosecond.
    let strict = Bounds { p99_error: 100, ..Bounds::default() };
    let Some(bed) = Bed::new([vec![there], vec![clean("b>a")]], 1, strict) else { return };
    bed.send(200, 1000, Duration::from_micros(200));
    let (audit, _) = bed.finish(200);
    assert!(!audit[0].is_valid());
    assert!(audit[0].flaws[0].starts_with("a>b: 1 % of the packets were handed on more than "), "{:?}", audit[0].flaws);
    assert_eq!(audit[0].error.histogram.iter().map(|bar| bar.packets).sum::<u64>(), 200);
    println!("{:#?}", audit[0]);
}

#[test]
fn links_that_vary_deliver_twice_and_by_opportunity() {
    let plain = hop("a>b", 8_000_000, 1, QueueLimit::Unlimited, ChannelSpec::default());
    // An opportunity every 2 ms for 1504 octets, whatever the rate says.
    let trace = Arc::new(Trace::parse("2\n".as_bytes(), "test".as_ref()).unwrap());
    let spec = LinkSpec { duplicate: 1.0, rate: BitRate::from_bps(0), trace: Some(trace), ..plain.spec };
    let there = Stretch { spec, ..plain };
    let Some(bed) = Bed::new([vec![there], vec![clean("b>a")]], 1, Bounds::default()) else { return };
    let far = bed.send(20, 1000, Duration::ZERO);
    far.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let arrived = std::iter::from_fn(|| far.recv(&mut [0; 1000]).ok()).count();
    let (audit, records) = bed.finish(40);
    assert_eq!((arrived, audit[0].sent, audit[0].hops[0].duplicated), (40, 40, 20));
    assert_eq!((audit[0].rate_bps, audit[0].achieved_bps), (None, None));
    assert_eq!(records.iter().filter(|record| record.copy).count(), 20);
    let span = records.iter().map(|record| record.due).max().unwrap() - records[0].came;
    // 20 packets of 1000 octets are 13.3 opportunities.
    assert!((26_000_000..32_000_000).contains(&span), "{span}");
}

/// Nanoseconds for which the threads of this process with a name have had a processor.
fn processor_time(name: &str) -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| task.path());
    let of_these = tasks.filter(|task| std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name));
    let spent = of_these.filter_map(|task| std::fs::read_to_string(task.join("schedstat")).ok());
    spent.filter_map(|text| text.split(' ').next()?.parse::<u64>().ok()).sum()
}

/// A measurement, to be compared between two versions on one machine: what a packet costs its direction's thread, and how late packets are.
/// `cargo test -p whyloss-net --test emulator -- --ignored --nocapture what_a_packet_costs`
#[test]
#[ignore = "a measurement"]
fn what_a_packet_costs() {
    for (what, count, pause) in [("at once", 100_000, Duration::ZERO), ("every 100 µs", 20_000, Duration::from_micros(100))] {
        for _ in 0..5 {
            let there = hop("emulator>client", 1_000_000_000, 1, QueueLimit::Unlimited, ChannelSpec::default());
            let chains = [vec![clean("server>emulator"), there], vec![clean("client>emulator")]];
            let Some(bed) = Bed::new(chains, 1, Bounds { p99_error: u64::MAX, ..Bounds::default() }) else { return };
            let before = processor_time("link 0");
            bed.send(count, 100, pause);
            while bed.emulator.audit()[0].sent < bed.emulator.audit()[0].received {
                std::thread::sleep(Duration::from_millis(5));
            }
            let spent = processor_time("link 0") - before;
            let audit = bed.emulator.stop().unwrap();
            let Audit { received, error, .. } = &audit[0];
            println!(
                "{what}: {} ns a packet, error {:.1} µs p50, {:.1} µs p99 of {received}",
                spent / received,
                error.p50_us,
                error.p99_us
            );
        }
    }
}
