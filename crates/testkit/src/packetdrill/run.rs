//! Runs a script in virtual time.

use super::numbers::Numbers;
use super::script::{Action, Call, Event, Expression, Packet, Script, Time};
use super::sockets::{Returned, Sockets};
use super::sysctl;
use crate::settings::Settings;
use serde::Serialize;
use whyloss_transport::segment::{Flags, Segment};
use whyloss_transport::{Duration, Instant, Payload};

/// What came of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub enum ScriptOutcome {
    /// Everything went as the script says.
    Passed,
    /// The stack did something else than the script expects.
    Failed {
        /// Line number, from 1.
        line: usize,
        /// What the script says.
        expected: String,
        /// What the stack did.
        got: String,
        /// The events before it, one a line.
        trace: String,
    },
    /// The script needs something that this runner does not have.
    NotSupported {
        /// Line number, from 1.
        line: usize,
        /// What the script needs.
        what: String,
    },
}

/// Why a run stopped early.
enum Stop {
    Failed { expected: String, got: String },
    NotSupported(String),
}

type Step<T> = Result<T, Stop>;

impl Stop {
    fn failed(expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self::Failed { expected: expected.into(), got: got.into() }
    }
}

/// The engine broke a promise to its driver.
fn broken(what: String) -> Stop {
    Stop::failed("an engine that comes to rest", what)
}

/// When a script starts: not at 0, so that a clock that starts at 0 is seen running.
const START: Instant = Instant::from_nanos(100_000_000_000);
/// How far packetdrill lets times be off if the script does not say.
const TOLERANCE: Duration = Duration::from_millis(4);
/// How long `*` waits.
const PATIENCE: Duration = Duration::from_secs(7200);
/// Timer calls without a segment that pass for patience and not for a loop.
const TIMER_CALLS: u32 = 100_000;

/// Runs `script` with what `defaults` say before the script's own directives.
pub fn run(script: &Script, defaults: &Settings) -> ScriptOutcome {
    let mut line = 1;
    match Run::new(script, defaults, &mut line) {
        Ok(mut run) => {
            let result = run.play(script, &mut line);
            let trace = std::mem::take(&mut run.trace);
            outcome(result, line, &trace)
        }
        Err(stop) => outcome(Err(stop), line, &[]),
    }
}

fn outcome(result: Step<()>, line: usize, trace: &[String]) -> ScriptOutcome {
    match result {
        Ok(()) => ScriptOutcome::Passed,
        Err(Stop::Failed { expected, got }) => ScriptOutcome::Failed { line, expected, got, trace: trace.join("\n") },
        Err(Stop::NotSupported(what)) => ScriptOutcome::NotSupported { line, what },
    }
}

struct Run {
    sockets: Sockets,
    numbers: Numbers,
    now: Instant,
    /// The time of the event before.
    previous: Instant,
    tolerance: Duration,
    /// Whether segments that nobody expected are a failure at the end.
    strict: bool,
    blocked: Option<Blocked>,
    trace: Vec<String>,
}

/// A system call that has not returned.
struct Blocked {
    call: Call,
    line: usize,
    returns: (Instant, Instant),
}

