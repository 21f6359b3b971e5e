//! Goodput of one bulk flow under independent losses against two formulas of the literature, each in its regime.

use crate::common::Bulk;
use whyloss_transport::scheme::{Selection, Value};
use whyloss_transport::tcp::{AckPolicy, FastRecovery};
use whyloss_transport::{BitRate, Config, Duration};

const MSS: f64 = 1000.0;
const RTT: Duration = Duration::from_millis(100);

/// A flow that only losses limit: the link has a hundred times the rate that it will use, so nothing ever waits.
fn flow(congestion: &str, config: &Config, loss: f64, lasts: u64) -> Bulk {
    Bulk {
        // Segments of exactly one MSS, without options; nothing else that would limit the window.
        config: Config {
            mss: MSS as u16,
            timestamps: false,
            window_scaling: true,
            receive_buffer: 4 << 20,
            send_buffer: 4 << 20,
            ..config.clone()
        },
        selection: Selection { congestion: Some(congestion.to_owned()), ..Selection::default() },
        rate: BitRate::from_bps(1_000_000_000),
        rtt: RTT,
        queue: 10_000,
        loss,
        lasts: Duration::from_secs(lasts),
    }
}

/// Mathis, Semke, Mahdavi & Ott 1997, eq. 3 with C for delayed acknowledgements: bit/s for one acknowledgement every `b` segments.
fn mathis(loss: f64, b: f64) -> f64 {
    MSS * 8.0 / RTT.as_secs_f64() * (3.0 / (2.0 * b * loss)).sqrt()
}

/// Padhye, Firoiu, Towsley & Kurose 1998, eq. 30: bit/s; `t0` is the first timeout in seconds.
fn padhye(loss: f64, b: f64, t0: f64) -> f64 {
    let fast = RTT.as_secs_f64() * (2.0 * b * loss / 3.0).sqrt();
    let slow = t0 * (3.0 * (3.0 * b * loss / 8.0).sqrt()).min(1.0) * loss * (1.0 + 32.0 * loss * loss);
    MSS * 8.0 / (fast + slow)
}

/// Yang & Lam 2000 as Tsaoussidis & Zhang 2002 print it in eq. 2 (with the parentheses that the print has lost): bit/s of a window that grows by `alpha`
/// segments a round trip and falls to `beta` of itself, with `b` = 1.
fn yang_lam((alpha, beta): (f64, f64), loss: f64, t0: f64) -> f64 {
    let fast = RTT.as_secs_f64() * (2.0 * (1.0 - beta) * loss / (alpha * (1.0 + beta))).sqrt();
    let timeouts = (3.0 * ((1.0 - beta * beta) * loss / (2.0 * alpha)).sqrt()).min(1.0);
    MSS * 8.0 / (fast + t0 * timeouts * loss * (1.0 + 32.0 * loss * loss))
}

const DELAYED: AckPolicy = AckPolicy::Delayed(Duration::from_millis(100));

/// The band around Mathis' formula is 12 % either way, for these reasons. The formula takes losses at even distances; when they fall at
/// random, the mean window is 1.31 / sqrt(p) instead of 1.22 / sqrt(p) segments (Ott, Kemperman & Mathis 1996): up to 7 % more. Every
/// loss costs a round trip in which the window does not grow, of 8 in a cycle at 1 % loss: up to 9 % less. With 500 and more losses the
/// mean of the runs is good to about 2 %. The band would not hide a wrong number of acknowledgements (a factor of 1.41), a window cut to
/// 0.7 instead of 0.5 (1.37) or one that grows by two segments a round trip (1.41).
#[test]
fn few_losses_cost_what_mathis_says() {
    for loss in [0.000_5, 0.002, 0.01] {
        // Acknowledgements of two segments slow down who counts acknowledgements, not who counts octets.
        for (congestion, policy, b) in [("reno", AckPolicy::Immediate, 1.0), ("reno", DELAYED, 2.0), ("newreno", DELAYED, 1.0)] {
            let config = Config { ack_policy: policy, ..Config::modern() };
            let ratio = flow(congestion, &config, loss, 500).goodput(3) / mathis(loss, b);
            assert!((0.88..1.12).contains(&ratio), "{congestion} with b = {b} at {loss}: {ratio:.3} of the formula");
        }
    }
}

