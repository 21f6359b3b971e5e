//! Kind 253: what receivers and senders of this project tell each other.
//!
//! RFC 6994 shares option kind 253 among experiments by a 16-bit experiment identifier. Ours, [`EXPERIMENT_ID`], is **not
//! registered**; nothing here is sent unless a connection is configured for it and its peer has agreed on the SYN.
//!
//! Every option begins
//!
//! | octet | |
//! | ---: | --- |
//! | 0 | kind 253 |
//! | 1 | length of the whole option |
//! | 2–3 | experiment identifier `57 4C`, network order |
//! | 4 | sub-type; absent in *reports permitted* |
//!
//! **Reports permitted** (length 4, on SYN and SYN-ACK): "I can receive and send loss reports."
//!
//! **Nonce** (sub-type 6, length 9, on data segments): octets 5–8 are a value that only a receiver of this very transmission can know
//! and that a corruption report has to echo, in the spirit of Ely et al., "Robust Congestion Signaling", 2001.
//!
//! **Corruption report** (sub-type 4, length 7, 11 or 15, on acknowledgements): "a segment of this connection arrived damaged."
//!
//! | octet | |
//! | ---: | --- |
//! | 5 | `80` sequence number confirmed; `40` position inferred from the order of arrivals (both: not ours); `20` CE seen on the damaged packet; `10` other reports were suppressed; low four bits: length of the segment in units of 128 octets, rounded up, at most 15; 0 if not known |
//! | 6 | damaged segments of this connection so far, modulo 256: a lost acknowledgement loses no event |
//! | 7–10 | with `80` or `40`: sequence number of the first octet of the damaged segment |
//! | next 4 | if the length says that there are four more: the nonce read from the damaged segment |
//!
//! **Compact corruption report** (length 8, on acknowledgements): the same where two SACK blocks leave no more room. Octets 4–7 are one number:
//! `80000000` is set, as in no sub-type; `40000000` CE seen; 20 bits: first octet of the damaged segment less the acknowledgement number; 10 bits: the
//! low ones of the nonce. The sequence number is confirmed.
//!
//! **Words** (length 4 + 4 *n*): the same for several segments, a number for each. The first number can be a nonce instead: `40000000` and its 30 low
//! bits. Only for those who said by the SYN that they can read it: *words permitted*, `FE 04 57 4C`.
//!
//! **Loss cause** (sub-type 7, length 12, on acknowledgements): "a differentiator at the receiver thinks this of this hole."
//!
//! | octet | |
//! | ---: | --- |
//! | 5 | two high bits: `00` unknown, `40` corruption, `80` congestion, `C0` mixed (read as congestion); two bits: e; low four bits: number of the differentiator |
//! | 6–9 | sequence number of the first octet of the hole |
//! | 10–11 | its length in units of 16^e octets, rounded up; e is as small as it may be |
//!
//! Open holes take turns on all acknowledgements until they are filled: a lost acknowledgement loses no verdict.
//!
//! **Survival** (sub-type 11, length 7, on acknowledgements): octets 5–6 repeat what the latest data brought (sub-type 10).
//!
//! **Header checksum** (sub-type 8, length 7, on data segments; Balan et al. 2002): octets 5–6 are the Internet checksum over pseudo-header
//! and TCP header with all options, with the TCP checksum and these two octets taken as zero. A damaged segment for which it holds has
//! an intact header.
//!
//! **Header intact** (sub-type 9, length 10, on acknowledgements): "a segment arrived damaged, and the checksum of its header holds."
//!
//! | octet | |
//! | ---: | --- |
//! | 5 | which such segment of this connection it was, modulo 256 |
//! | 6–9 | sequence number of its first octet |
//!
//! It is repeated, with others in turn, until the data has arrived; an acknowledgement with a number that the sender has not seen is no
//! duplicate acknowledgement.
//!
//! Two options of TCP-Real stand without identifier and sub-type, in four octets each, as published (Tsaoussidis & Zhang 2002, 3.3). They are on no SYN,
//! where options of this kind and length hold identifiers, and are sent only after both SYNs carried *reports permitted*.
//!
//! **Wave** (`TCP_REAL`, kind 254, on data segments): octet 2 is the number of the wave, modulo 256, octet 3 its size in segments.
//!
//! **Rate** (`TCP_REAL_ACK`, kind 253, on acknowledgements): octet 2 is the number of the last complete wave, octet 3 the rate at which it arrived: 255 is
//! the highest that the receiver has seen so far. Repeated until another wave is complete. The same with a rate that means itself is ours (sub-type 2,
//! length 8): octet 5 is the number, octets 6–7 are six bits *e* and ten bits *m* of a rate of (1024 + *m*) 2^*e* segments in 10^6 s.
//!
//! **Bandwidth** (sub-type 3, length 9, on acknowledgements; Paul 2006's `congestion_info`): octets 5–8 are the rate at which segments
//! arrived, in kbit/s. Said once; the acknowledgement that says it is no duplicate acknowledgement.
//!
//! **Separation** (sub-type 15, length 12, on data segments; Sinha et al. 1999): octet 5 is the number of the transmission, modulo 256. Of the
//! number in octets 6–9 the highest bit says that the segment left in its time, the others are the time between segments in microseconds,
//! 0 for a sender without a rate. Octets 10–11: its shortest round trip in units of 100 microseconds.
//!
//! **Pace** (sub-type 16, length 9, on acknowledgements; Sinha et al. 1999): octets 5–8 are the time between segments in microseconds that the
//! sender shall keep. Repeated on each acknowledgement.
//!
//! What routers say has sub-types of its own: see
//! [`super::notices`], and so have probes: see `probe.rs`. An option with another sub-type, length or experiment identifier is unknown.
//!
//! What fits into the 40 octets beside timestamps (10):
//!
//! | | octets | SACK blocks beside it |
//! | --- | ---: | ---: |
//! | nothing more | 10 | 3 |
//! | nonce | 19 | 2 |
//! | report, count only | 17 | 2 |
//! | wave or rate | 14 | 3 |
//! | header checksum | 17 | 2 |
//! | rate in 16 bits | 18 | 2 |
//! | bandwidth or pace | 19 | 2 |
//! | separation | 22 | 2 |
//! | header intact | 20 | 2 |
//! | compact report, or nonce in a word | 18 | 2 |
//! | three compact reports | 26 | 1 |
//! | report with position, or with echo | 21 | 2 |
//! | loss cause | 22 | 2 |
//! | report with position and echo | 25 | 1 |
//! | nonce and report with position | 30 | 1 |
//! | nonce and report with position and echo | 34 | 0 |

