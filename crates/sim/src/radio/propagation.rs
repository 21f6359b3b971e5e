//! How a signal weakens with distance, and how long it takes.

use super::spec::RadioSpec;
use crate::error::ChannelError;
use core::f64::consts::PI;

/// Metres per second.
const LIGHT: f64 = 299_792_458.0;

impl RadioSpec {
    /// Whether what is said of the signal makes sense.
    pub(super) fn check_signal(&self) -> Result<(), ChannelError> {
        let values = [
            ("power_w", self.power_w, self.power_w > 0.0, "a power above 0 W"),
            ("frequency_hz", self.frequency_hz, self.frequency_hz > 0.0, "a frequency above 0 Hz"),
            ("height_m", self.height_m, self.height_m >= 0.0, "0 m or more"),
        ];
        match values.into_iter().find(|(_, value, fits, _)| !fits || !value.is_finite()) {
            Some((field, value, _, allowed)) => Err(ChannelError { field, found: value.to_string(), allowed }),
            None => Ok(()),
        }
    }
}

impl<C> RadioSpec<C> {
    /// Received power in watts at a distance in metres, between equal antennas without gain over flat ground.
    ///
    /// From the crossover distance `4 pi h^2 / lambda` on, the reflection from the ground cancels the direct wave more and more (two-ray
    /// model: `P h^4 / d^4`); below it, and with a height of 0 everywhere, the signal is that of free space (Friis:
    /// `P (lambda / 4 pi d)^2`).
    pub fn received_w(&self, distance: f64) -> f64 {
        let wavelength = LIGHT / self.frequency_hz;
        let h2 = self.height_m * self.height_m;
        let crossover = 4.0 * PI * h2 / wavelength;
        let power = if self.height_m > 0.0 && distance >= crossover {
            let d2 = distance * distance;
            self.power_w * h2 * h2 / (d2 * d2)
        } else {
            let ratio = wavelength / (4.0 * PI * distance);
            self.power_w * ratio * ratio
        };
        // Nothing is louder than its source: in the near field neither formula holds.
        power.min(self.power_w)
    }
}

/// Nanoseconds that light takes over a distance in metres.
pub(super) fn flight(distance: f64) -> u64 {
    (distance * 1e9 / LIGHT + 0.5) as u64
}

/// Metres between two points.
pub(super) fn distance([ax, ay]: [f64; 2], [bx, by]: [f64; 2]) -> f64 {
    ((ax - bx) * (ax - bx) + (ay - by) * (ay - by)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thresholds_of_ns2_are_250_and_550_metres() {
        let radio: RadioSpec = RadioSpec::default();
        assert!(radio.received_w(250.0) >= 3.652e-10 && radio.received_w(250.1) < 3.652e-10);
        assert!(radio.received_w(550.0) >= 1.559e-11 && radio.received_w(550.1) < 1.559e-11);
        // Twice the distance is a sixteenth of the power.
        assert!((radio.received_w(200.0) / radio.received_w(400.0) - 16.0).abs() < 1e-9);
    }

    #[test]
    fn near_the_antenna_space_is_free() {
        let radio: RadioSpec = RadioSpec::default();
        // 4 pi 1.5^2 / 0.328 m = 86.2 m; at 10 m 0.2818 W (0.328 / 40 pi)^2 = 1.92e-6 W.
        assert!((radio.received_w(10.0) / 1.92e-6 - 1.0).abs() < 2e-3);
        assert!((radio.received_w(20.0) * 4.0 / radio.received_w(10.0) - 1.0).abs() < 1e-12);
        let crossing = radio.received_w(86.0) / radio.received_w(86.5);
        assert!((0.98..1.04).contains(&crossing), "{crossing}");
        assert_eq!(radio.received_w(0.0), radio.power_w);
    }

    #[test]
    fn light_takes_667_ns_for_200_m() {
        assert_eq!(flight(200.0), 667);
        assert_eq!(flight(0.0), 0);
    }
}
