//! Packet captures: what is seen where and when, and what is said of it.

use crate::shared::Shared;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::ops::ControlFlow;
use std::process::Command;
use whyloss_sim::{
    Amount, Builder, CaptureSpec, Cause, ChannelSpec, Effect, End, Errors, Jitter, JitterLaw, Limits, LinkId, LinkSpec, LogSpec,
    NodeId, QueueLimit, Records, TcpFlow, Truth, Way,
};
use whyloss_transport::scheme::Selection;
use whyloss_transport::tcp::Config;
use whyloss_transport::{BitRate, Duration, Instant};

/// A record of a capture.
#[derive(Clone, Debug)]
struct Row {
    at: u64,
    inbound: bool,
    octets: Vec<u8>,
    original_len: u32,
    comment: String,
}

impl Row {
    /// Whether the host `a` sent it, whose address ends in 1.
    fn is_of_sender(&self) -> bool {
        self.octets[15] == 1
    }

    fn says(&self, clause: &str) -> bool {
        self.comment.split("; ").any(|said| said.starts_with(clause))
    }
}

impl Shared {
    /// Its records, and packets passed and missed at each interface.
    fn read(&self) -> (Vec<Row>, Vec<(u64, u64)>) {
        let octets = self.0.lock().unwrap().clone();
        let mut reader = PcapNgReader::new(&octets[..]).unwrap();
        let (mut rows, mut counts) = (Vec::new(), Vec::new());
        while let Some(block) = reader.next_block() {
            match block.unwrap().into_owned() {
                Block::EnhancedPacket(packet) => {
                    let mut row = Row {
                        at: packet.timestamp.as_nanos() as u64,
                        inbound: false,
                        octets: packet.data.into_owned(),
                        original_len: packet.original_len,
                        comment: String::new(),
                    };
                    for option in packet.options {
                        match option {
                            EnhancedPacketOption::Comment(text) => row.comment = text.into_owned(),
                            EnhancedPacketOption::Flags(flags) => row.inbound = flags & 3 == 1,
                            _ => {}
                        }
                    }
                    rows.push(row);
                }
                Block::InterfaceStatistics(statistics) => {
                    let [InterfaceStatisticsOption::IsbIfRecv(passed), InterfaceStatisticsOption::IsbIfDrop(missed)] =
                        statistics.options[..]
                    else {
                        panic!("{statistics:?}")
                    };
                    counts.push((passed, missed));
                }
                _ => {}
            }
        }
        (rows, counts)
    }
}

fn link(bps: u64, queue: u32, errors: Errors, effect: Effect) -> LinkSpec {
    let (rate, delay) = (BitRate::from_bps(bps), Duration::from_millis(10));
    LinkSpec { rate, delay, queue: QueueLimit::Packets(queue), channel: ChannelSpec { errors, effect }, ..LinkSpec::default() }
}

/// Host `a`, router `r`, host `b`, and a transfer of a megabyte; the link from the router to the receiver is slow and has this channel.
fn world(last: LinkSpec, scheme: &str) -> (Builder, [NodeId; 3]) {
    let mut builder = Builder::new(1, 0);
    let nodes = [builder.host("a"), builder.router("r"), builder.host("b")];
    let [a, r, b] = nodes;
    let fast = || link(100_000_000, 1000, Errors::None, Effect::Erase);
    builder.link(a, r, fast(), fast());
    builder.link(r, b, last, link(2_000_000, 20, Errors::None, Effect::Erase));
    let end = || {
        let mut config = Config::modern();
        let parts = Selection::scheme(scheme).build(&mut config).unwrap();
        End::new(config, parts)
    };
    let (name, start, amount) = (scheme.to_owned(), Instant::ZERO, Amount::Octets(1_000_000));
    builder.tcp(TcpFlow { name, from: a, to: b, start, amount, sender: end(), receiver: end() });
    builder.log_packets(LogSpec { from: Instant::ZERO, until: Instant::MAX, at_most: 1_000_000 });
    (builder, nodes)
}

fn spec(node: NodeId, out: &Shared) -> CaptureSpec {
    CaptureSpec {
        name: "test".to_owned(),
        node,
        link: None,
        behind_queue: false,
        snaplen: 0,
        digits: 9,
        holes: 0.0,
        out: Box::new(out.clone()),
    }
}

fn run(builder: Builder) -> Records {
    let limits = Limits { until: Some(Instant::from_nanos(600_000_000_000)) };
    let mut simulation = builder.build().unwrap();
    simulation.run(&limits, |_| ControlFlow::Continue(())).unwrap();
    simulation.into_records()
}