impl Run {
    fn new(script: &Script, defaults: &Settings, line: &mut usize) -> Step<Self> {
        let mut settings = defaults.clone();
        let mut strict = script.directives.is_some();
        let bad = |error: crate::settings::SettingError| Stop::failed("a directive that can be followed", error.to_string());
        for directive in script.directives.iter().flatten() {
            *line = directive.line;
            match directive.key.as_str() {
                "strict" => strict = directive.value == "true",
                key => settings.set(key, &directive.value).map_err(bad)?,
            }
        }
        *line = 1;
        if let Some(command) = &script.init {
            sysctl::apply(command, &mut settings).map_err(Stop::NotSupported)?;
        }
        let mut tolerance = TOLERANCE;
        let mut tick = None;
        for (name, value) in &script.options {
            let number = value.as_deref().and_then(|value| value.parse::<u64>().ok());
            match (name.as_str(), number) {
                ("tolerance_usecs", Some(micros)) => tolerance = Duration::from_micros(micros),
                ("tcp_ts_tick_usecs", Some(micros)) => tick = Some(Duration::from_micros(micros)),
                ("mtu", Some(octets)) => settings.config.mss = octets.saturating_sub(40) as u16,
                ("ip_version", _) if value.as_deref() == Some("ipv4") => {}
                ("ip_version", _) if value.as_deref() == Some("ipv6") => settings.config.ip_header = 40,
                // Where packets go and how much is told does not matter here.
                (
                    "local_ip" | "remote_ip" | "gateway_ip" | "netmask_ip" | "bind_port" | "connect_port" | "wire_interface"
                    | "verbose" | "dry_run" | "speed" | "non_fatal" | "send_omit_free" | "so_filename" | "so_flags",
                    _,
                ) => {}
                _ => return Err(Stop::NotSupported(format!("option --{name}"))),
            }
        }
        let ticks = tick.filter(|tick| *tick > Duration::ZERO).map(|tick| {
            settings.config.timestamp_tick = tick;
            tolerance.as_nanos().div_ceil(tick.as_nanos()) as u32
        });
        Ok(Self {
            sockets: Sockets::new(settings),
            numbers: Numbers::new(ticks),
            now: START,
            previous: START,
            tolerance,
            strict,
            blocked: None,
            trace: Vec::new(),
        })
    }

    fn play(&mut self, script: &Script, line: &mut usize) -> Step<()> {
        for event in &script.events {
            *line = event.line;
            // What is not supported is said before anything else can go wrong on the way there.
            if let Action::Unknown(what) = &event.action {
                return Err(Stop::NotSupported(what.clone()));
            }
        }
        for event in &script.events {
            *line = event.line;
            self.event(event, line)?;
        }
        if let Some(blocked) = &self.blocked {
            *line = blocked.line;
            self.advance(blocked.returns.1 + self.tolerance)?;
            if self.blocked.is_some() {
                return Err(Stop::failed("the call returns", format!("it still blocks at {}", seconds(self.now))));
            }
        }
        match self.sockets.sent.front() {
            Some((at, segment)) if self.strict => {
                Err(Stop::failed("no more segments", format!("at {}: {}", seconds(*at), self.numbers.outbound(segment))))
            }
            _ => Ok(()),
        }
    }

    fn event(&mut self, event: &Event, line: &mut usize) -> Step<()> {
        let (from, to) = self.window(event.time);
        match &event.action {
            Action::Outbound(packet) => {
                let at = self.expect(packet, from, to)?;
                self.previous = if from == to { from } else { at };
                return Ok(());
            }
            Action::Inbound(packet) => {
                if packet.window.is_none() && !packet.flags.contains(Flags::RST) {
                    return Err(Stop::NotSupported("an inbound segment without a window".to_owned()));
                }
                self.advance_past(from, line)?;
                let segment = self.numbers.inbound(packet);
                self.note(&format!("< {}", self.numbers.describe_inbound(&segment)));
                self.sockets.arrive(self.now, &segment).map_err(broken)?;
                self.after()?;
            }
            Action::Call(call) => {
                self.advance_past(from, line)?;
                self.call(event, call)?;
            }
            Action::Command(command) => {
                // What changes nothing may stand anywhere; what changes the configuration comes too late once there is a socket.
                let mut after = self.sockets.defaults().clone();
                let before = after.clone();
                sysctl::apply(command, &mut after).map_err(Stop::NotSupported)?;
                if (&after.config, &after.selection) != (&before.config, &before.selection) {
                    return Err(Stop::NotSupported(format!("shell command `{command}` in the middle of a script")));
                }
            }
            Action::Code(_) => return Err(Stop::NotSupported("code in %{ }%".to_owned())),
            Action::Unknown(what) => return Err(Stop::NotSupported(what.clone())),
        }
        self.previous = if from == to { from } else { self.now };
        Ok(())
    }

