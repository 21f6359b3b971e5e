//! What the controls have counted, for each of them and for each connection.

use crate::installed::Installed;
use crate::object::{said, Loaded, Options};
use crate::place::Place;
use crate::sockets::Sockets;
use crate::Result;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// The counters, in their order in the kernel: name, and what it counts.
pub const COUNTERS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/counters.rs"));

/// What is counted of the receivers' reports on the whole machine, in its order in the kernel: name, and what it counts.
pub const REPORTS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/reports.rs"));

/// Counts by the names in [`COUNTERS`] or [`REPORTS`].
pub type Counts = BTreeMap<&'static str, u64>;

/// What is counted now.
#[derive(Debug, Clone, Serialize)]
pub struct Stat {
    /// By the control's name in the kernel, since it was loaded.
    pub controls: BTreeMap<String, Counts>,
    /// The connections that have one of the controls now, of all network namespaces.
    pub connections: Vec<Connection>,
    /// Of reports on the whole machine; empty where no control that takes reports is loaded.
    pub reports: Counts,
}

/// A connection that has one of our controls.
#[derive(Debug, Clone, Serialize)]
pub struct Connection {
    /// The kernel's number for the socket; never used twice.
    pub cookie: u64,
    /// The control's name in the kernel.
    pub control: String,
    /// Address and port of this end.
    pub local: SocketAddr,
    /// Address and port of the peer.
    pub remote: SocketAddr,
    /// The number of the network namespace, as `/proc/PID/ns/net` shows it.
    pub network_namespace: u32,
    /// How long it has had the control, in nanoseconds.
    pub age_ns: u64,
    /// Octets that the other end has acknowledged.
    pub acked_bytes: u64,
    /// Octets of data sent again.
    pub retransmitted_bytes: u64,
    /// The congestion window, in segments.
    pub cwnd_segments: u32,
    /// The slow start threshold, in segments; `None` before the first loss.
    pub ssthresh_segments: Option<u32>,
    /// The smoothed round-trip time, in microseconds.
    pub srtt_us: u32,
    /// The octets of data in a full segment.
    pub mss_bytes: u32,
    /// By the names in [`COUNTERS`], since the connection took the control.
    pub counts: Counts,
}

/// What `tcp_sock` has for no threshold (`TCP_INFINITE_SSTHRESH`).
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// Reads all counters of the place.
pub fn stat(place: &Place) -> Result<Stat> {
    let installed = Installed::own(place)?;
    let maps = installed.root.join("maps");
    Ok(Stat { controls: controls(&maps)?, connections: connections(&installed)?, reports: reports(&maps)? })
}

fn controls(maps: &Path) -> Result<BTreeMap<String, Counts>> {
    let mut found = BTreeMap::new();
    let path = maps.join("wl_controls");
    if !path.exists() {
        return Ok(found);
    }
    let map = said("reading counters", || MapHandle::from_pinned_path(&path))?;
    for key in map.keys() {
        let Some(rows) = said("reading counters", || map.lookup_percpu(&key, MapFlags::ANY))? else { continue };
        let sum = |index: usize| rows.iter().map(|row| row.get(8 * index..).and_then(Fields::first_u64).unwrap_or(0)).sum();
        let counts = COUNTERS.iter().enumerate().map(|(index, &(name, _))| (name, sum(index))).collect();
        found.insert(text(&key), counts);
    }
    Ok(found)
}

fn reports(maps: &Path) -> Result<Counts> {
    let mut counts = Counts::new();
    let path = maps.join("wl_reports");
    if !path.exists() {
        return Ok(counts);
    }
    let map = said("reading counters", || MapHandle::from_pinned_path(&path))?;
    for (index, (name, _)) in REPORTS.iter().enumerate() {
        let rows = said("reading counters", || map.lookup_percpu(&(index as u32).to_ne_bytes(), MapFlags::ANY))?;
        counts.insert(name, rows.iter().flatten().filter_map(|row| Fields::first_u64(row)).sum());
    }
    Ok(counts)
}