use super::experiment::head;
use super::{notices, probe};
use crate::segment::{
    BandwidthReport, CauseReport, CompactList, CompactReport, CorruptionReport, HeaderReport, Options, PositionBasis,
    RareOptions, RateReport, Report, ReportedPosition, Separation, Wave, WaveRate,
};
use crate::seq::Seq;
use crate::verdict::Cause;

pub use super::experiment::{EXPERIMENT_ID, KIND};

/// Kind of the option that names a segment's wave.
pub const WAVE_KIND: u8 = 254;

/// Kind of the option on a SYN that permits words.
pub const WORDS_KIND: u8 = 254;

/// The unit in which a report gives the length of a segment, in octets.
pub const LENGTH_UNIT: u16 = 128;

const RATE: u8 = 2;
const BANDWIDTH: u8 = 3;
const CORRUPTION: u8 = 4;
const NONCE: u8 = 6;
const CAUSE: u8 = 7;
const HEADER_CHECK: u8 = 8;
const HEADER_INTACT: u8 = 9;
const SURVIVAL: u8 = 11;
const SEPARATION: u8 = 15;
const PACE: u8 = 16;

const SEQ_CONFIRMED: u8 = 0x80;
const ORDER_INFERRED: u8 = 0x40;
const CONGESTION_EXPERIENCED: u8 = 0x20;
const RATE_LIMITED: u8 = 0x10;
const LENGTH: u8 = 0x0F;

const COMPACT: u32 = 0x8000_0000;
const COMPACT_CONGESTION: u32 = 0x4000_0000;
/// A word that is a nonce, and what it has of it.
const WORD_NONCE: u32 = 0x4000_0000;
const SHORT_NONCE: u32 = WORD_NONCE - 1;
/// The first octet of a word; those of sub-types are smaller.
const WORD: u8 = 0x40;
/// Bits of a compact report's offset and of its echo.
const COMPACT_OFFSET_BITS: u32 = 20;
const COMPACT_ECHO_BITS: u32 = 10;
/// The bits of a nonce that a compact report echoes.
pub(crate) const COMPACT_ECHO_MASK: u32 = (1 << COMPACT_ECHO_BITS) - 1;

const VERDICT: u8 = 0xC0;
const VERDICT_CORRUPTION: u8 = 0x40;
const VERDICT_CONGESTION: u8 = 0x80;
const CLASSIFIER: u8 = 0x0F;
/// Where the exponent of the length of a hole stands, and its largest value.
const HOLE_EXPONENT: u32 = 4;
pub(super) const MAX_HOLE_EXPONENT: u32 = 3;