/// The captures at the sender, the router and the receiver of a world.
fn everywhere(last: LinkSpec, scheme: &str) -> ([Vec<Row>; 3], Records) {
    let (mut builder, nodes) = world(last, scheme);
    let files = nodes.map(|_| Shared::default());
    nodes.iter().zip(&files).for_each(|(node, file)| builder.capture(spec(*node, file)));
    let records = run(builder);
    (files.map(|file| file.read().0), records)
}

#[test]
fn a_place_sees_what_passes_there_when_it_passes() {
    let (captures, records) = everywhere(link(2_000_000, 8, Errors::Bits { ber: 2e-6 }, Effect::Damage), "sack");
    let [at_sender, at_router, at_receiver] = &captures;
    for capture in &captures {
        assert!(capture.windows(2).all(|pair| pair[0].at <= pair[1].at), "in the order of time");
    }
    let of = |capture: &[Row], sent: bool| capture.iter().filter(|row| row.is_of_sender() == sent).count() as u64;
    let flow = &records.flows[0];
    assert_eq!(of(at_sender, true), flow.forward.sent, "lost ones, too");
    assert_eq!(of(at_sender, false), flow.reverse.delivered);
    assert!(at_sender.iter().all(|row| row.inbound != row.is_of_sender()));
    let [to_router, _, to_receiver, from_receiver] = &records.links[..] else { panic!("two links") };
    assert_eq!((of(at_router, true), of(at_router, false)), (to_router.delivered, from_receiver.delivered));
    assert!(at_router.iter().all(|row| row.inbound));
    // What the queue of the last link refuses never comes to the receiver; what its channel damages does, damaged.
    let (full, damaged) = (to_receiver.dropped.get(Cause::QueueFull), to_receiver.damaged);
    assert!(full > 0 && damaged > 10, "{full} {damaged}");
    assert_eq!(of(at_receiver, true), to_router.delivered - full - to_receiver.in_flight);
    assert_eq!(at_receiver.iter().filter(|row| row.says("damaged by r>b:")).count() as u64, damaged);
    assert!(at_sender.iter().chain(at_router).all(|row| !row.says("damaged")), "not yet");
    // The first packet: 60 octets at 100 Mbit/s and 10 ms; at 2 Mbit/s and 10 ms.
    assert_eq!([&captures[0], &captures[1], &captures[2]].map(|capture| capture[0].at), [0, 10_004_800, 20_244_800]);
}

#[test]
fn a_packet_has_one_fate_wherever_it_is_seen() {
    let (captures, records) = everywhere(link(2_000_000, 8, Errors::Bits { ber: 2e-6 }, Effect::Damage), "sack");
    let fate = |row: &Row| row.comment.split("; ").next().unwrap().to_owned();
    let expected = records.log.iter().filter(|row| row.way == Way::Forward).map(|row| {
        let at = |at: Option<Instant>| {
            format!("at {}.{:09} s", at.unwrap().as_nanos() / 1_000_000_000, at.unwrap().as_nanos() % 1_000_000_000)
        };
        match row.truth {
            Truth::Lost(cause) => format!("lost {} on r>b: {}", at(row.ended), cause.name()),
            Truth::Arrived => format!("delivered {}", at(row.ended)),
            Truth::InFlight => "under way at the end".to_owned(),
            Truth::Suppressed => unreachable!(),
        }
    });
    let expected: Vec<_> = expected.collect();
    let of_sender = |capture: &[Row]| capture.iter().filter(|row| row.is_of_sender()).map(fate).collect::<Vec<_>>();
    assert_eq!(of_sender(&captures[0]), expected);
    // The first link is perfect.
    let at_router = of_sender(&captures[1]);
    assert_eq!(at_router[..], expected[..at_router.len()]);
    assert!(expected.iter().any(|fate| fate.ends_with("queue-full")) && expected.iter().any(|fate| fate.ends_with("damaged")));
    let reach: Vec<_> = expected.into_iter().filter(|fate| !fate.ends_with("queue-full")).collect();
    let at_receiver = of_sender(&captures[2]);
    assert_eq!(at_receiver[..], reach[..at_receiver.len()]);
}

#[test]
fn retransmissions_are_told_with_what_they_were_due_to_and_whether_they_were_needed() {
    // Delays that now and then exceed the timeout, and losses.
    let jitter = Some(Jitter::new(Duration::from_millis(60), JitterLaw::Exponential));
    let last = LinkSpec { jitter, ..link(2_000_000, 20, Errors::Packets { probability: 0.02 }, Effect::Erase) };
    let (captures, records) = everywhere(last, "sack");
    let sent: Vec<_> = captures[0].iter().filter(|row| row.is_of_sender()).collect();
    let again: Vec<_> = sent.iter().filter(|row| row.says("retransmission: ")).collect();
    let stats = records.flows[0].sender.unwrap();
    assert_eq!(again.len() as u64, stats.retransmissions);
    let count = |said: &str| again.iter().filter(|row| row.says(&format!("retransmission: {said}"))).count() as u64;
    assert_eq!(count("timeout") + count("backed-off-timeout"), stats.timeouts);
    assert_eq!(count("fast"), stats.fast_retransmits);
    let unneeded = again.iter().filter(|row| row.comment.contains(", not needed")).count();
    let needed = again.iter().filter(|row| row.comment.contains(", needed")).count();
    assert!(unneeded > 0 && needed > 0 && unneeded + needed == again.len(), "{unneeded} {needed} {}", again.len());
    // The receiver got twice what was not needed and arrived.
    let twice = again.iter().filter(|row| row.says("delivered") && row.comment.contains(", not needed")).count() as u64;
    assert_eq!(twice, records.flows[0].receiver.unwrap().duplicates_received);
}

