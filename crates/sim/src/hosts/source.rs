//! Sources of data that comes at a rate.

use crate::address::EndpointId;
use crate::link::Transmitter;
use crate::pacing::{Bursts, Pacing};
use crate::random::Stream;
use whyloss_transport::BitRate;

/// A source of datagrams, or of data for a socket.
#[derive(Debug)]
pub(crate) struct Source {
    pub endpoint: EndpointId,
    /// Octets of each piece.
    pub octets: u32,
    /// No piece leaves at or after this time.
    pub stop: u64,
    /// Pieces that have left so far.
    pub sent: u64,
    pace: Transmitter,
    jitter: Option<(f64, Stream)>,
    bursts: Option<Box<Bursting>>,
}

/// A source that is silent between bursts.
#[derive(Debug)]
struct Bursting {
    bursts: Bursts,
    /// Nanoseconds that a piece takes at the rate.
    span: f64,
    /// Pieces of this burst that have not left.
    left: u64,
    lengths: Stream,
    silences: Stream,
}

impl Bursting {
    /// How many pieces there are in the next burst.
    fn pieces(&mut self) -> u64 {
        // The remainder is rounded up to a whole piece.
        (libm::ceil(self.bursts.burst.draw(&mut self.lengths) as f64 / self.span) as u64).max(1)
    }
}

impl Source {
    /// What gives data to `endpoint`; `stream` is its random stream for a purpose.
    pub fn new(endpoint: EndpointId, pacing: &Pacing, stream: impl Fn(&str) -> Stream) -> Self {
        let Pacing { rate, octets, stop, rhythm } = *pacing;
        let bursts = rhythm.bursts.map(|bursts| {
            let (lengths, silences) = (stream("bursts"), stream("silences"));
            let span = f64::from(octets) * 8e9 / rate.as_bps() as f64;
            let mut bursting = Bursting { bursts, span, left: 0, lengths, silences };
            bursting.left = bursting.pieces();
            Box::new(bursting)
        });
        let jitter = (rhythm.jitter > 0.0).then(|| (rhythm.jitter, stream("jitter")));
        Self { endpoint, octets, stop: stop.as_nanos(), sent: 0, pace: Transmitter::new(rate), jitter, bursts }
    }

    /// What gives `endpoint` what its flow's web user asks for, and nothing by itself.
    pub const fn of_pages(endpoint: EndpointId) -> Self {
        let pace = Transmitter::new(BitRate::from_bps(1));
        Self { endpoint, octets: 0, stop: u64::MAX, sent: 0, pace, jitter: None, bursts: None }
    }

