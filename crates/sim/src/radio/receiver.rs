//! What a station hears.

use super::spec::{Locking, RadioSpec};
use crate::address::TransmissionId;

/// The receiver of a station.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// What arrives now.
    signals: Vec<Signal>,
    lock: Option<Lock>,
    /// The station itself is on the air and hears nothing.
    transmitting: bool,
}

#[derive(Clone, Copy, Debug)]
struct Signal {
    transmission: TransmissionId,
    power: f64,
}

/// The signal that the receiver listens to.
#[derive(Clone, Copy, Debug)]
struct Lock {
    transmission: TransmissionId,
    power: f64,
    intact: bool,
}

/// What became of a signal when it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// A frame that can be decoded.
    Frame,
    /// A frame that the receiver listened to and could not decode.
    Noise,
    /// Nothing worth mentioning.
    Nothing,
}

impl Receiver {
    /// Whether the medium is busy, here and now.
    pub fn busy(&self, spec: &RadioSpec) -> bool {
        self.transmitting || self.power() >= spec.sense_w
    }

    fn power(&self) -> f64 {
        self.signals.iter().map(|signal| signal.power).sum()
    }

    /// Power of everything but one signal.
    fn beside(&self, transmission: TransmissionId) -> f64 {
        self.signals.iter().filter(|signal| signal.transmission != transmission).map(|signal| signal.power).sum()
    }

    /// A signal begins to arrive.
    pub fn begin(&mut self, spec: &RadioSpec, transmission: TransmissionId, power: f64) {
        let was_busy = self.busy(spec);
        self.signals.push(Signal { transmission, power });
        if self.transmitting {
            return;
        }
        let clear = |power: f64, others: f64| power >= spec.capture * (spec.noise_w + others);
        if let Some(lock) = self.lock {
            let intact = lock.intact && clear(lock.power, self.beside(lock.transmission));
            self.lock = Some(Lock { intact, ..lock });
        }
        let free = match spec.locking {
            Locking::Sensed => !was_busy,
            Locking::Decodable => self.lock.is_none(),
            Locking::Strongest => true,
        };
        if free && power >= spec.receive_w && clear(power, self.beside(transmission)) {
            self.lock = Some(Lock { transmission, power, intact: true });
        }
    }

    /// A signal has arrived to its end.
    pub fn end(&mut self, spec: &RadioSpec, transmission: TransmissionId) -> Heard {
        let position = self.signals.iter().position(|signal| signal.transmission == transmission);
        let Some(signal) = position.map(|position| self.signals.swap_remove(position)) else { return Heard::Nothing };
        match self.lock {
            Some(lock) if lock.transmission == transmission => {
                self.lock = None;
                if lock.intact {
                    Heard::Frame
                } else {
                    Heard::Noise
                }
            }
            // A receiver that stays with whatever it senses takes all of it for frames.
            _ if spec.locking == Locking::Sensed && !self.transmitting && signal.power >= spec.sense_w => Heard::Noise,
            _ => Heard::Nothing,
        }
    }

    /// The station's own transmission begins; whatever it was listening to is lost.
    pub fn mute(&mut self) {
        self.transmitting = true;
        self.lock = None;
    }

    /// The station's own transmission has ended.
    pub fn unmute(&mut self) {
        self.transmitting = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: f64 = 8.9e-10; // 200 m
    const FAR: f64 = NEAR / 16.0; // 400 m
    const FAINT: f64 = NEAR / 81.0; // 600 m, below carrier sense

    /// What is heard of each of two signals that overlap, the first being the first to end.
    fn overlap(locking: Locking, first: f64, second: f64) -> [Heard; 2] {
        let spec = RadioSpec { locking, ..RadioSpec::default() };
        let mut receiver = Receiver::default();
        receiver.begin(&spec, TransmissionId::new(1), first);
        receiver.begin(&spec, TransmissionId::new(2), second);
        [receiver.end(&spec, TransmissionId::new(1)), receiver.end(&spec, TransmissionId::new(2))]
    }

    #[test]
    fn a_signal_alone_is_heard_by_its_power() {
        let spec = RadioSpec::default();
        for (power, heard, busy) in [(NEAR, Heard::Frame, true), (FAR, Heard::Noise, true), (FAINT, Heard::Nothing, false)] {
            let mut receiver = Receiver::default();
            receiver.begin(&spec, TransmissionId::new(1), power);
            assert_eq!(receiver.busy(&spec), busy);
            assert_eq!(receiver.end(&spec, TransmissionId::new(1)), heard);
            assert!(!receiver.busy(&spec));
        }
    }

    #[test]
    fn the_first_frame_survives_what_is_10_db_weaker() {
        use Heard::{Frame, Noise, Nothing};
        for (locking, sensed) in [(Locking::Sensed, Noise), (Locking::Decodable, Nothing), (Locking::Strongest, Nothing)] {
            assert_eq!(overlap(locking, NEAR, FAR), [Frame, sensed]);
            assert_eq!(overlap(locking, NEAR, FAINT), [Frame, Nothing]);
            assert_eq!(overlap(locking, NEAR, NEAR), [Noise, sensed]);
            assert_eq!(overlap(locking, FAINT, NEAR), [Nothing, Frame]);
        }
    }

    #[test]
    fn what_comes_second_and_stronger_depends_on_the_receiver() {
        use Heard::{Frame, Noise, Nothing};
        assert_eq!(overlap(Locking::Sensed, FAR, NEAR), [Noise, Noise]);
        assert_eq!(overlap(Locking::Decodable, FAR, NEAR), [Nothing, Frame]);
        assert_eq!(overlap(Locking::Decodable, NEAR, 20.0 * NEAR), [Noise, Nothing]);
        assert_eq!(overlap(Locking::Strongest, NEAR, 20.0 * NEAR), [Nothing, Frame]);
    }

    #[test]
    fn interference_adds_up() {
        // One signal at 400 m leaves 12 dB, two leave 9 dB.
        let spec = RadioSpec::default();
        let mut receiver = Receiver::default();
        receiver.begin(&spec, TransmissionId::new(1), NEAR);
        receiver.begin(&spec, TransmissionId::new(2), FAR);
        receiver.begin(&spec, TransmissionId::new(3), FAR);
        assert_eq!([2, 3, 1].map(|signal| receiver.end(&spec, TransmissionId::new(signal))), [Heard::Noise; 3]);
        // Two that are too faint for carrier sense keep the medium busy together.
        receiver.begin(&spec, TransmissionId::new(4), FAINT);
        assert!(!receiver.busy(&spec));
        receiver.begin(&spec, TransmissionId::new(5), FAINT);
        assert!(receiver.busy(&spec));
    }

    #[test]
    fn a_station_on_the_air_hears_nothing() {
        let spec = RadioSpec::default();
        let mut receiver = Receiver::default();
        receiver.begin(&spec, TransmissionId::new(1), NEAR);
        receiver.mute();
        receiver.begin(&spec, TransmissionId::new(2), NEAR);
        assert_eq!(receiver.end(&spec, TransmissionId::new(1)), Heard::Nothing);
        receiver.unmute();
        assert!(receiver.busy(&spec));
        assert_eq!(receiver.end(&spec, TransmissionId::new(2)), Heard::Noise);
    }
}