/// The open connections that have one of the controls that are loaded.
pub(crate) fn connections(installed: &Installed) -> Result<Vec<Connection>> {
    let maps = installed.root.join("maps");
    if !maps.join("wl_connections").exists() {
        return Ok(Vec::new());
    }
    Listing::of(&maps)?.read()
}

/// What lists the connections that have one of our controls now, as often as it is asked.
#[derive(Debug)]
pub(crate) struct Listing {
    sockets: Sockets,
    _loaded: Loaded,
}

impl Listing {
    /// Of the controls whose maps are in the folder `maps` of a BPF file system.
    pub fn of(maps: &Path) -> Result<Self> {
        let loaded = Loaded::new("stat", &Options { maps: Some(maps.to_owned()), ..Options::default() })?;
        Ok(Self { sockets: Sockets::of(&loaded)?, _loaded: loaded })
    }

    /// The connections, by control and ends.
    pub fn read(&mut self) -> Result<Vec<Connection>> {
        let octets = [self.sockets.of_namespaces()?, self.sockets.of_files()?];
        let rows = octets.iter().flat_map(|octets| octets.chunks_exact(ROW_SIZE));
        // The sockets of a process are in both, and a row is written again where the kernel's buffer was full.
        let by_cookie: BTreeMap<_, _> = rows.filter_map(|row| row_of(Fields(row))).map(|row| (row.cookie, row)).collect();
        let mut rows: Vec<_> = by_cookie.into_values().collect();
        rows.sort_by(|one, other| (&one.control, one.local, one.remote).cmp(&(&other.control, other.local, other.remote)));
        Ok(rows)
    }
}

/// The octets of `struct wl_row`: four of eight, five of four, two of two, two addresses, a name, the counters; then up to eight.
const ROW_SIZE: usize = (4 * 8 + 5 * 4 + 2 * 2 + 2 * 16 + 16 + 4 * COUNTERS.len()).next_multiple_of(8);

fn row_of(mut fields: Fields<'_>) -> Option<Connection> {
    let cookie = fields.u64()?;
    let (age_ns, acked_bytes, retransmitted_bytes) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let (network_namespace, cwnd_segments, ssthresh, srtt_us, mss_bytes) =
        (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
    let (local_port, remote_port) = (fields.u16()?, fields.u16()?);
    let (local, remote) = (fields.address()?, fields.address()?);
    let control = text(fields.take::<16>()?);
    let mut counts = Counts::new();
    for (name, _) in COUNTERS {
        counts.insert(name, fields.u32()?.into());
    }
    Some(Connection {
        cookie,
        control,
        local: (local, local_port).into(),
        remote: (remote, remote_port).into(),
        network_namespace,
        age_ns,
        acked_bytes,
        retransmitted_bytes,
        cwnd_segments,
        ssthresh_segments: (ssthresh < NO_THRESHOLD).then_some(ssthresh),
        srtt_us,
        mss_bytes,
        counts,
    })
}

/// A name as the kernel keeps it.
fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(field).trim_end_matches('\0').to_owned()
}

/// The rest of a structure, read from its beginning.
struct Fields<'row>(&'row [u8]);

impl<'row> Fields<'row> {
    fn take<const N: usize>(&mut self) -> Option<&'row [u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(first)
    }

    fn first_u64(octets: &[u8]) -> Option<u64> {
        Some(u64::from_ne_bytes(*octets.first_chunk()?))
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(|octets| u64::from_ne_bytes(*octets))
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(|octets| u32::from_ne_bytes(*octets))
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(|octets| u16::from_ne_bytes(*octets))
    }

    fn address(&mut self) -> Option<IpAddr> {
        self.take::<16>().map(|octets| Ipv6Addr::from(*octets).to_canonical())
    }
}