/// Padhye's model is Reno without SACK or limited transmit whose timeouts begin at `t0`: FreeBSD 4.5 with a minimum timeout of a second,
/// ten times the round trip. Its authors find their own traces within 10 % on average when losses within a round come together; ours are
/// independent, so that somewhat more windows survive without a timeout. The band is 12 % either way. It would not hide timeouts that
/// cost nothing: the next test shows that they take half of the goodput and more.
#[test]
fn many_losses_cost_what_padhye_says() {
    for loss in [0.01, 0.03, 0.08] {
        for (policy, b) in [(AckPolicy::Immediate, 1.0), (DELAYED, 2.0)] {
            let ratio = flow("reno", &reno_of_freebsd(policy), loss, 1200).goodput(3) / padhye(loss, b, 1.0);
            assert!((0.88..1.12).contains(&ratio), "b = {b} at {loss}: {ratio:.3} of the formula");
        }
    }
}

#[test]
fn the_formula_of_gaimd_is_padhye_s_for_reno() {
    for loss in [0.001, 0.03, 0.2] {
        assert!((yang_lam((1.0, 0.5), loss, 1.0) / padhye(loss, 1.0, 1.0) - 1.0).abs() < 1e-12);
    }
}

/// GAIMD against eq. 2. For few losses, where timeouts hardly count, within 12 % for the same reasons as above. A choice off the line and Reno's show that
/// both parameters count: 0.2 instead of 0.3125 is 20 % less.
///
/// For many losses, by Reno's recovery as the formula assumes, Reno's choice is within 15 %, but gentle ones carry down to half of what it says: a timeout
/// halves the window whatever `beta` is, and with `alpha` below one it takes long to come back, of which the formula knows nothing.
#[test]
fn gaimd_carries_what_its_formula_says() {
    let few = Config { ack_policy: AckPolicy::Immediate, min_rto: Duration::from_secs(1), ..Config::modern() };
    let many = reno_of_freebsd(AckPolicy::Immediate);
    for ((alpha, beta), given) in [((0.3125, 0.875), 0.0), ((0.2, 0.875), 0.2), ((1.0, 0.5), 1.0)] {
        let ratio = |config: &Config, loss: f64| {
            let mut bulk = flow("gaimd", config, loss, 800);
            let parameters = [("alpha", given), ("beta", beta)].map(|(name, value)| (name.to_owned(), Value::Number(value)));
            bulk.selection.parameters.insert("gaimd".to_owned(), parameters.into_iter().collect());
            let ratio = bulk.goodput(3) / yang_lam((alpha, beta), loss, 1.0);
            println!("({alpha}, {beta}) at {loss}: {ratio:.3}");
            ratio
        };
        for loss in [0.000_5, 0.002, 0.005] {
            let ratio = ratio(&few, loss);
            assert!((0.88..1.12).contains(&ratio), "({alpha}, {beta}) at {loss}: {ratio:.3} of the formula");
        }
        let band = if beta == 0.5 { 0.85..1.15 } else { 0.5..0.95 };
        for loss in [0.01, 0.02, 0.05] {
            let ratio = ratio(&many, loss);
            assert!(band.contains(&ratio), "({alpha}, {beta}) at {loss}: {ratio:.3} of the formula");
        }
    }
}

fn reno_of_freebsd(ack_policy: AckPolicy) -> Config {
    let min_rto = Duration::from_secs(1);
    Config { ack_policy, min_rto, sack: false, limited_transmit: false, recovery: FastRecovery::Reno, ..Config::freebsd45() }
}

/// Beyond a few percent of losses the formula without timeouts promises twice too much; SACK and RACK win some of it back.
#[test]
fn timeouts_are_what_separates_the_formulas() {
    let share = |config: Config| flow("reno", &config, 0.05, 600).goodput(2) / mathis(0.05, 2.0);
    let old = share(reno_of_freebsd(DELAYED));
    let new = share(Config { ack_policy: DELAYED, min_rto: Duration::from_secs(1), ..Config::modern() });
    assert!(old < 0.5, "{old:.3}");
    assert!(new > 1.3 * old, "{new:.3} against {old:.3}");
}
