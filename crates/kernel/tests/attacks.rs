//! Reports of damage on real packets, and somebody on the way who forges, replays, lies or strips: what that gains, and what it costs.
#![cfg(feature = "bpf")]

mod support;

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};
use support::middlebox::{Forged, Meddled, Meddler, Way};
use support::path::{watch, Link, Run};
use support::traffic::{carry, connect_across};
use support::{flows, within, Loaded};
use whyloss_kernel::interfaces;
use whyloss_kernel::stat::{stat, Counts};
use whyloss_sim::{ChannelSpec, Effect, Errors};
use whyloss_transport::segment::{CompactReport, CorruptionReport, Flags, PositionBasis, Report, ReportedPosition};
use whyloss_transport::{Segment, Seq};

/// A link that does something to one in fifty packets of the sender.
fn link(effect: Effect) -> Link {
    Link { channel: ChannelSpec { errors: Errors::Packets { probability: 0.02 }, effect }, ..Link::default() }
}

/// What is tried: a connection under a control, through somebody on the way.
struct Attempt<M> {
    control: &'static str,
    link: Link,
    meddler: M,
}

/// A link of this kind, with `wl_checksum` at the sender.
fn attempt<M>(effect: Effect, meddler: M) -> Attempt<M> {
    Attempt { control: "wl_checksum", link: link(effect), meddler }
}

/// What came of it.
struct AttackOutcome<M, T> {
    meddler: M,
    /// Of the sender, if it had one of our controls.
    counts: Counts,
    result: T,
}

