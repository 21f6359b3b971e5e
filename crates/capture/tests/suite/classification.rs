//! What was sent again and why, against what the engine's own senders know of it.

use crate::engine::{run, Captured, Plan};
use std::collections::{BTreeMap, HashMap};
use whyloss_capture::connections::{Connection, Connections, Observer, Side};
use whyloss_capture::half::{Kind, Retransmission};
use whyloss_capture::headers::Segment;
use whyloss_transport::{Config, Duration, Instant};

#[derive(Default)]
struct Verdicts {
    kinds: HashMap<u64, Kind>,
    sent: HashMap<u64, Retransmission>,
    ended: Vec<Connection>,
}

impl Observer for Verdicts {
    fn on_segment(&mut self, _: &Connection, _: Side, segment: &Segment, kind: Kind) {
        self.kinds.insert(segment.number, kind);
    }

    fn on_retransmission(&mut self, _: u64, _: Side, sent: Retransmission) {
        self.sent.insert(sent.number, sent);
    }

    fn on_end(&mut self, connection: Connection) {
        self.ended.push(connection);
    }
}

fn judge(captured: &Captured) -> Verdicts {
    let mut verdicts = Verdicts::default();
    let mut connections = Connections::default();
    for segment in &captured.segments {
        connections.on_segment(segment, &mut verdicts);
    }
    connections.finish(&mut verdicts);
    verdicts
}

/// How often a truth was said to be what.
#[derive(Default)]
struct Score {
    table: BTreeMap<(String, String), u64>,
    right: u64,
    all: u64,
    needs: [u64; 4],
}

fn word(kind: Option<Kind>) -> String {
    match kind {
        Some(Kind::Retransmission(trigger)) => trigger.name().to_owned(),
        Some(other) => format!("{other:?}"),
        None => "none".to_owned(),
    }
}

impl Score {
    fn add(&mut self, captured: &Captured, verdicts: &Verdicts) {
        let mut seen = std::collections::HashSet::new();
        for segment in &captured.segments {
            let Some(truth) = captured.truth.get(&segment.number) else { continue };
            let copy = !seen.insert(truth.sending);
            let kind = verdicts.kinds.get(&segment.number).copied();
            let said = word(kind);
            let really = match truth.trigger {
                _ if copy => "copy".to_owned(),
                Some(trigger) => trigger.name().to_owned(),
                None => "first".to_owned(),
            };
            if std::env::var_os("DUMP").is_some() && (truth.trigger.is_some() || said != "New") {
                let began = captured.segments[0].at;
                println!(
                    "{:>6} {:.6} {really} -> {said} offset {} len {} {:?}",
                    segment.number,
                    segment.at.since(began).as_secs_f64(),
                    truth.offset,
                    truth.len,
                    verdicts.sent.get(&segment.number).map(|sent| (sent.after, sent.duplicates, sent.sacked, sent.unneeded)),
                );
            }
            let is_retransmission = matches!(kind, Some(Kind::Retransmission(_)));
            if really == "first" || copy {
                if is_retransmission {
                    *self.table.entry((really, said)).or_default() += 1;
                    self.all += 1;
                }
                continue;
            }
            self.all += 1;
            self.right += u64::from(said == really);
            *self.table.entry((really, said)).or_default() += 1;
            if let Some(sent) = verdicts.sent.get(&segment.number) {
                self.needs[usize::from(truth.needed) * 2 + usize::from(sent.unneeded.is_none())] += 1;
            }
        }
    }

    fn share(&self) -> f64 {
        if self.all == 0 {
            1.0
        } else {
            self.right as f64 / self.all as f64
        }
    }