    /// When an event may take place.
    fn window(&self, time: Time) -> (Instant, Instant) {
        match time {
            Time::Absolute(at) => (START + at, START + at),
            Time::Relative(span) => (self.previous + span, self.previous + span),
            Time::AbsoluteRange(from, to) => (START + from, START + to),
            Time::RelativeRange(from, to) => (self.previous + from, self.previous + to),
            Time::Any => (self.previous, self.previous + PATIENCE),
        }
    }

    fn note(&mut self, what: &str) {
        let line = format!("{:>12} {what}", seconds(self.now));
        self.trace.push(line);
    }

    /// Lets the engine work up to `until`; a blocked call that should have returned by then is a failure there.
    fn advance_past(&mut self, until: Instant, line: &mut usize) -> Step<()> {
        self.advance(until)?;
        if let Some(blocked) = &self.blocked {
            if self.now > blocked.returns.1 + self.tolerance {
                *line = blocked.line;
                let expected = format!("{} returns at {}", blocked.call.name, seconds(blocked.returns.1));
                return Err(Stop::failed(expected, format!("it still blocks at {}", seconds(self.now))));
            }
        }
        Ok(())
    }

    fn advance(&mut self, until: Instant) -> Step<()> {
        let mut calls = 0;
        while self.tick(until)? {
            calls += 1;
            if calls > TIMER_CALLS {
                return Err(broken(format!("{TIMER_CALLS} timer calls up to {}", seconds(self.now))));
            }
        }
        self.now = self.now.max(until);
        Ok(())
    }

    /// The engine's next timer, if it is due by `until`.
    fn tick(&mut self, until: Instant) -> Step<bool> {
        let deadline = self.sockets.deadline.filter(|_| self.blocked.is_some());
        let next = self.sockets.timeout().into_iter().chain(deadline).min().map(|at| at.max(self.now));
        let Some(at) = next.filter(|at| *at <= until) else { return Ok(false) };
        self.now = at;
        self.sockets.handle_timeout(at).map_err(broken)?;
        self.after()?;
        Ok(true)
    }

    /// After every change: traces what left, and tries a blocked call again.
    fn after(&mut self) -> Step<()> {
        for (_, segment) in &self.sockets.sent {
            self.numbers.observe(segment);
        }
        let Some(blocked) = self.blocked.take() else { return Ok(()) };
        match self.sockets.call(self.now, &blocked.call).map_err(broken)? {
            Returned::Blocks => self.blocked = Some(blocked),
            returned => {
                self.check_return(&blocked.call, returned)?;
                let (from, to) = blocked.returns;
                if self.now < from - self.tolerance || self.now > to + self.tolerance {
                    let expected = format!("{} returns at {}", blocked.call.name, seconds(from));
                    return Err(Stop::failed(expected, format!("it returned at {}", seconds(self.now))));
                }
            }
        }
        Ok(())
    }

    fn call(&mut self, event: &Event, call: &Call) -> Step<()> {
        if self.blocked.is_some() {
            return Err(Stop::NotSupported("a system call while another one blocks".to_owned()));
        }
        self.note(&format!("{}(…)", call.name));
        (self.sockets.progress, self.sockets.deadline) = (0, None);
        let returned = self.sockets.call(self.now, call).map_err(broken)?;
        if returned == Returned::Blocks {
            let Some(end) = event.end else {
                let state = self.sockets.state();
                return Err(Stop::failed("the call returns at once", format!("it blocks (the connection is in {state:?})")));
            };
            // Both times of `+0...0.2` count from the event before.
            let returns = match end {
                Time::Absolute(span) if matches!(event.time, Time::Relative(_)) => self.window(Time::Relative(span)),
                other => self.window(other),
            };
            self.blocked = Some(Blocked { call: call.clone(), line: event.line, returns });
            return self.after();
        }
        self.check_return(call, returned)?;
        self.after()
    }