/// Does `job` with the connection of each attempt, at the same time. Afterwards none is left in the maps.
fn at_once<M: Meddler, T: Send>(
    loaded: &Loaded,
    attempts: Vec<Attempt<M>>,
    job: impl Fn(&(TcpStream, TcpStream)) -> T + Sync,
) -> Vec<AttackOutcome<M, T>> {
    let done: Vec<_> = thread::scope(|scope| {
        let job = &job;
        let threads: Vec<_> = (5201..)
            .zip(attempts)
            .map(|(port, Attempt { control, link, meddler })| {
                scope.spawn(move || {
                    let meddled = Meddled::new(&link, meddler);
                    let control =
                        control.strip_prefix("wl_").map_or(control.to_owned(), |name| loaded.place.prefix.clone() + name);
                    let hosts = (meddled.bed.namespace(0), &meddled.behind);
                    for host in [hosts.0, hosts.1] {
                        host.run(|| interfaces::attach(&loaded.place)).expect("attaches");
                    }
                    let ends = connect_across(hosts, (meddled.address, port).into(), &control);
                    for end in [&ends.0, &ends.1] {
                        end.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
                    }
                    let result = job(&ends);
                    let open = stat(&loaded.place).expect("counts").connections;
                    let own = open.into_iter().find(|connection| connection.remote.port() == port);
                    (meddled, own.map(|connection| connection.counts).unwrap_or_default(), result)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a transfer")).collect()
    });
    assert!(within(Duration::from_secs(10), || flows(&loaded.place) == 0), "{} flows are left", flows(&loaded.place));
    done.into_iter()
        .map(|(meddled, counts, result)| AttackOutcome { meddler: meddled.middlebox.stop(), counts, result })
        .collect()
}

/// Carries `octets` through each and checks that they come; gives the goodput in Mbit/s.
fn carry_through<M: Meddler>(loaded: &Loaded, attempts: Vec<Attempt<M>>, octets: usize) -> Vec<AttackOutcome<M, f64>> {
    at_once(loaded, attempts, |ends| {
        let start = Instant::now();
        carry((&ends.0, &ends.1), octets);
        octets as f64 * 8e-6 / start.elapsed().as_secs_f64()
    })
}

/// Sends through each for `time`.
fn watch_through<M: Meddler>(loaded: &Loaded, attempts: Vec<Attempt<M>>, time: Duration) -> Vec<AttackOutcome<M, Run>> {
    at_once(loaded, attempts, |ends| watch(ends, time, (0, 0)))
}

fn about(run: &Run) -> String {
    format!("{:.2} Mbit/s, mean window {:.1}", run.mbps(), run.mean_cwnd())
}

/// Where forged segments aim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    /// At what the receiver waits for.
    Boundary,
    /// Into the window, where no segment begins.
    Between,
    /// Beyond the window.
    Outside,
    /// No forged segment is sent.
    Nowhere,
}

/// Who is off the path can send damaged segments in the sender's name, but has to guess numbers and nonces. Here it is lucky with the numbers.
#[derive(Debug)]
struct Forger {
    aim: Aim,
    random: Pcg64Mcg,
    expected: Seq,
    /// Segments with data that were let in.
    data: u64,
    forged: u64,
    acknowledgements: u64,
    reports: u64,
}

impl Forger {
    /// Forged segments beside each genuine one with data.
    const EACH: u64 = 4;

    fn new(aim: Aim) -> Self {
        let random = Pcg64Mcg::seed_from_u64(1);
        Self { aim, random, expected: Seq(0), data: 0, forged: 0, acknowledgements: 0, reports: 0 }
    }
}

impl Meddler for Forger {
    fn meddle(&mut self, way: Way, segment: &mut Segment, forged: &mut Vec<Forged>) -> bool {
        if way == Way::Out {
            self.expected = segment.ack;
            self.acknowledgements += u64::from(segment.is_empty());
            self.reports += u64::from(report_of(segment).is_some());
            return true;
        }
        let len = segment.payload.len() as u32;
        if len < 2 || self.aim == Aim::Nowhere {
            return true;
        }
        self.data += 1;
        for _ in 0..Self::EACH {
            let mut copy = segment.clone();
            copy.seq = match self.aim {
                Aim::Boundary => segment.seq,
                Aim::Between => segment.seq + self.random.random_range(1..len),
                Aim::Outside | Aim::Nowhere => self.expected + self.random.random_range(0x4000_0000..0x4100_0000),
            };
            take_nonce(&mut copy);
            copy.options.nonce = Some(self.random.random());
            forged.push(Forged { way, segment: copy, damaged: true });
            self.forged += 1;
        }
        true
    }
}

/// Takes the nonce out, in whichever form it stands.
fn take_nonce(segment: &mut Segment) {
    segment.options.nonce = None;
    if let Some(rare) = &mut segment.options.rare {
        rare.short_nonce = None;
    }
}

fn report_of(segment: &Segment) -> Option<Report> {
    segment.options.rare.as_ref().and_then(|rare| rare.report)
}

/// Puts a report into an acknowledgement, in place of what it has no room for then.
fn plant(segment: &mut Segment, report: Report) {
    segment.options.rare.get_or_insert_default().report = Some(report);
    segment.options.fit();
}

#[test]
fn forged_damage_costs_reports_at_most_and_excuses_nothing() {
    let Some(loaded) = Loaded::new("a1_", &["wl_checksum"]) else { return };
    let mut genuine = 0;
    let all =
        |effect| -> Vec<_> { [Aim::Boundary, Aim::Between, Aim::Outside].map(|aim| attempt(effect, Forger::new(aim))).into() };

    // All losses are real ones.
    for AttackOutcome { meddler, counts, result: mbps } in carry_through(&loaded, all(Effect::Erase), 2_000_000) {
        println!("{mbps:.2} Mbit/s, {meddler:?}, {counts:?}");
        assert!(meddler.forged > 4000, "{meddler:?}");
        // An answer echoes ten bits of what was forged: three guesses at 1 in 1024.
        assert!(counts["heard"] <= 1, "{:?}: {counts:?}", meddler.aim);
        assert!(counts["kept"] <= counts["heard"] && counts["timeouts_kept"] == 0, "{:?}: {counts:?}", meddler.aim);
        assert!(counts["losses"] >= 8, "{:?}: {counts:?}", meddler.aim);
        // Nobody is answered but the sender: an acknowledgement for each of its segments, and no more reports than are allowed.
        assert!(meddler.acknowledgements <= meddler.data + meddler.data / 4 + 32 + 20, "{meddler:?}");
        assert!(meddler.aim != Aim::Outside || meddler.reports == 0, "{meddler:?}");
        genuine += meddler.data;
    }
    let told = stat(&loaded.place).expect("counts").reports;
    println!("{told:?}");
    assert!(told["outside"] > 4000 && told["believed"] <= 1, "{told:?}");
    // Forged segments earn no right to be reported: one report for four genuine ones, and 32 to begin with on each connection.
    assert!(told["reported"] <= genuine / 4 + 3 * 32, "{told:?}, {genuine} genuine segments");

    // All losses are damage. Who hits the window costs the connection its reports, which leaves plain TCP; who does not costs nothing.
    let mut attempts = all(Effect::Damage);
    attempts.push(Attempt { control: "reno", ..attempt(Effect::Damage, Forger::new(Aim::Nowhere)) });
    let mut outcomes = carry_through(&loaded, attempts, 2_000_000);
    let reno = outcomes.pop().expect("the last").result;
    for AttackOutcome { meddler, counts, result: mbps } in outcomes {
        println!("{:?}: {mbps:.2} Mbit/s, Reno {reno:.2}, {counts:?}", meddler.aim);
        assert!(mbps > 0.6 * reno, "{:?}: {mbps} Mbit/s, Reno {reno}", meddler.aim);
        if meddler.aim == Aim::Outside {
            assert!(counts["heard"] > 10 && 2 * counts["kept"] > counts["losses"], "{counts:?}");
        }
    }
}

/// How a receiver lies that wants the window kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// It does not lie.
    No,
    /// What is missing was damaged; no nonce.
    Bare,
    /// With a nonce that is guessed.
    Guessed,
    /// With ten bits of one.
    Compact,
    /// With that of a segment that arrived.
    Borrowed,
    /// What arrived was damaged, with its nonce.
    Arrived,
}

/// Plants a report in each acknowledgement that tells of a hole: to the sender it is one with its receiver.
#[derive(Debug)]
struct Liar {
    lie: Lie,
    random: Pcg64Mcg,
    /// Of segments that arrived, by sequence number.
    nonces: BTreeMap<u32, u32>,
    latest: u32,
    told: u64,
}

impl Meddler for Liar {
    fn meddle(&mut self, way: Way, segment: &mut Segment, _: &mut Vec<Forged>) -> bool {
        if way == Way::In {
            if let Some(nonce) = segment.options.any_nonce() {
                self.nonces.insert(segment.seq.0, nonce);
                self.latest = nonce;
            }
            return true;
        }
        let Some(&(arrived, _)) = segment.options.sack.as_slice().first() else { return true };
        let full = |seq, echo| {
            let position = Some(ReportedPosition { seq, len: 1408, basis: PositionBasis::SeqConfirmed });
            Report::Corruption(CorruptionReport { count: self.told as u8, position, echo, ..CorruptionReport::default() })
        };
        let report = match self.lie {
            Lie::No => return true,
            Lie::Bare => full(segment.ack, None),
            Lie::Guessed => full(segment.ack, Some(self.random.random())),
            Lie::Compact => {
                Report::Compact(CompactReport { echo: self.random.random_range(0..1024), ..CompactReport::default() })
            }
            Lie::Borrowed => full(segment.ack, Some(self.latest)),
            Lie::Arrived => match self.nonces.get(&arrived.0) {
                Some(&nonce) => full(arrived, Some(nonce)),
                None => return true,
            },
        };
        plant(segment, report);
        self.told += 1;
        true
    }
}

#[test]
fn a_receiver_that_calls_every_loss_damage_has_the_window_of_plain_tcp() {
    let Some(loaded) = Loaded::new("a2_", &["wl_checksum"]) else { return };
    let time = Duration::from_secs(5);
    let lies = [Lie::Bare, Lie::Guessed, Lie::Compact, Lie::Borrowed, Lie::Arrived, Lie::No];
    let attempts = lies.map(|lie| {
        let liar = Liar { lie, random: Pcg64Mcg::seed_from_u64(1), nonces: BTreeMap::new(), latest: 0, told: 0 };
        Attempt { control: if lie == Lie::No { "reno" } else { "wl_checksum" }, ..attempt(Effect::Erase, liar) }
    });
    let mut outcomes = watch_through(&loaded, attempts.into(), time);
    let reno = outcomes.pop().expect("the last").result;
    println!("Reno: {}", about(&reno));
    for AttackOutcome { meddler: liar, counts, result: run } in outcomes {
        println!("{:?}: {}, {} lies, {counts:?}", liar.lie, about(&run), liar.told);
        assert!(liar.told > 30 && counts["losses"] >= 8, "{:?}: {} lies, {counts:?}", liar.lie, liar.told);
        let gained = (run.mbps() / reno.mbps()).max(run.mean_cwnd() / reno.mean_cwnd());
        assert!(gained < 1.35, "{:?}: {}, Reno {}", liar.lie, about(&run), about(&reno));
        if liar.lie == Lie::Arrived {
            // Believed, but not sent again.
            assert_eq!(counts["kept"], 0, "{counts:?}");
            continue;
        }
        // Three guesses at 1 in 1024 are what the compact form allows. Segments that left as one share a nonce: who got a part of them knows it of the rest.
        let lucky = match liar.lie {
            Lie::Compact => 1,
            Lie::Borrowed => 2,
            _ => 0,
        };
        assert!(counts["heard"] <= lucky && counts["kept"] <= lucky, "{:?}: {counts:?}", liar.lie);
        assert!(counts["refused"] > 20, "{:?}: {counts:?}", liar.lie);
    }
}

/// Drops data now and then, and puts a genuine report that it has seen before into acknowledgements that have none.
#[derive(Debug)]
struct Replayer {
    replays: bool,
    random: Pcg64Mcg,
    /// Genuine reports, and where the segments began.
    seen: Vec<(Seq, Report)>,
    data: u64,
    dropped: u64,
    replayed: u64,
}

impl Replayer {
    fn new(replays: bool) -> Self {
        Self { replays, random: Pcg64Mcg::seed_from_u64(1), seen: Vec::new(), data: 0, dropped: 0, replayed: 0 }
    }
}

impl Meddler for Replayer {
    fn meddle(&mut self, way: Way, segment: &mut Segment, _: &mut Vec<Forged>) -> bool {
        if way == Way::In {
            self.data += u64::from(!segment.is_empty());
            let goes_on = segment.is_empty() || self.data % 80 > 0;
            self.dropped += u64::from(!goes_on);
            return goes_on;
        }
        match report_of(segment) {
            Some(report @ Report::Corruption(CorruptionReport { position: Some(at), .. })) => self.seen.push((at.seq, report)),
            Some(report @ Report::Compact(CompactReport { offset, .. })) => self.seen.push((segment.ack + offset, report)),
            Some(Report::List(list)) => {
                let each = |report: &CompactReport| (segment.ack + report.offset, Report::Compact(*report));
                self.seen.extend(list.as_slice().iter().map(each));
            }
            _ if self.replays && segment.is_empty() && !self.seen.is_empty() => {
                let latest = self.seen.len().min(32);
                let (seq, report) = self.seen[self.seen.len() - self.random.random_range(1..=latest)];
                match report {
                    Report::Compact(told) => {
                        let Ok(offset) = u32::try_from(seq - segment.ack) else { return true };
                        plant(segment, Report::Compact(CompactReport { offset, ..told }));
                    }
                    full => plant(segment, full),
                }
                self.replayed += 1;
            }
            _ => {}
        }
        true
    }
}

#[test]
fn a_replayed_report_excuses_nothing_more() {
    let Some(loaded) = Loaded::new("a3_", &["wl_checksum"]) else { return };
    let attempts = [true, false].map(|replays| attempt(Effect::Damage, Replayer::new(replays)));
    let outcomes = watch_through(&loaded, attempts.into(), Duration::from_secs(5));
    let told = stat(&loaded.place).expect("counts").reports;
    println!("{told:?}");
    for AttackOutcome { meddler: Replayer { replayed, dropped, .. }, counts, result } in &outcomes {
        println!("{}, {replayed} replays, {dropped} dropped, {counts:?}", about(result));
        assert!(*dropped > 10 && counts["heard"] > 10, "{counts:?}");
    }
    let replayed = outcomes[0].meddler.replayed;
    let windows = [0, 1].map(|which| outcomes[which].result.mean_cwnd());
    assert!(replayed > 300, "{replayed} replays");
    // Each replay is known, or of data that is long acknowledged, and none is held against the receiver.
    assert!(2 * (told["known"] + told["stale"]) > replayed, "{told:?}");
    assert!(told["believed"] <= told["reported"] && told["distrusted"] == 0, "{told:?}");
    assert!(windows[0] < 1.35 * windows[1], "mean windows with and without replays: {windows:?}");
}

/// What somebody on the way takes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// *Reports permitted* from the SYN.
    Syn,
    /// The same from its answer.
    Answer,
    /// The nonce option of each segment.
    Nonces,
    /// The report option of each acknowledgement.
    Reports,
    /// All options of ours once the connection is open.
    AllLater,
    /// Whole SYNs that carry an option of ours.
    WholeSyns,
}

#[derive(Debug)]
struct Stripper {
    taken: Taken,
    /// Options of ours that came here.
    permissions: u64,
    nonces: u64,
    reports: u64,
}

impl Stripper {
    fn strip_nonce(&mut self, segment: &mut Segment) {
        self.nonces += u64::from(segment.options.any_nonce().is_some());
        if matches!(self.taken, Taken::Nonces | Taken::AllLater) {
            take_nonce(segment);
        }
    }
}

impl Meddler for Stripper {
    fn mend(&mut self, segment: &mut Segment) {
        self.strip_nonce(segment);
    }

    fn meddle(&mut self, way: Way, segment: &mut Segment, _: &mut Vec<Forged>) -> bool {
        let taken = self.taken;
        let opens = segment.flags.contains(Flags::SYN);
        self.strip_nonce(segment);
        let Some(rare) = &mut segment.options.rare else { return true };
        self.permissions += u64::from(rare.reports_permitted);
        self.reports += u64::from(rare.report.is_some());
        if taken == Taken::WholeSyns && rare.reports_permitted {
            return false;
        }
        let strip_permission = opens && if way == Way::In { taken == Taken::Syn } else { taken == Taken::Answer };
        rare.reports_permitted &= !strip_permission;
        if matches!(taken, Taken::Reports | Taken::AllLater) {
            rare.report = None;
        }
        true
    }
}

#[test]
fn without_the_options_it_is_plain_tcp() {
    let Some(loaded) = Loaded::new("a4_", &["wl_checksum"]) else { return };
    let ways = [Taken::Syn, Taken::Answer, Taken::Nonces, Taken::Reports, Taken::AllLater, Taken::WholeSyns];
    let attempts = ways.map(|taken| attempt(Effect::Damage, Stripper { taken, permissions: 0, nonces: 0, reports: 0 }));
    for AttackOutcome { meddler, counts, result: mbps } in carry_through(&loaded, attempts.into(), 1_500_000) {
        println!("{mbps:.2} Mbit/s, {meddler:?}, {counts:?}");
        let taken = meddler.taken;
        assert!(counts["losses"] >= 5, "{taken:?}: {counts:?}");
        assert_eq!((counts["heard"], counts["kept"], counts["timeouts_kept"]), (0, 0, 0), "{taken:?}: {counts:?}");
        let agreed = !matches!(taken, Taken::Syn | Taken::Answer | Taken::WholeSyns);
        assert!(meddler.permissions > 0, "{meddler:?}");
        assert_eq!(meddler.nonces > 0, agreed, "{meddler:?}");
        // Who has agreed and does not know that the other has not reports in vain.
        assert_eq!(meddler.reports > 0, agreed || taken == Taken::Answer, "{meddler:?}");
    }
    // Both ends where only later options go, and one where the answer does not get through.
    assert!(stat(&loaded.place).expect("counts").reports["agreed"] > 3 * 2);
}
