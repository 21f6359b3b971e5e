//! Script numbers and wire numbers: a script counts from 0, the wire from random starts.

use super::script::{EcnSpec, Packet, TcpOption};
use crate::trace::{render, Origin};
use std::collections::HashMap;
use whyloss_transport::segment::{Ecn, Flags, Options, SackBlocks, Segment, Timestamps};
use whyloss_transport::{Payload, Seq};

/// Translates between a script and the wire.
#[derive(Debug)]
pub(super) struct Numbers {
    /// Initial sequence number of the engine; known once it has sent a SYN.
    local: Option<Seq>,
    /// What a 0 of the script's remote host is on the wire.
    remote: Seq,
    /// Script `TSval` of the engine → wire `TSval`.
    clock: HashMap<u32, u32>,
    /// The first pair of [`Numbers::clock`].
    clock_origin: Option<(u32, u32)>,
    /// How far `TSval`s may be off, in ticks; `None` does not compare them.
    clock_tolerance: Option<u32>,
}

/// Where the remote host's numbers start: they wrap within most scripts.
const REMOTE: Seq = Seq(u32::MAX - 2500);

impl Numbers {
    pub(super) fn new(clock_tolerance: Option<u32>) -> Self {
        Self { local: None, remote: REMOTE, clock: HashMap::new(), clock_origin: None, clock_tolerance }
    }

    /// Learns the engine's initial sequence number.
    pub(super) fn observe(&mut self, sent: &Segment) {
        if sent.flags.contains(Flags::SYN) {
            self.local = Some(sent.seq);
        }
    }

    fn local(&self) -> Seq {
        self.local.unwrap_or(Seq(0))
    }

    /// A segment of the script's remote host as it goes over the wire.
    pub(super) fn inbound(&self, packet: &Packet) -> Segment {
        let local = self.local();
        let mut options = Options::default();
        for option in packet.options.iter().flatten() {
            match option {
                TcpOption::End | TcpOption::Nop => {}
                TcpOption::Mss(mss) => options.mss = Some(*mss),
                TcpOption::WindowScale(shift) => options.window_scale = Some(*shift),
                TcpOption::SackPermitted => options.sack_permitted = true,
                TcpOption::Sack(blocks) => {
                    let mut wire = SackBlocks::default();
                    for (left, right) in blocks {
                        wire.push(local + *left, local + *right);
                    }
                    options.sack = wire;
                }
                TcpOption::Timestamps(Timestamps { value, echo }) => {
                    options.timestamps = Some(Timestamps { value: *value, echo: self.clock_on_wire(*echo) });
                }
            }
        }
        let payload = match packet.len {
            0 => Payload::Empty,
            len => {
                // Data begins behind the SYN, also behind its own.
                let syn = u32::from(packet.flags.contains(Flags::SYN));
                let offset = u64::from(packet.seq.wrapping_add(syn).wrapping_sub(1));
                Payload::Bytes(Payload::Synthetic { offset, len }.to_bytes())
            }
        };
        Segment {
            src_port: 49_152,
            dst_port: 8080,
            seq: self.remote + packet.seq,
            ack: packet.ack.map_or(Seq(0), |ack| local + ack),
            flags: packet.flags,
            window: packet.window.unwrap_or(0),
            urgent: packet.urgent.unwrap_or(0),
            ecn: match packet.ecn {
                EcnSpec::Exactly(ecn) => ecn,
                EcnSpec::Either => Ecn::Capable0,
                EcnSpec::Unsaid => Ecn::NotCapable,
            },
            options,
            payload,
            ..Segment::default()
        }
    }

    /// The engine's clock value that a script means: by name if it was seen, else by its distance from the first one.
    fn clock_on_wire(&self, script: u32) -> u32 {
        match (self.clock.get(&script), self.clock_origin) {
            (Some(wire), _) => *wire,
            (None, Some((first_script, first_wire))) if script != 0 => first_wire.wrapping_add(script.wrapping_sub(first_script)),
            _ => script,
        }
    }

    /// How an outbound segment reads in the script's numbers.
    pub(super) fn outbound(&self, segment: &Segment) -> String {
        render(segment, Origin { own: self.local(), peer: self.remote })
    }

    /// How an inbound segment reads.
    pub(super) fn describe_inbound(&self, segment: &Segment) -> String {
        render(segment, Origin { own: self.remote, peer: self.local() })
    }

