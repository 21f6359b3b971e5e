//! How a signal weakens with distance, and how long it takes.

use core::f64::consts::PI;

/// Metres per second.
const LIGHT: f64 = 299_792_458.0;

/// Received power in watts at `distance` metres from a source of `power_w` watts, between equal antennas `height_m` above flat ground, without gain.
///
/// From the crossover distance `4 pi h^2 / lambda` on, the reflection from the ground cancels the direct wave more and more (two-ray
/// model: `P h^4 / d^4`); below it, and with a height of 0 everywhere, the signal is that of free space (Friis:
/// `P (lambda / 4 pi d)^2`).
pub(super) fn received_w(power_w: f64, frequency_hz: f64, height_m: f64, distance: f64) -> f64 {
    let wavelength = LIGHT / frequency_hz;
    let h2 = height_m * height_m;
    let crossover = 4.0 * PI * h2 / wavelength;
    let power = if height_m > 0.0 && distance >= crossover {
        let d2 = distance * distance;
        power_w * h2 * h2 / (d2 * d2)
    } else {
        let ratio = wavelength / (4.0 * PI * distance);
        power_w * ratio * ratio
    };
    // Nothing is louder than its source: in the near field neither formula holds.
    power.min(power_w)
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

    /// The card of ns-2: 0.2818 W at 914 MHz, 1.5 m above ground.
    fn wavelan(distance: f64) -> f64 {
        received_w(0.2818, 914e6, 1.5, distance)
    }

    #[test]
    fn the_thresholds_of_ns2_are_250_and_550_metres() {
        assert!(wavelan(250.0) >= 3.652e-10 && wavelan(250.1) < 3.652e-10);
        assert!(wavelan(550.0) >= 1.559e-11 && wavelan(550.1) < 1.559e-11);
        // Twice the distance is a sixteenth of the power.
        assert!((wavelan(200.0) / wavelan(400.0) - 16.0).abs() < 1e-9);
    }

    #[test]
    fn near_the_antenna_space_is_free() {
        // 4 pi 1.5^2 / 0.328 m = 86.2 m; at 10 m 0.2818 W (0.328 / 40 pi)^2 = 1.92e-6 W.
        assert!((wavelan(10.0) / 1.92e-6 - 1.0).abs() < 2e-3);
        assert!((wavelan(20.0) * 4.0 / wavelan(10.0) - 1.0).abs() < 1e-12);
        let crossing = wavelan(86.0) / wavelan(86.5);
        assert!((0.98..1.04).contains(&crossing), "{crossing}");
        assert_eq!(wavelan(0.0), 0.2818);
    }

    #[test]
    fn light_takes_667_ns_for_200_m() {
        assert_eq!(flight(200.0), 667);
        assert_eq!(flight(0.0), 0);
    }
}
