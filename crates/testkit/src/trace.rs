//! Segments as a person reads them: in packetdrill's notation, with sequence numbers relative to the SYNs.

use whyloss_transport::segment::{Ecn, Segment};
use whyloss_transport::Seq;

/// The numbers that relative notation starts from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin {
    /// Initial sequence number of the segment's sender.
    pub own: Seq,
    /// Initial sequence number of its receiver.
    pub peer: Seq,
}

/// `segment` in packetdrill's notation.
pub fn render(segment: &Segment, origin: Origin) -> String {
    use std::fmt::Write;
    let relative = |seq: Seq, base: Seq| seq.0.wrapping_sub(base.0);
    let mut out = String::new();
    match segment.ecn {
        Ecn::NotCapable => {}
        Ecn::Capable0 => out.push_str("[ect0] "),
        Ecn::Capable1 => out.push_str("[ect1] "),
        Ecn::CongestionExperienced => out.push_str("[ce] "),
    }
    let len = segment.payload.len();
    let start = relative(segment.seq, origin.own);
    let flags = format!("{:?}", segment.flags);
    let flags = if flags.is_empty() { "-" } else { &flags };
    // Writing to a string cannot fail.
    let _ = write!(out, "{flags} {start}:{}({len})", start.wrapping_add(len as u32));
    if segment.flags.contains(whyloss_transport::segment::Flags::ACK) {
        let _ = write!(out, " ack {}", relative(segment.ack, origin.peer));
    }
    let _ = write!(out, " win {}", segment.window);
    let options = render_options(segment, origin);
    if !options.is_empty() {
        let _ = write!(out, " <{options}>");
    }
    out
}

fn render_options(segment: &Segment, origin: Origin) -> String {
    let options = &segment.options;
    let mut parts = Vec::new();
    if let Some(mss) = options.mss {
        parts.push(format!("mss {mss}"));
    }
    if options.sack_permitted {
        parts.push("sackOK".to_owned());
    }
    if let Some(timestamps) = options.timestamps {
        parts.push(format!("TS val {} ecr {}", timestamps.value, timestamps.echo));
    }
    if let Some(shift) = options.window_scale {
        parts.push(format!("wscale {shift}"));
    }
    if !options.sack.is_empty() {
        let block = |&(left, right): &(Seq, Seq)| {
            format!("{}:{}", left.0.wrapping_sub(origin.peer.0), right.0.wrapping_sub(origin.peer.0))
        };
        parts.push(format!("sack {}", options.sack.as_slice().iter().map(block).collect::<Vec<_>>().join(" ")));
    }
    if let Some(nonce) = options.nonce {
        parts.push(format!("nonce {nonce:#x}"));
    }
    if let Some(rare) = &options.rare {
        parts.push(format!("{rare:?}"));
    }
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyloss_transport::segment::{Flags, Options, Payload, Timestamps};

    #[test]
    fn a_segment_reads_like_a_script() {
        let segment = Segment {
            seq: Seq(4),
            ack: Seq(10),
            flags: Flags::ACK | Flags::PSH,
            window: 257,
            ecn: Ecn::Capable0,
            options: Options { timestamps: Some(Timestamps { value: 7, echo: 8 }), ..Options::default() },
            payload: Payload::Synthetic { offset: 0, len: 100 },
            ..Segment::default()
        };
        let origin = Origin { own: Seq(u32::MAX), peer: Seq(9) };
        assert_eq!(render(&segment, origin), "[ect0] P. 5:105(100) ack 1 win 257 <TS val 7 ecr 8>");
    }
}