pub(super) const PERMITTED_LEN: usize = 4;
pub(super) const NONCE_LEN: usize = 9;
pub(super) const HEADER_CHECK_LEN: usize = 7;
pub(super) const WAVE_LEN: usize = 4;
const SCALED_RATE_LEN: usize = 4;
pub(super) const SEPARATION_LEN: usize = 12;

/// In a separation: it was kept.
const KEPT: u32 = 0x8000_0000;

/// Octets of a report.
pub(super) fn report_len(report: &Report) -> usize {
    match report {
        Report::Corruption(report) => {
            7 + if report.position.is_some() { 4 } else { 0 } + if report.echo.is_some() { 4 } else { 0 }
        }
        Report::Cause(_) => 12,
        Report::HeaderIntact(_) => 10,
        Report::Bandwidth(_) | Report::Pace(_) => 9,
        Report::Rate(RateReport { rate: WaveRate::Scaled(_), .. }) => SCALED_RATE_LEN,
        Report::Compact(_) | Report::Rate(RateReport { rate: WaveRate::Measured(_), .. }) => 8,
        Report::Survival(_) => 7,
        Report::List(list) => 4 + 4 * list.as_slice().len(),
    }
}

/// Octets of a nonce in a word and of the report; compact ones stand behind it in the same option.
pub(super) fn report_and_nonce_len(rare: &RareOptions) -> usize {
    let report = rare.report.as_ref().map_or(0, report_len);
    match (rare.short_nonce, rare.report) {
        (Some(_), Some(Report::Compact(_) | Report::List(_))) => report + 4,
        (Some(_), _) => report + 8,
        (None, _) => report,
    }
}

/// Reads the data of an option of kind 253, if it is one of ours. `syn`: it stands on a SYN.
pub(super) fn read(options: &mut Options, data: &[u8], syn: bool) -> bool {
    if let (&[wave, rate], false) = (data, syn) {
        let report = RateReport { wave, rate: WaveRate::Scaled(rate) };
        options.rare.get_or_insert_default().report = Some(Report::Rate(report));
        return true;
    }
    let Some(data) = data.strip_prefix(&EXPERIMENT_ID.to_be_bytes()) else { return false };
    match data {
        [] => options.rare.get_or_insert_default().reports_permitted = true,
        &[NONCE, a, b, c, d] => options.nonce = Some(u32::from_be_bytes([a, b, c, d])),
        &[RATE, wave, high, low] => {
            let report = RateReport { wave, rate: WaveRate::Measured(u16::from_be_bytes([high, low])) };
            options.rare.get_or_insert_default().report = Some(Report::Rate(report));
        }
        &[BANDWIDTH, a, b, c, d] => {
            let report = BandwidthReport { kbps: u32::from_be_bytes([a, b, c, d]) };
            options.rare.get_or_insert_default().report = Some(Report::Bandwidth(report));
        }
        // Whether it holds is asked where octets are damaged.
        [HEADER_CHECK, _, _] => options.header_check = true,
        &[HEADER_INTACT, count, a, b, c, d] => {
            let report = HeaderReport { seq: Seq(u32::from_be_bytes([a, b, c, d])), count };
            options.rare.get_or_insert_default().report = Some(Report::HeaderIntact(report));
        }
        [CORRUPTION, flags, count, rest @ ..] => {
            let Some(report) = read_corruption(*flags, *count, rest) else { return false };
            options.rare.get_or_insert_default().report = Some(Report::Corruption(report));
        }
        [WORD..=u8::MAX, ..] => return read_words(options, data),
        &[CAUSE, flags, a, b, c, d, high, low] => {
            let report = read_cause(flags, Seq(u32::from_be_bytes([a, b, c, d])), u16::from_be_bytes([high, low]));
            options.rare.get_or_insert_default().report = Some(Report::Cause(report));
        }
        &[SURVIVAL, high, low] => {
            options.rare.get_or_insert_default().report = Some(Report::Survival(u16::from_be_bytes([high, low])));
        }
        &[SEPARATION, number, a, b, c, d, high, low] => {
            let word = u32::from_be_bytes([a, b, c, d]);
            let trip = u16::from_be_bytes([high, low]);
            let separation = Separation { number, micros: word & !KEPT, kept: word & KEPT != 0, trip };
            options.rare.get_or_insert_default().separation = Some(separation);
        }
        &[PACE, a, b, c, d] => {
            options.rare.get_or_insert_default().report = Some(Report::Pace(u32::from_be_bytes([a, b, c, d])));
        }
        [sub_type, data @ ..] => return notices::read(options, *sub_type, data) || probe::read(options, *sub_type, data),
    }
    true
}