    fn check_return(&mut self, call: &Call, returned: Returned) -> Step<()> {
        let (value, error) = match returned {
            Returned::Value(value, error) => (value, error),
            Returned::Unsupported(what) => return Err(Stop::NotSupported(what)),
            Returned::Wrong(expected, got) => return Err(Stop::failed(expected, got)),
            Returned::Blocks => return Ok(()),
        };
        let got = error.map_or_else(|| value.to_string(), |error| format!("{value} {error}"));
        self.note(&format!("{} = {got}", call.name));
        let expected = match &call.result {
            None | Some(Expression::Anything) => return Ok(()),
            Some(Expression::Integer(expected)) => *expected,
            Some(other) => return Err(Stop::NotSupported(format!("result {other:?} of {}", call.name))),
        };
        if value == expected && error == call.error.as_deref() {
            return Ok(());
        }
        let expected = call.error.as_ref().map_or_else(|| expected.to_string(), |error| format!("{expected} {error}"));
        Err(Stop::failed(format!("{} = {expected}", call.name), format!("{} = {got}", call.name)))
    }

    /// Waits for the next segment of the engine and compares it; returns when it left.
    fn expect(&mut self, packet: &Packet, from: Instant, to: Instant) -> Step<Instant> {
        let latest = to + self.tolerance;
        let expected = || describe(packet);
        let mut calls = 0;
        while self.sockets.sent.is_empty() {
            calls += 1;
            if calls > TIMER_CALLS || !self.tick(latest)? {
                self.now = self.now.max(from);
                let got = format!("no segment by {} (the connection is in {:?})", seconds(latest), self.sockets.state());
                return Err(Stop::failed(format!("at {}: {}", seconds(from), expected()), got));
            }
        }
        let Some((at, mut segment)) = self.sockets.sent.pop_front() else { unreachable!("it is not empty") };
        while !self.strict && segment.payload.len() < packet.len as usize {
            // Linux hands several segments to its network card as one; public scripts expect them so.
            let next = self.sockets.sent.front().filter(|(next_at, next)| *next_at == at && follows(&segment, next));
            let Some((_, next)) = next.cloned().filter(|_| self.sockets.sent.pop_front().is_some()) else { break };
            segment.flags |= next.flags;
            segment.payload = Payload::Bytes([segment.payload.to_bytes(), next.payload.to_bytes()].concat().into());
        }
        let got = self.numbers.outbound(&segment);
        self.trace.push(format!("{:>12} > {got}", seconds(at)));
        if let Err(differences) = self.numbers.compare(packet, &segment) {
            let got = format!("at {}: {got}; {}", seconds(at), differences.join("; "));
            return Err(Stop::failed(format!("at {}: {}", seconds(from), expected()), got));
        }
        if at < from - self.tolerance || at > latest {
            let range = if from == to { seconds(from) } else { format!("{} to {}", seconds(from), seconds(to)) };
            return Err(Stop::failed(format!("at {range}: {}", expected()), format!("this at {}", seconds(at))));
        }
        Ok(at)
    }
}

/// Whether `next` goes on where `segment` ends.
fn follows(segment: &Segment, next: &Segment) -> bool {
    !segment.payload.is_empty()
        && !next.payload.is_empty()
        && next.seq == segment.seq + segment.payload.len() as u32
        && next.ack == segment.ack
        && !segment.flags.contains(Flags::FIN)
}

/// Seconds since the start of the script.
fn seconds(at: Instant) -> String {
    format!("{:.6}", at.since(START).as_secs_f64())
}

fn describe(packet: &Packet) -> String {
    let flags = format!("{:?}", packet.flags);
    let ack = packet.ack.map(|ack| format!(" ack {ack}")).unwrap_or_default();
    let options = match packet.options.as_deref() {
        None => " <...>".to_owned(),
        Some([]) => String::new(),
        Some(options) => format!(" <{options:?}>"),
    };
    format!("{flags} {}:{}({}){ack}{options}", packet.seq, packet.seq.wrapping_add(packet.len), packet.len)
}