#[test]
fn a_link_of_a_router_is_seen_in_both_directions() {
    let (mut builder, [_, r, _]) = world(link(2_000_000, 20, Errors::None, Effect::Erase), "sack");
    let file = Shared::default();
    builder.capture(CaptureSpec { link: Some(LinkId::new(1)), ..spec(r, &file) });
    let records = run(builder);
    let (rows, _) = file.read();
    let [_, _, there, back] = &records.links[..] else { panic!("two links") };
    let inbound = |inbound: bool| rows.iter().filter(|row| row.inbound == inbound).count() as u64;
    assert_eq!((inbound(false), inbound(true)), (there.offered, back.delivered));
    assert!(rows.iter().any(|row| row.says("lost") && row.comment.ends_with("r>b: queue-full")), "before the queue");
}

#[test]
fn a_capture_cuts_rounds_and_misses() {
    let (mut builder, [a, ..]) = world(link(2_000_000, 20, Errors::None, Effect::Erase), "sack");
    let (whole, thin) = (Shared::default(), Shared::default());
    builder.capture(spec(a, &whole));
    builder.capture(CaptureSpec { snaplen: 96, digits: 6, holes: 0.1, ..spec(a, &thin) });
    run(builder);
    let ((whole, all), (thin, counts)) = (whole.read(), thin.read());
    assert_eq!(all, [(whole.len() as u64, 0)]);
    let (passed, missed) = counts[0];
    assert_eq!((passed, passed - missed), (whole.len() as u64, thin.len() as u64));
    // Standard deviation 1 %.
    assert!((missed as f64 / passed as f64 - 0.1).abs() < 0.04, "{missed} of {passed}");
    let mut rest = whole.iter();
    for row in &thin {
        let same =
            |other: &&Row| other.at / 1000 == row.at && other.octets.starts_with(&row.octets) && other.comment == row.comment;
        assert!(rest.any(|other| same(&other)), "{row:?}");
        assert_eq!(row.octets.len(), (row.original_len as usize).min(96));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |change: fn(CaptureSpec, [NodeId; 3]) -> CaptureSpec| {
        let (mut builder, nodes) = world(link(2_000_000, 20, Errors::None, Effect::Erase), "sack");
        builder.capture(change(spec(nodes[0], &Shared::default()), nodes));
        builder.build().unwrap_err().to_string()
    };
    let share = "capture test: holes is 1; allowed is a share from 0 to less than 1";
    assert_eq!(refused(|spec, _| CaptureSpec { holes: 1.0, ..spec }), share);
    assert_eq!(
        refused(|spec, _| CaptureSpec { digits: 10, ..spec }),
        "capture test: digits is 10; allowed is at most 9: nanoseconds"
    );
    let link = "capture test: link is none; allowed is a link of the node at which it is taken";
    assert_eq!(refused(|spec, _| CaptureSpec { link: Some(LinkId::new(1)), ..spec }), link);
}

#[test]
fn wireshark_reads_what_is_captured() {
    let (mut builder, [_, _, b]) = world(link(2_000_000, 20, Errors::Bits { ber: 3e-6 }, Effect::Damage), "newreno");
    let file = Shared::default();
    builder.capture(spec(b, &file));
    let records = run(builder);
    let path = std::env::temp_dir().join(format!("whyloss-capture-{}.pcapng", std::process::id()));
    std::fs::write(&path, &*file.0.lock().unwrap()).unwrap();
    let fields = ["frame.interface_name", "frame.time_epoch", "frame.comment", "tcp.checksum.status", "ip.checksum.status"];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&path).args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-T", "fields"]);
    tshark.args(fields.iter().flat_map(|field| ["-e", field]));
    let output = match tshark.output() {
        Ok(output) => output,
        Err(error) => return eprintln!("skipped: tshark cannot be run ({error})"),
    };
    std::fs::remove_file(&path).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len() as u64, records.links[2].delivered + records.links[3].offered);
    assert!(rows.iter().all(|row| row[0] == "b>r"));
    // Wireshark finds a broken checksum (status 0) exactly where the channel has left one.
    let damaged = rows.iter().filter(|row| row[2].contains("damaged by r>b"));
    assert_eq!(damaged.count() as u64, records.links[2].damaged);
    for row in &rows {
        let broken = row[3] == "0" || row[4] == "0";
        assert_eq!(broken, row[2].contains("damaged by r>b"), "{row:?}");
    }
    assert_eq!(rows[0][1].split_once('.').map(|(_, fraction)| fraction.len()), Some(9), "nanoseconds");
}

