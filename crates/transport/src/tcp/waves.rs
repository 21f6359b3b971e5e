//! TCP-Real's waves: segments that belong together, so that a receiver can measure at which rate they come (Tsaoussidis & Zhang 2002).

use crate::segment::Wave;
use crate::time::Instant;

/// What makes a wave. The publication says that it is "effectively the congestion window" and that acknowledgements may split it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formation {
    /// As many segments as the window holds when the wave begins, whenever they leave (our reading).
    Window,
    /// What leaves at one moment. In steady state that is one segment or two, too few to measure.
    Burst,
}

/// The wave under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waves {
    current: Wave,
    /// Segments of it that have not left.
    left: u8,
    began: Instant,
}

impl Waves {
    /// The wave of a new segment, of which up to `segments` can leave in a row.
    pub fn next(&mut self, formation: Formation, now: Instant, segments: u64) -> Wave {
        if self.left == 0 || formation == Formation::Burst && now != self.began {
            let size = segments.clamp(1, u64::from(u8::MAX)) as u8;
            self.current = Wave { number: self.current.number.wrapping_add(1), size };
            self.left = size;
            self.began = now;
        }
        self.left -= 1;
        self.current
    }

    /// The wave of a retransmission, of which it is no member.
    pub fn current(&self) -> Wave {
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    #[test]
    fn a_wave_lasts_until_its_size_is_used() {
        let mut waves = Waves::default();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let next = |waves: &mut Waves, formation, ms, segments| {
            let Wave { number, size } = waves.next(formation, at(ms), segments);
            (number, size)
        };
        for (ms, segments, expected) in
            [(0, 2, (1, 2)), (1, 9, (1, 2)), (2, 3, (2, 3)), (9, 1, (2, 3)), (9, 1, (2, 3)), (9, 0, (3, 1))]
        {
            assert_eq!(next(&mut waves, Formation::Window, ms, segments), expected);
        }
        assert_eq!(next(&mut waves, Formation::Window, 9, 1000), (4, 255));
        assert_eq!(next(&mut waves, Formation::Burst, 9, 7), (4, 255));
        assert_eq!(next(&mut waves, Formation::Burst, 10, 7), (5, 7));
        assert_eq!(next(&mut waves, Formation::Burst, 11, 2), (6, 2), "another moment, another wave");
        assert_eq!(waves.current(), Wave { number: 6, size: 2 });
    }
}