    /// Compares what the engine sent with what the script expects; the error names the differences.
    pub(super) fn compare(&mut self, expected: &Packet, got: &Segment) -> Result<(), Vec<String>> {
        let mut differences = Vec::new();
        let mut differ = |what: &str, expected: String, got: String| {
            if expected != got {
                differences.push(format!("{what} is {got} instead of {expected}"));
            }
        };
        let local = self.local();
        differ("flags", format!("{:?}", expected.flags), format!("{:?}", got.flags));
        let seq = got.seq.0.wrapping_sub(local.0);
        // A reset that answers an acknowledgement takes its number from there; without a SYN of ours nothing is relative.
        differ("seq", expected.seq.to_string(), seq.to_string());
        differ("length", expected.len.to_string(), got.payload.len().to_string());
        if let Some(ack) = expected.ack {
            differ("ack", ack.to_string(), got.ack.0.wrapping_sub(self.remote.0).to_string());
        }
        if let Some(window) = expected.window {
            differ("win", window.to_string(), got.window.to_string());
        }
        if let Some(urgent) = expected.urgent {
            differ("urg", urgent.to_string(), got.urgent.to_string());
        }
        match expected.ecn {
            EcnSpec::Unsaid => {}
            EcnSpec::Exactly(ecn) => differ("ECN", format!("{ecn:?}"), format!("{:?}", got.ecn)),
            EcnSpec::Either => {
                if !matches!(got.ecn, Ecn::Capable0 | Ecn::Capable1) {
                    differ("ECN", "ECN-capable".to_owned(), format!("{:?}", got.ecn));
                }
            }
        }
        if let (false, Payload::Bytes(_) | Payload::Synthetic { .. }) = (got.payload.is_empty(), &got.payload) {
            let written = Payload::Synthetic { offset: u64::from(seq.wrapping_sub(1)), len: got.payload.len() as u32 };
            if written.to_bytes() != got.payload.to_bytes() {
                differences.push("the data is not what the application wrote".to_owned());
            }
        }
        if let Some(options) = &expected.options {
            self.compare_options(options, &got.options, &mut differences);
        }
        if differences.is_empty() {
            Ok(())
        } else {
            Err(differences)
        }
    }

    /// Options are compared as a set: the engine says what a header carries, not in which order.
    fn compare_options(&mut self, expected: &[TcpOption], got: &Options, differences: &mut Vec<String>) {
        let mut wanted = Options::default();
        let mut blocks = Vec::new();
        for option in expected {
            match option {
                TcpOption::End | TcpOption::Nop => {}
                TcpOption::Mss(mss) => wanted.mss = Some(*mss),
                TcpOption::WindowScale(shift) => wanted.window_scale = Some(*shift),
                TcpOption::SackPermitted => wanted.sack_permitted = true,
                TcpOption::Sack(list) => blocks.clone_from(list),
                TcpOption::Timestamps(timestamps) => wanted.timestamps = Some(*timestamps),
            }
        }
        let mut differ = |what: &str, expected: String, got: String| {
            if expected != got {
                differences.push(format!("{what} is {got} instead of {expected}"));
            }
        };
        let said = |value: Option<String>| value.unwrap_or_else(|| "absent".to_owned());
        differ("mss", said(wanted.mss.map(|n| n.to_string())), said(got.mss.map(|n| n.to_string())));
        differ("wscale", said(wanted.window_scale.map(|n| n.to_string())), said(got.window_scale.map(|n| n.to_string())));
        differ("sackOK", wanted.sack_permitted.to_string(), got.sack_permitted.to_string());
        let remote = self.remote.0;
        let relative = |(left, right): &(Seq, Seq)| (left.0.wrapping_sub(remote), right.0.wrapping_sub(remote));
        let got_blocks: Vec<_> = got.sack.as_slice().iter().map(relative).collect();
        differ("sack", format!("{blocks:?}"), format!("{got_blocks:?}"));
        let echo = |timestamps: Option<Timestamps>| said(timestamps.map(|t| format!("ecr {}", t.echo)));
        differ("TS", echo(wanted.timestamps), echo(got.timestamps));
        if let (Some(script), Some(wire)) = (wanted.timestamps, got.timestamps) {
            if let Err(difference) = self.compare_clock(script.value, wire.value) {
                differences.push(difference);
            }
        }
        if got.nonce.is_some() || got.rare.is_some() {
            differences.push("there are options that the language does not know".to_owned());
        }
    }

    fn compare_clock(&mut self, script: u32, wire: u32) -> Result<(), String> {
        let (first_script, first_wire) = *self.clock_origin.get_or_insert((script, wire));
        self.clock.entry(script).or_insert(wire);
        let Some(tolerance) = self.clock_tolerance else { return Ok(()) };
        let expected = first_wire.wrapping_add(script.wrapping_sub(first_script));
        if (wire.wrapping_sub(expected) as i32).unsigned_abs() <= tolerance {
            return Ok(());
        }
        let got = first_script.wrapping_add(wire.wrapping_sub(first_wire));
        Err(format!("TS val is {got} instead of {script}"))
    }
}