/// A host whose own link is slow, captured in front of its queue and behind, and what came to the router.
fn around_the_queue(first: LinkSpec) -> [Vec<Row>; 3] {
    let mut builder = Builder::new(1, 0);
    let [a, r, b] = [builder.host("a"), builder.router("r"), builder.host("b")];
    let plain = |bps| link(bps, 1000, Errors::None, Effect::Erase);
    builder.link(a, r, first, plain(100_000_000));
    builder.link(r, b, plain(100_000_000), plain(100_000_000));
    let end = || {
        let mut config = Config::modern();
        let parts = Selection::scheme("sack").build(&mut config).unwrap();
        End::new(config, parts)
    };
    let (name, start, amount) = ("main".to_owned(), Instant::ZERO, Amount::Octets(1_000_000));
    builder.tcp(TcpFlow { name, from: a, to: b, start, amount, sender: end(), receiver: end() });
    let files = [Shared::default(), Shared::default(), Shared::default()];
    builder.capture(spec(a, &files[0]));
    builder.capture(CaptureSpec { behind_queue: true, ..spec(a, &files[1]) });
    builder.capture(spec(r, &files[2]));
    run(builder);
    files.map(|file| file.read().0)
}

#[test]
fn behind_its_queue_a_host_shows_what_was_transmitted_and_when() {
    let bps = 5_000_000;
    let plain = link(bps, 12, Errors::None, Effect::Erase);
    let jitter = Some(Jitter::new(Duration::from_millis(2), JitterLaw::Uniform));
    for first in [plain.clone(), LinkSpec { jitter, ..plain }] {
        let varies = first.jitter.is_some();
        let [front, behind, router] = around_the_queue(first);
        let sent = |rows: &[Row]| -> Vec<Row> { rows.iter().filter(|row| row.is_of_sender()).cloned().collect() };
        let others = |rows: &[Row]| rows.iter().filter(|row| !row.is_of_sender()).count();
        assert_eq!(others(&front), others(&behind), "what comes in is the same");
        assert!(behind.windows(2).all(|pair| pair[0].at <= pair[1].at), "in the order of time");
        let (front, behind, router) = (sent(&front), sent(&behind), sent(&router));
        // The queue refuses some: these are in front of it only, and the truth in the comments is the same for all others.
        let is_refused = |row: &Row| row.comment.split(';').next().is_some_and(|fate| fate.ends_with("queue-full"));
        let refused = front.iter().filter(|row| is_refused(row)).count();
        assert!(refused > 3 && behind.len() == front.len() - refused, "{refused} of {}, {} behind", front.len(), behind.len());
        assert!(!behind.iter().any(is_refused));
        let passed: Vec<&Row> = front.iter().filter(|row| !is_refused(row)).collect();
        assert!(passed.iter().zip(&behind).all(|(a, b)| a.octets == b.octets && a.comment == b.comment && a.at <= b.at));
        assert!(passed.iter().zip(&behind).any(|(a, b)| b.at - a.at > 5_000_000), "some wait");
        // One begins when the one before it has been transmitted.
        let span = |row: &Row| u64::from(row.original_len) * 8 * 1_000_000_000 / bps;
        assert!(behind.windows(2).all(|pair| pair[1].at + 1 >= pair[0].at + span(&pair[0])));
        if !varies {
            // The link takes 10 ms.
            assert!(behind.iter().zip(&router).all(|(a, b)| b.at.abs_diff(a.at + span(a) + 10_000_000) <= 1));
        }
    }
}

#[test]
fn a_queue_that_cannot_be_looked_behind_is_named() {
    let refused = |change: &dyn Fn(CaptureSpec, [NodeId; 3]) -> CaptureSpec, at: usize| {
        let (mut builder, nodes) = world(link(2_000_000, 20, Errors::None, Effect::Erase), "sack");
        builder.capture(change(spec(nodes[at], &Shared::default()), nodes));
        builder.build().err().map(|error| error.to_string())
    };
    let behind = |spec: CaptureSpec, _: [NodeId; 3]| CaptureSpec { behind_queue: true, ..spec };
    assert_eq!(refused(&behind, 0), None);
    let error = refused(&behind, 1).unwrap();
    assert!(error.contains("behind_queue") && error.contains("a host"), "{error}");
}