    /// A piece leaves at `now`; when the next one does.
    pub fn send(&mut self, now: u64) -> u64 {
        self.sent += 1;
        let mut span = self.pace.serialise(self.octets);
        if let Some((share, stream)) = &mut self.jitter {
            span = (span as f64 * (1.0 + *share * (2.0 * stream.unit() - 1.0))) as u64;
        }
        if let Some(bursting) = &mut self.bursts {
            bursting.left -= 1;
            if bursting.left == 0 {
                span = span.saturating_add(bursting.bursts.idle.draw(&mut bursting.silences));
                bursting.left = bursting.pieces();
            }
        }
        now.saturating_add(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{FlowId, Way};
    use crate::pacing::Rhythm;
    use crate::spell::Spell;
    use whyloss_transport::{Duration, Instant};

    const MS: u64 = 1_000_000;

    /// 1000 octets each millisecond.
    fn source(rhythm: Rhythm) -> Source {
        let pacing = Pacing { rate: BitRate::from_bps(8_000_000), octets: 1000, stop: Instant::MAX, rhythm };
        Source::new(EndpointId::of(FlowId::new(0), Way::Forward), &pacing, |purpose| Stream::new(1, 0, "flow x", purpose))
    }

    fn times(mut source: Source, count: usize) -> Vec<u64> {
        let mut now = 0;
        let each = |_| {
            let next = source.send(now);
            std::mem::replace(&mut now, next)
        };
        (0..count).map(each).collect()
    }

    /// Lengths of bursts in pieces and of the silences behind them in milliseconds.
    fn bursts(burst: Spell, idle: Spell, count: usize) -> (Vec<f64>, Vec<f64>) {
        let times = times(source(Rhythm { bursts: Some(Bursts { burst, idle }), ..Rhythm::default() }), count);
        let (mut lengths, mut silences, mut length) = (Vec::new(), Vec::new(), 0.0);
        for pair in times.windows(2) {
            length += 1.0;
            let distance = pair[1] - pair[0];
            if distance > MS {
                lengths.push(std::mem::take(&mut length));
                silences.push((distance - MS) as f64 / MS as f64);
            }
        }
        (lengths, silences)
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn without_a_rhythm_pieces_come_in_equal_distances() {
        assert_eq!(times(source(Rhythm::default()), 4), [0, MS, 2 * MS, 3 * MS]);
    }

    #[test]
    fn a_burst_ends_with_a_whole_piece() {
        let bursts = Some(Bursts { burst: Duration::from_micros(2100).into(), idle: ms(10).into() });
        let times = times(source(Rhythm { bursts, ..Rhythm::default() }), 5);
        assert_eq!(times, [0, 1, 2, 13, 14].map(|ms| ms * MS));
    }

    #[test]
    fn silence_of_no_length_is_none() {
        let bursts = Some(Bursts { burst: Spell::exponential(ms(1000)), idle: Duration::ZERO.into() });
        assert_eq!(times(source(Rhythm { bursts, ..Rhythm::default() }), 5000)[4999], 4999 * MS);
    }

    #[test]
    fn exponential_bursts_and_silences_have_their_means() {
        let (lengths, silences) = bursts(Spell::exponential(ms(60)), Spell::exponential(ms(40)), 600_000);
        assert!(lengths.len() > 9500);
        // Rounded up, an exponential length is geometric: 1 / (1 - exp(-1/60)) = 60.5 pieces. Four standard errors of 10,000: 2.4 and 1.6.
        let expected = 1.0 / (1.0 - libm::exp(-1.0 / 60.0));
        assert!((mean(&lengths) - expected).abs() < 2.4, "{}", mean(&lengths));
        assert!((mean(&silences) - 40.0).abs() < 1.6, "{}", mean(&silences));
    }

    #[test]
    fn bursts_of_pareto_have_their_tail() {
        let shape = 1.5;
        let (mut lengths, silences) = bursts(Spell::pareto(ms(300), shape), Spell::pareto(ms(200), shape), 3_000_000);
        lengths.sort_by(f64::total_cmp);
        assert!((100.0..=101.0).contains(&lengths[0]), "the smallest is mean (shape - 1) / shape: {}", lengths[0]);
        assert!(silences.iter().all(|silence| *silence > 66.6));
        // Hill's estimate; its standard error is shape / sqrt(n).
        let n = lengths.len() as f64;
        let hill = n / lengths.iter().map(|length| libm::log((length - 0.5) / 100.0)).sum::<f64>();
        assert!((hill - shape).abs() < 4.0 * shape / n.sqrt() + 0.01, "{hill} over {n}");
    }

    #[test]
    fn jitter_spreads_the_distances_and_keeps_the_rate() {
        let times = times(source(Rhythm { jitter: 0.5, ..Rhythm::default() }), 100_001);
        let distances: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / MS as f64).collect();
        assert!(distances.iter().all(|distance| (0.499_999..1.5).contains(distance)));
        // Uniform: standard deviation 1 / sqrt(12) = 0.289, its mean's standard error 0.0009.
        assert!((mean(&distances) - 1.0).abs() < 0.004);
        let squares = mean(&distances.iter().map(|distance| (distance - 1.0) * (distance - 1.0)).collect::<Vec<_>>());
        assert!((squares - 1.0 / 12.0).abs() < 0.002, "{squares}");
    }
}
