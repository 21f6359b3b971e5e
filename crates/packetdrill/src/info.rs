//! `struct tcp_info` as Linux 6.x lays it out.

use crate::limits::Limits;
use std::mem::{offset_of, size_of};
use whyloss_transport::tcp::{Repair, State};
use whyloss_transport::{Endpoint, Instant};

/// The fields of Linux's `struct tcp_info` as of 6.18, under their names there without `tcpi_`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct TcpInfo {
    pub state: u8,
    pub ca_state: u8,
    pub retransmits: u8,
    pub probes: u8,
    pub backoff: u8,
    pub options: u8,
    /// `snd_wscale` in the low four bits, `rcv_wscale` in the high ones.
    pub wscales: u8,
    pub app_limited: u8,
    pub rto: u32,
    pub ato: u32,
    pub snd_mss: u32,
    pub rcv_mss: u32,
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    pub fackets: u32,
    pub last_data_sent: u32,
    pub last_ack_sent: u32,
    pub last_data_recv: u32,
    pub last_ack_recv: u32,
    pub pmtu: u32,
    pub rcv_ssthresh: u32,
    pub rtt: u32,
    pub rttvar: u32,
    pub snd_ssthresh: u32,
    pub snd_cwnd: u32,
    pub advmss: u32,
    pub reordering: u32,
    pub rcv_rtt: u32,
    pub rcv_space: u32,
    pub total_retrans: u32,
    pub pacing_rate: u64,
    pub max_pacing_rate: u64,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub segs_out: u32,
    pub segs_in: u32,
    pub notsent_bytes: u32,
    pub min_rtt: u32,
    pub data_segs_in: u32,
    pub data_segs_out: u32,
    pub delivery_rate: u64,
    pub busy_time: u64,
    pub rwnd_limited: u64,
    pub sndbuf_limited: u64,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub dsack_dups: u32,
    pub reord_seen: u32,
    pub rcv_ooopack: u32,
    pub snd_wnd: u32,
    pub rcv_wnd: u32,
    pub rehash: u32,
    pub total_rto: u16,
    pub total_rto_recoveries: u16,
    pub total_rto_time: u32,
    /// What concerns accurate ECN.
    pub accurate_ecn: [u32; 8],
}

/// The most that Linux takes segments to be overtaken by (`tcp_max_reordering`).
const MAX_REORDERING: u64 = 300;

/// What a threshold that is not limited reads as.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// What the engine says of a connection. What it does not keep (`ato`, most times of the last segments, pacing) is 0.
pub fn of(endpoint: &Endpoint, limits: &Limits, now: Instant) -> TcpInfo {
    let (path, stats, config) = (endpoint.path(), endpoint.stats(), endpoint.config());
    let outstanding = endpoint.outstanding();
    let (timestamps, sack, ecn) = endpoint.agreed();
    let syn_data = endpoint.opened_with_data();
    let scales = endpoint.window_scales();
    let mss = path.mss.max(1);
    let segments = |octets: u64| u32::try_from(octets / u64::from(mss)).unwrap_or(u32::MAX);
    let micros = |span: whyloss_transport::Duration| (span.as_nanos() / 1000) as u32;
    let ssthresh = segments(endpoint.window().ssthresh());
    TcpInfo {
        state: state(endpoint.state()),
        ca_state: match outstanding.repair {
            Repair::Fast => 3,
            Repair::AfterTimeout => 4,
            Repair::None if outstanding.sacked > 0 => 1,
            Repair::None => 0,
        },
        options: u8::from(timestamps)
            | u8::from(sack) << 1
            | u8::from(scales.is_some()) << 2
            | u8::from(ecn) << 3
            | u8::from(syn_data) << 5,
        wscales: scales.map_or(0, |(ours, theirs)| theirs & 15 | ours << 4),
        rto: micros(path.rto),
        snd_mss: path.mss,
        rcv_mss: u32::from(config.mss),
        unacked: outstanding.segments,
        sacked: outstanding.sacked,
        lost: outstanding.lost,
        retrans: outstanding.retransmitted,
        pmtu: u32::from(config.mss) + 20 + u32::from(config.ip_header),
        rtt: path.srtt.map_or(0, micros),
        rttvar: micros(path.rttvar),
        snd_ssthresh: if ssthresh >= INFINITE_SSTHRESH / mss { INFINITE_SSTHRESH } else { ssthresh },
        snd_cwnd: segments(endpoint.window().cwnd()),
        advmss: u32::from(config.mss),
        reordering: config.dup_threshold.max(endpoint.reordering_extent().div_ceil(u64::from(mss)).min(MAX_REORDERING) as u32),
        total_retrans: stats.retransmissions as u32,
        bytes_acked: endpoint.octets_acknowledged(),
        bytes_received: stats.octets_delivered,
        segs_out: stats.segments_sent as u32,
        segs_in: stats.segments_received as u32,
        notsent_bytes: endpoint.unsent() as u32,
        min_rtt: path.min_rtt.map_or(u32::MAX, micros),
        data_segs_out: stats.data_segments_sent as u32,
        // The SYN counts once it is acknowledged.
        delivered: stats.segments_delivered as u32 + u32::from(!matches!(endpoint.state(), State::SynSent | State::SynReceived)),
        last_data_recv: (now.since(limits.last_data).as_nanos() / 1_000_000) as u32,
        busy_time: limits.busy.as_nanos() / 1000,
        rwnd_limited: limits.window.as_nanos() / 1000,
        sndbuf_limited: limits.buffer.as_nanos() / 1000,
        bytes_sent: stats.data_octets_sent,
        bytes_retrans: stats.retransmitted_octets,
        total_rto: stats.timeouts as u16,
        ..TcpInfo::default()
    }
}

/// Linux's number of a state.
const fn state(state: State) -> u8 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Listen => 10,
        State::Closing => 11,
    }
}

// Where linux/tcp.h has them.
const _: () = {
    assert!(offset_of!(TcpInfo, rto) == 8);
    assert!(offset_of!(TcpInfo, snd_cwnd) == 80);
    assert!(offset_of!(TcpInfo, total_retrans) == 100);
    assert!(offset_of!(TcpInfo, pacing_rate) == 104);
    assert!(offset_of!(TcpInfo, bytes_acked) == 120);
    assert!(offset_of!(TcpInfo, delivery_rate) == 160);
    assert!(offset_of!(TcpInfo, bytes_sent) == 200);
    assert!(size_of::<TcpInfo>() == 280);
};
