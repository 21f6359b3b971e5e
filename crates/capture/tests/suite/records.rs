//! Captures taken apart and put together again: the same packets in another file.

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::interface_statistics::{InterfaceStatisticsBlock, InterfaceStatisticsOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, TsResolution};
use std::borrow::Cow;
use std::io::Cursor;
use std::ops::ControlFlow;
use std::time::Duration;
use whyloss_capture::analysis::{analyse, Settings};
use whyloss_capture::records;
use whyloss_capture::report::Analysis;
use whyloss_capture::score::{score, Score};
use whyloss_capture::source::Source;

/// Raw IP packets.
pub const RAW: u32 = 101;

/// A packet as it was captured.
#[derive(Clone, Debug)]
pub struct Packet {
    /// When, in nanoseconds.
    pub at: u64,
    pub octets: Vec<u8>,
    pub original_len: u32,
    pub comment: Option<String>,
}

pub fn source(capture: &[u8]) -> Source {
    Source::new("capture".to_owned(), Box::new(Cursor::new(capture.to_vec()))).unwrap()
}

/// What the analysis says, and how that compares with the comments.
pub fn explain(capture: &[u8]) -> (Analysis, Score) {
    let settings = Settings { workers: 1, ..Settings::default() };
    let analysis = analyse(vec![source(capture)], &settings, &mut |_| ControlFlow::Continue(())).unwrap();
    let score = score(vec![source(capture)], &analysis, &mut |_| ControlFlow::Continue(())).unwrap();
    (analysis, score)
}

pub fn packets(capture: &[u8]) -> Vec<Packet> {
    let mut all = Vec::new();
    let about = records::read(source(capture), &mut |record| {
        let comment = record.comment.map(str::to_owned);
        let (at, octets, original_len) = (record.at.as_nanos(), record.octets.to_vec(), record.original_len);
        all.push(Packet { at, octets, original_len, comment });
        ControlFlow::Continue(())
    });
    assert_eq!(about.unwrap().remarks, []);
    all
}

/// A file in the format of libpcap, which has no comments, with times in nanoseconds.
pub fn pcap(packets: &[Packet], link: u32, endianness: Endianness) -> Vec<u8> {
    let (ts_resolution, datalink) = (TsResolution::NanoSecond, DataLink::from(link));
    let header = PcapHeader { endianness, ts_resolution, datalink, snaplen: 262_144, ..PcapHeader::default() };
    let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
    for packet in packets {
        let time = Duration::from_nanos(packet.at);
        writer.write_packet(&PcapPacket::new(time, packet.original_len, &packet.octets)).unwrap();
    }
    writer.into_writer()
}

/// A file in the format pcapng, with comments; its counters say that `missed` packets are not in it.
pub fn pcapng(packets: &[Packet], link: u32, endianness: Endianness, missed: Option<u64>) -> Vec<u8> {
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), endianness).unwrap();
    let options = vec![InterfaceDescriptionOption::IfTsResol(9)];
    let interface = InterfaceDescriptionBlock { linktype: DataLink::from(link), snaplen: 0, options };
    writer.write_block(&interface.into_block()).unwrap();
    for packet in packets {
        let comment = packet.comment.as_deref().map(|text| EnhancedPacketOption::Comment(Cow::Borrowed(text)));
        let block = EnhancedPacketBlock {
            interface_id: 0,
            // The writer takes its nanoseconds for units.
            timestamp: Duration::from_nanos(packet.at),
            original_len: packet.original_len,
            data: Cow::Borrowed(&packet.octets),
            options: comment.into_iter().collect(),
        };
        writer.write_block(&block.into_block()).unwrap();
    }
    if let Some(missed) = missed {
        let options = vec![InterfaceStatisticsOption::IsbIfDrop(missed)];
        let block = InterfaceStatisticsBlock { interface_id: 0, timestamp: 0, options };
        writer.write_block(&block.into_block()).unwrap();
    }
    writer.into_inner()
}