    fn show(&self, name: &str) {
        let [caught, missed, wrong, right] = self.needs;
        println!(
            "{name}: {:.1} % of {}; unneeded found {caught} of {}; needed {right} of {}",
            self.share() * 100.0,
            self.all,
            caught + missed,
            right + wrong
        );
        for ((really, said), count) in &self.table {
            if really != said {
                println!("    {really} taken for {said}: {count}");
            }
        }
    }
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn profiles() -> Vec<(&'static str, Config)> {
    let without = |config: Config| Config { sack: false, dsack: false, rack: false, tlp: false, prr: false, ..config };
    vec![
        ("linux", Config::linux()),
        ("linux, no timestamps", Config { timestamps: false, ..Config::linux() }),
        ("linux, no SACK", without(Config::linux())),
        ("RFC 6675", Config { rack: false, tlp: false, min_rto: Duration::from_secs(1), ..Config::modern() }),
        ("NewReno, no timestamps", Config { timestamps: false, min_rto: Duration::from_secs(1), ..without(Config::modern()) }),
        ("ns-2", Config { receive_buffer: 200_000, initial_ssthresh: Some(60_000), ..Config::ns2() }),
    ]
}

/// What a path does to a plan, by name.
type Path = (&'static str, fn(&mut Plan));

fn paths() -> Vec<Path> {
    vec![
        ("loss 1 %", |plan| {
            plan.far().loss = 0.01;
            plan.far().bottleneck = Some((20_000_000, 200));
        }),
        ("loss 5 % in runs", |plan| {
            let far = plan.far();
            (far.loss, far.run, far.bottleneck) = (0.05, 3.0, Some((20_000_000, 200)));
        }),
        ("short queue", |plan| plan.far().bottleneck = Some((10_000_000, 20))),
        ("long queue", |plan| plan.far().bottleneck = Some((5_000_000, 200))),
        ("reordering", |plan| {
            let far = plan.far();
            (far.late, far.loss, far.bottleneck) = ((0.02, ms(5)), 0.003, Some((20_000_000, 200)));
        }),
        ("doubling", |plan| {
            let far = plan.far();
            (far.double, far.loss, far.bottleneck) = (0.02, 0.01, Some((20_000_000, 200)));
        }),
        ("pauses", |plan| {
            let at = |s: u64| Instant::ZERO + Duration::from_millis(s);
            let far = plan.far();
            (far.pause, far.loss, far.bottleneck) = (Some((at(700), at(1500))), 0.003, Some((20_000_000, 200)));
        }),
        ("jitter", |plan| {
            let far = plan.far();
            (far.jitter, far.loss, far.bottleneck) = (ms(8), 0.01, Some((20_000_000, 200)));
        }),
        ("outage", |plan| {
            let at = |s: u64| Instant::ZERO + Duration::from_millis(s);
            let far = plan.far();
            (far.outage, far.loss, far.bottleneck) = (Some((at(900), at(2700))), 0.003, Some((20_000_000, 200)));
        }),
        ("lost acknowledgements", |plan| {
            plan.far().loss = 0.005;
            plan.far().bottleneck = Some((20_000_000, 200));
            plan.backward.iter_mut().for_each(|hop| hop.loss = 0.1);
        }),
        ("short writes", |plan| {
            plan.writes = Some((12_000, ms(60)));
            plan.far().loss = 0.02;
        }),
    ]
}

#[test]
fn retransmissions_are_what_their_sender_knows_them_to_be() {
    // For a look at details: the part of a name to which it is confined, and whether each is shown.
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut by_profile: BTreeMap<String, Score> = BTreeMap::new();
    let mut by_path: BTreeMap<String, Score> = BTreeMap::new();
    let mut by_place: BTreeMap<String, Score> = BTreeMap::new();
    let mut whole = Score::default();
    for (profile, config) in profiles() {
        for (path, change) in paths() {
            for (place, place_name) in ["sender", "middle", "receiver"].into_iter().enumerate() {
                let name = format!("{profile}/{path}/{place_name}");
                if !name.contains(&only) {
                    continue;
                }
                let mut score = Score::default();
                for seed in 0..3 {
                    let mut plan = Plan::new(seed + 1, &config, 1_500_000, place, ms(20 + 15 * seed));
                    plan.counts_ids = seed % 2 == 0;
                    change(&mut plan);
                    let captured = run(&plan);
                    let verdicts = judge(&captured);
                    for score in [
                        &mut score,
                        &mut whole,
                        by_profile.entry(profile.to_owned()).or_default(),
                        by_path.entry(path.to_owned()).or_default(),
                        by_place.entry(place_name.to_owned()).or_default(),
                    ] {
                        score.add(&captured, &verdicts);
                    }
                }
                if std::env::var_os("VERBOSE").is_some() && score.share() < 0.95 {
                    score.show(&name);
                }
            }
        }
    }
    for (name, score) in by_profile.iter().chain(&by_path).chain(&by_place) {
        score.show(name);
    }
    whole.show("all");
    for place in ["sender", "middle"] {
        assert!(only.is_empty().then(|| by_place[place].share()).is_none_or(|share| share >= 0.95), "{place}");
    }
    assert!(whole.needs[0] >= 19 * whole.needs[1], "what was not needed shows it: {:?}", whole.needs);
    assert!(whole.needs[2] * 1000 <= whole.needs[3], "what was needed is hardly ever called unneeded");
}