/// Whether the data of an option of kind 253 is a checksum of the header.
pub(super) fn is_header_check(data: &[u8]) -> bool {
    matches!(data.strip_prefix(&EXPERIMENT_ID.to_be_bytes()), Some([HEADER_CHECK, _, _]))
}

fn read_corruption(flags: u8, count: u8, rest: &[u8]) -> Option<CorruptionReport> {
    let basis = match flags & (SEQ_CONFIRMED | ORDER_INFERRED) {
        0 => None,
        SEQ_CONFIRMED => Some(PositionBasis::SeqConfirmed),
        ORDER_INFERRED => Some(PositionBasis::OrderInferred),
        _ => return None,
    };
    let (position, rest) = match basis {
        None => (None, rest),
        Some(basis) => {
            let (seq, rest) = rest.split_first_chunk()?;
            let len = u16::from(flags & LENGTH) * LENGTH_UNIT;
            (Some(ReportedPosition { seq: Seq(u32::from_be_bytes(*seq)), len, basis }), rest)
        }
    };
    let echo = match rest {
        [] => None,
        rest => Some(u32::from_be_bytes(rest.try_into().ok()?)),
    };
    Some(CorruptionReport {
        count,
        congestion_experienced: flags & CONGESTION_EXPERIENCED != 0,
        rate_limited: flags & RATE_LIMITED != 0,
        position,
        echo,
    })
}

fn read_compact(word: u32) -> CompactReport {
    CompactReport {
        offset: word >> COMPACT_ECHO_BITS & ((1 << COMPACT_OFFSET_BITS) - 1),
        congestion_experienced: word & COMPACT_CONGESTION != 0,
        echo: (word & COMPACT_ECHO_MASK) as u16,
    }
}

/// Reads numbers of four octets: a nonce first, or none, and compact reports.
fn read_words(options: &mut Options, data: &[u8]) -> bool {
    if data.len() % 4 != 0 {
        return false;
    }
    let words = || data.chunks_exact(4).map(|word| word.iter().fold(0, |number, octet| number << 8 | u32::from(*octet)));
    let nonce = words().next().filter(|word| word & COMPACT == 0).map(|word| word & SHORT_NONCE);
    let reports = || words().skip(usize::from(nonce.is_some()));
    if reports().any(|word| word & COMPACT == 0) {
        return false;
    }
    let mut list = CompactList::default();
    if !reports().all(|word| list.push(read_compact(word))) {
        return false;
    }
    let rare = options.rare.get_or_insert_default();
    rare.short_nonce = nonce.or(rare.short_nonce);
    match *list.as_slice() {
        [] => {}
        [one] => rare.report = Some(Report::Compact(one)),
        _ => rare.report = Some(Report::List(list)),
    }
    true
}

fn write_compact(report: CompactReport, out: &mut Vec<u8>) {
    let CompactReport { offset, congestion_experienced, echo } = report;
    let offset = offset.min((1 << COMPACT_OFFSET_BITS) - 1);
    let echo = u32::from(echo) & COMPACT_ECHO_MASK;
    let marked = if congestion_experienced { COMPACT_CONGESTION } else { 0 };
    out.extend_from_slice(&(COMPACT | marked | offset << COMPACT_ECHO_BITS | echo).to_be_bytes());
}

fn read_cause(flags: u8, seq: Seq, units: u16) -> CauseReport {
    let cause = match flags & VERDICT {
        0 => Cause::Unknown,
        VERDICT_CORRUPTION => Cause::Corruption,
        _ => Cause::Congestion,
    };
    let exponent = u32::from(flags) >> HOLE_EXPONENT & MAX_HOLE_EXPONENT;
    CauseReport { cause, classifier: flags & CLASSIFIER, seq, len: u32::from(units) << (4 * exponent) }
}

