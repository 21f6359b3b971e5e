//! A script as a tree.

use whyloss_transport::segment::{Ecn, Flags, Timestamps};
use whyloss_transport::Duration;

/// A script as it was read, in the order of its lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// `--name=value` lines at the top.
    pub options: Vec<(String, Option<String>)>,
    /// `key=value` words of all `// whyloss:` comments, with their line numbers; `None` if there is no such comment.
    pub directives: Option<Vec<Directive>>,
    /// A command in backticks before the first event.
    pub init: Option<String>,
    /// The events in order.
    pub events: Vec<Event>,
}

/// A word of a `// whyloss:` comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// Line number, from 1.
    pub line: usize,
    /// Name of the setting.
    pub key: String,
    /// Its value, as it stands in the script.
    pub value: String,
}

/// A line of the script with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Line number, from 1.
    pub line: usize,
    /// When it is to take place.
    pub time: Time,
    /// When a blocking system call returns.
    pub end: Option<Time>,
    /// What takes place.
    pub action: Action,
}

/// When an event takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// At this time after the start of the script.
    Absolute(Duration),
    /// This long after the event before it.
    Relative(Duration),
    /// Between two times after the start of the script.
    AbsoluteRange(Duration, Duration),
    /// Between two times after the event before it.
    RelativeRange(Duration, Duration),
    /// At any time.
    Any,
}

/// What a line of the script does or expects.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A segment that the remote host sends: handed to the engine.
    Inbound(Packet),
    /// A segment that the engine is expected to send.
    Outbound(Packet),
    /// A system call of the application.
    Call(Call),
    /// A shell command in backquotes.
    Command(String),
    /// Code of another language.
    Code(String),
    /// Something of the language that this runner does not know; says what.
    Unknown(String),
}

/// A TCP segment as a script describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packet {
    /// The ECN field.
    pub ecn: EcnSpec,
    /// Control bits, as `S.` or `FP.`.
    pub flags: Flags,
    /// Relative sequence number.
    pub seq: u32,
    /// Octets of payload.
    pub len: u32,
    /// Relative acknowledgement number.
    pub ack: Option<u32>,
    /// Window field as it stands on the wire, not scaled; `None`: any.
    pub window: Option<u16>,
    /// Urgent pointer; `None`: any.
    pub urgent: Option<u16>,
    /// Options; `None` for `<...>`: any.
    pub options: Option<Vec<TcpOption>>,
}

/// What a script says of the ECN field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnSpec {
    /// Nothing: not ECN-capable inbound, not checked outbound.
    #[default]
    Unsaid,
    /// This codepoint and no other.
    Exactly(Ecn),
    /// ECT(0) or ECT(1).
    Either,
}

/// A TCP option as scripts write it.
#[derive(Clone, Debug, PartialEq)]
pub enum TcpOption {
    /// End of options.
    End,
    /// `nop`, which pads.
    Nop,
    /// Maximum segment size.
    Mss(u16),
    /// `wscale`: the shift.
    WindowScale(u8),
    /// `sackOK`.
    SackPermitted,
    /// SACK blocks, relative.
    Sack(Vec<(u32, u32)>),
    /// `TS val V ecr E`.
    Timestamps(Timestamps),
}

/// A system call with what it is to return.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Name of the system call.
    pub name: String,
    /// Its arguments, in order.
    pub arguments: Vec<Expression>,
    /// Its result; `None` if the script does not say.
    pub result: Option<Expression>,
    /// The expected error, such as `EINPROGRESS`.
    pub error: Option<String>,
}

/// A value in a system call.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// `...`
    Anything,
    /// A whole number.
    Integer(i64),
    /// A symbolic constant.
    Word(String),
    /// Constants joined by `|`.
    Or(Vec<Expression>),
    /// `"text"`
    Text(String),
    /// `[a, b]`
    List(Vec<Expression>),
    /// `{field=value, …}`
    Record(Vec<(String, Expression)>),
    /// `htons(8080)`
    Applied(String, Vec<Expression>),
}