/// Appends the options of kind 253.
pub(super) fn write(options: &Options, out: &mut Vec<u8>) {
    if let Some(nonce) = options.nonce {
        head(NONCE_LEN, out);
        out.push(NONCE);
        out.extend_from_slice(&nonce.to_be_bytes());
    }
    if let Some(Wave { number, size }) = options.wave {
        out.extend_from_slice(&[WAVE_KIND, WAVE_LEN as u8, number, size]);
    }
    if options.header_check {
        head(HEADER_CHECK_LEN, out);
        out.extend_from_slice(&[HEADER_CHECK, 0, 0]);
    }
    let Some(rare) = &options.rare else { return };
    if rare.reports_permitted {
        head(PERMITTED_LEN, out);
    }
    if rare.words_permitted {
        let [a, b] = EXPERIMENT_ID.to_be_bytes();
        out.extend_from_slice(&[WORDS_KIND, PERMITTED_LEN as u8, a, b]);
    }
    notices::write(&rare.notices, out);
    if let Some(Separation { number, micros, kept, trip }) = rare.separation {
        head(SEPARATION_LEN, out);
        out.extend_from_slice(&[SEPARATION, number]);
        out.extend_from_slice(&(micros.min(KEPT - 1) | if kept { KEPT } else { 0 }).to_be_bytes());
        out.extend_from_slice(&trip.to_be_bytes());
    }
    let compact = matches!(rare.report, Some(Report::Compact(_) | Report::List(_)));
    if let Some(nonce) = rare.short_nonce {
        let reports = rare.report.as_ref().filter(|_| compact).map_or(0, |report| report_len(report) - 4);
        head(8 + reports, out);
        out.extend_from_slice(&(WORD_NONCE | nonce & SHORT_NONCE).to_be_bytes());
    }
    if let Some(report) = &rare.report {
        let begun = compact && rare.short_nonce.is_some();
        if !begun && !matches!(report, Report::Rate(RateReport { rate: WaveRate::Scaled(_), .. })) {
            head(report_len(report), out);
        }
        match report {
            Report::Corruption(report) => write_corruption(report, out),
            Report::Compact(report) => write_compact(*report, out),
            Report::List(list) => list.as_slice().iter().for_each(|report| write_compact(*report, out)),
            Report::Cause(report) => write_cause(*report, out),
            Report::Rate(RateReport { wave, rate: WaveRate::Scaled(rate) }) => {
                out.extend_from_slice(&[KIND, SCALED_RATE_LEN as u8, *wave, *rate]);
            }
            Report::Rate(RateReport { wave, rate: WaveRate::Measured(rate) }) => {
                let [high, low] = rate.to_be_bytes();
                out.extend_from_slice(&[RATE, *wave, high, low]);
            }
            Report::Bandwidth(report) => {
                out.push(BANDWIDTH);
                out.extend_from_slice(&report.kbps.to_be_bytes());
            }
            Report::HeaderIntact(report) => {
                out.extend_from_slice(&[HEADER_INTACT, report.count]);
                out.extend_from_slice(&report.seq.0.to_be_bytes());
            }
            Report::Survival(survival) => {
                let [high, low] = survival.to_be_bytes();
                out.extend_from_slice(&[SURVIVAL, high, low]);
            }
            Report::Pace(micros) => {
                out.push(PACE);
                out.extend_from_slice(&micros.to_be_bytes());
            }
        }
    }
}

fn write_cause(report: CauseReport, out: &mut Vec<u8>) {
    let verdict = match report.cause {
        Cause::Unknown => 0,
        Cause::Corruption => VERDICT_CORRUPTION,
        Cause::Congestion => VERDICT_CONGESTION,
    };
    let units = |exponent: u32| report.len.div_ceil(1 << (4 * exponent));
    let exponent = (0..MAX_HOLE_EXPONENT).find(|exponent| u16::try_from(units(*exponent)).is_ok()).unwrap_or(MAX_HOLE_EXPONENT);
    let units = units(exponent).min(u32::from(u16::MAX)) as u16;
    out.extend_from_slice(&[CAUSE, verdict | (exponent << HOLE_EXPONENT) as u8 | report.classifier & CLASSIFIER]);
    out.extend_from_slice(&report.seq.0.to_be_bytes());
    out.extend_from_slice(&units.to_be_bytes());
}

fn write_corruption(report: &CorruptionReport, out: &mut Vec<u8>) {
    let mut flags = if report.congestion_experienced { CONGESTION_EXPERIENCED } else { 0 };
    flags |= if report.rate_limited { RATE_LIMITED } else { 0 };
    if let Some(position) = &report.position {
        flags |= match position.basis {
            PositionBasis::SeqConfirmed => SEQ_CONFIRMED,
            PositionBasis::OrderInferred => ORDER_INFERRED,
        };
        flags |= position.len.div_ceil(LENGTH_UNIT).min(u16::from(LENGTH)) as u8;
    }
    out.extend_from_slice(&[CORRUPTION, flags, report.count]);
    if let Some(position) = &report.position {
        out.extend_from_slice(&position.seq.0.to_be_bytes());
    }
    if let Some(echo) = report.echo {
        out.extend_from_slice(&echo.to_be_bytes());
    }
}
