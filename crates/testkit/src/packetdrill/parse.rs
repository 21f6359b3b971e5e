//! The script language: from text to [`Script`].

use super::script::{Action, Call, Directive, EcnSpec, Event, Expression, Packet, Script, TcpOption, Time};
use std::fmt;
use whyloss_transport::segment::{Ecn, Flags, Timestamps};
use whyloss_transport::Duration;
use winnow::ascii::{dec_uint, hex_digit1, till_line_ending};
use winnow::combinator::{alt, cut_err, delimited, eof, not, opt, peek, preceded, repeat, separated, separated_pair, terminated};
use winnow::error::{ContextError, ErrMode, StrContext, StrContextValue};
use winnow::prelude::*;
use winnow::stream::{LocatingSlice, Location};
use winnow::token::{any, one_of, take_till, take_until, take_while};

/// Why a text is no script that we can read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct SyntaxError {
    /// Line number, from 1.
    pub line: usize,
    /// Column of the mistake, from 1.
    pub column: usize,
    /// What was found and what is allowed.
    pub message: String,
}

type Input<'a> = LocatingSlice<&'a str>;
type Parsed<T> = Result<T, ErrMode<ContextError>>;

/// Reads the text of a script.
pub fn parse(text: &str) -> Result<Script, SyntaxError> {
    let mut input = LocatingSlice::new(text);
    let directives = directives(text);
    let mut script = script.parse_next(&mut input).map_err(|error| {
        let at = input.current_token_start();
        let (line, column) = position(text, at);
        let found = text[at..].lines().next().unwrap_or("").trim_end();
        let found = if found.is_empty() { "the end of the line".to_owned() } else { format!("`{found}`") };
        let expected = error.into_inner().map(|e| e.to_string()).unwrap_or_default();
        let expected = expected.lines().last().map(|e| format!(" ({e})")).unwrap_or_default();
        SyntaxError { line, column, message: format!("not understood: {found}{expected}") }
    })?;
    script.directives = directives;
    for event in &mut script.events {
        // The parser left the offset; see `event`.
        event.line = position(text, event.line).0;
    }
    Ok(script)
}

fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The words of `// whyloss:` comments.
fn directives(text: &str) -> Option<Vec<Directive>> {
    let lines = text.lines().enumerate().filter_map(|(at, line)| {
        let words = line.trim().strip_prefix("//")?.trim_start().strip_prefix("whyloss:")?;
        Some((at + 1, words))
    });
    let mut found = None;
    for (line, words) in lines {
        let all: &mut Vec<_> = found.get_or_insert_default();
        all.extend(words.split_whitespace().map(|word| {
            let (key, value) = word.split_once('=').unwrap_or((word, "true"));
            Directive { line, key: key.to_owned(), value: value.to_owned() }
        }));
    }
    found
}

fn script(input: &mut Input) -> Parsed<Script> {
    blank(input)?;
    let options = repeat(0.., terminated(option, blank)).parse_next(input)?;
    let init = opt(terminated(backticks, blank)).parse_next(input)?;
    let mut events = Vec::new();
    while opt(eof).parse_next(input)?.is_none() {
        events.push(cut_err(event).parse_next(input)?);
        blank(input)?;
    }
    Ok(Script { options, directives: None, init, events })
}

/// White space and comments. `#!` and `#` lines come from shells and preprocessors.
fn blank(input: &mut Input) -> Parsed<()> {
    let space = take_while(1.., char::is_whitespace).void();
    let line_comment = (alt(("//", "#")), till_line_ending).void();
    let comment = ("/*", cut_err((take_until(0.., "*/"), "*/"))).void();
    repeat(0.., alt((space, line_comment, comment))).parse_next(input)
}

/// `parser` with white space behind it.
fn token<'a, T>(parser: impl Parser<Input<'a>, T, ErrMode<ContextError>>) -> impl Parser<Input<'a>, T, ErrMode<ContextError>> {
    terminated(parser, blank)
}

fn symbol<'a>(text: &'static str) -> impl Parser<Input<'a>, &'a str, ErrMode<ContextError>> {
    token(text).context(StrContext::Expected(StrContextValue::StringLiteral(text)))
}

fn keyword<'a>(text: &'static str) -> impl Parser<Input<'a>, (), ErrMode<ContextError>> {
    token((text, not(one_of(is_word_part))).void()).context(StrContext::Expected(StrContextValue::StringLiteral(text)))
}

fn is_word_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn word<'a>(input: &mut Input<'a>) -> Parsed<&'a str> {
    token((one_of(|c: char| c.is_ascii_alphabetic() || c == '_'), take_while(0.., is_word_part)).take()).parse_next(input)
}

/// `--name=value`, `--name="value"` or `--name`.
fn option(input: &mut Input) -> Parsed<(String, Option<String>)> {
    let name = take_while(1.., |c: char| is_word_part(c) || c == '-');
    let value = alt((delimited('"', take_till(0.., '"'), '"'), take_till(1.., char::is_whitespace)));
    preceded("--", (name, opt(preceded('=', value))))
        .map(|(name, value): (&str, Option<&str>)| (name.to_owned(), value.map(str::to_owned)))
        .parse_next(input)
}

fn backticks(input: &mut Input) -> Parsed<String> {
    delimited('`', take_till(0.., '`'), '`').map(|text: &str| text.trim().to_owned()).parse_next(input)
}

fn code(input: &mut Input) -> Parsed<String> {
    delimited("%{", take_until(0.., "}%"), "}%").map(|text: &str| text.trim().to_owned()).parse_next(input)
}

fn event(input: &mut Input) -> Parsed<Event> {
    let offset = input.current_token_start();
    let time = opt(time).parse_next(input)?;
    let end = match time {
        Some(_) => opt(preceded(symbol("..."), cut_err(time_value))).parse_next(input)?,
        None => None,
    };
    let action = action.context(StrContext::Label("event")).parse_next(input)?;
    Ok(Event { line: offset, time: time.unwrap_or(Time::Relative(Duration::ZERO)), end, action })
}

fn time(input: &mut Input) -> Parsed<Time> {
    let first = alt((symbol("*").value(Time::Any), time_value)).parse_next(input)?;
    if first == Time::Any {
        return Ok(first);
    }
    let Some(second) = opt(preceded(symbol("~"), cut_err(time_value))).parse_next(input)? else { return Ok(first) };
    match (first, second) {
        (Time::Absolute(from), Time::Absolute(to)) if from <= to => Ok(Time::AbsoluteRange(from, to)),
        (Time::Relative(from), Time::Relative(to) | Time::Absolute(to)) if from <= to => Ok(Time::RelativeRange(from, to)),
        _ => Err(ErrMode::Cut(ContextError::new())),
    }
}

fn time_value(input: &mut Input) -> Parsed<Time> {
    let relative = opt(symbol("+")).parse_next(input)?.is_some();
    let seconds = token(seconds).context(StrContext::Label("time")).parse_next(input)?;
    Ok(if relative { Time::Relative(seconds) } else { Time::Absolute(seconds) })
}

/// A decimal number of seconds, exact to the nanosecond. `0...1` is `0`, `...`, `1`.
fn seconds(input: &mut Input) -> Parsed<Duration> {
    let digits = || take_while(1.., |c: char| c.is_ascii_digit());
    let fraction = || preceded(('.', not('.')), take_while(0.., |c: char| c.is_ascii_digit()));
    let (whole, fraction): (&str, Option<&str>) =
        alt(((digits(), opt(fraction())), preceded(peek(('.', one_of('0'..='9'))), fraction().map(|f| ("0", Some(f))))))
            .parse_next(input)?;
    let nanos = fraction.unwrap_or("").chars().chain(std::iter::repeat('0')).take(9);
    let nanos: u64 = nanos.collect::<String>().parse().map_err(|_| ErrMode::Cut(ContextError::new()))?;
    let whole: u64 = whole.parse().map_err(|_| ErrMode::Cut(ContextError::new()))?;
    Ok(Duration::from_secs(whole) + Duration::from_nanos(nanos))
}

fn action(input: &mut Input) -> Parsed<Action> {
    alt((packet, backticks.map(Action::Command), code.map(Action::Code), call.map(Action::Call))).parse_next(input)
}

fn packet(input: &mut Input) -> Parsed<Action> {
    let inbound = alt((symbol("<").value(true), symbol(">").value(false))).parse_next(input)?;
    if let Some(unknown) = opt(other_protocol).parse_next(input)? {
        return Ok(Action::Unknown(unknown));
    }
    let packet = cut_err(tcp.context(StrContext::Label("TCP segment"))).parse_next(input)?;
    let known = match packet {
        Ok(packet) => packet,
        Err(unknown) => return Ok(Action::Unknown(unknown)),
    };
    Ok(if inbound { Action::Inbound(known) } else { Action::Outbound(known) })
}

/// Packets that are not plain TCP.
fn other_protocol(input: &mut Input) -> Parsed<String> {
    const PROTOCOLS: [&str; 10] = ["udp", "udplite", "icmp", "icmpv4", "icmpv6", "ipv4", "ipv6", "gre", "mpls", "sctp"];
    let name = take_while(1.., is_word_part).verify(|name: &str| PROTOCOLS.contains(&name)).parse_next(input)?;
    till_line_ending.parse_next(input)?;
    Ok(format!("{name} packets"))
}

/// A TCP segment, or what of it is not supported.
fn tcp(input: &mut Input) -> Parsed<Result<Packet, String>> {
    let mut unknown = None;
    let mut packet = Packet::default();
    if let Some(words) = opt(delimited(symbol("["), cut_err(take_till(1.., [']', '\n'])), symbol("]"))).parse_next(input)? {
        for word in words.split([',', ' ']).filter(|word| !word.is_empty()) {
            match word {
                "noecn" => packet.ecn = EcnSpec::Exactly(Ecn::NotCapable),
                "ect0" => packet.ecn = EcnSpec::Exactly(Ecn::Capable0),
                "ect1" => packet.ecn = EcnSpec::Exactly(Ecn::Capable1),
                "ce" => packet.ecn = EcnSpec::Exactly(Ecn::CongestionExperienced),
                "ect01" => packet.ecn = EcnSpec::Either,
                _ => unknown = Some(format!("IP field `{words}`")),
            }
        }
    }
    match token(flags).parse_next(input)? {
        Ok(flags) => packet.flags = flags,
        Err(what) => unknown = Some(what),
    }
    (packet.seq, packet.len) = sequence(input)?;
    packet.ack = opt(preceded(keyword("ack"), cut_err(token(dec_uint)))).parse_next(input)?;
    packet.window = opt(preceded(keyword("win"), cut_err(token(dec_uint)))).parse_next(input)?;
    packet.urgent = opt(preceded(keyword("urg"), cut_err(token(dec_uint)))).parse_next(input)?;
    packet.options = match opt(options).parse_next(input)? {
        None => Some(Vec::new()),
        Some(Ok(options)) => options,
        Some(Err(what)) => {
            unknown = Some(what);
            None
        }
    };
    Ok(unknown.map_or(Ok(packet), Err))
}

fn flags(input: &mut Input) -> Parsed<Result<Flags, String>> {
    let text = take_while(1.., |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-').parse_next(input)?;
    let mut flags = Flags::default();
    for c in text.chars() {
        flags |= match c {
            'F' => Flags::FIN,
            'S' => Flags::SYN,
            'R' => Flags::RST,
            'P' => Flags::PSH,
            'U' => Flags::URG,
            'E' => Flags::ECE,
            'W' | 'C' => Flags::CWR,
            '.' => Flags::ACK,
            '-' if text.len() == 1 => Flags::default(),
            _ => return Ok(Err(format!("flags `{text}`"))),
        };
    }
    Ok(Ok(flags))
}

/// `1:1001(1000)` or `1(1000)`.
fn sequence(input: &mut Input) -> Parsed<(u32, u32)> {
    let start: u32 = token(dec_uint).parse_next(input)?;
    let end: Option<u32> = opt(preceded(symbol(":"), cut_err(token(dec_uint)))).parse_next(input)?;
    let len: u32 = delimited(symbol("("), token(dec_uint), symbol(")")).parse_next(input)?;
    if end.is_some_and(|end| end != start.wrapping_add(len)) {
        return Err(ErrMode::Cut(ContextError::new()));
    }
    Ok((start, len))
}

/// `<...>`, `<>` or a list; the error says which option is not supported.
fn options(input: &mut Input) -> Parsed<Result<Option<Vec<TcpOption>>, String>> {
    symbol("<").parse_next(input)?;
    if opt((symbol("..."), symbol(">"))).parse_next(input)?.is_some() {
        return Ok(Ok(None));
    }
    let list: Vec<Result<TcpOption, String>> = separated(0.., tcp_option, symbol(",")).parse_next(input)?;
    cut_err(symbol(">")).parse_next(input)?;
    Ok(list.into_iter().collect::<Result<Vec<_>, _>>().map(Some))
}

fn tcp_option(input: &mut Input) -> Parsed<Result<TcpOption, String>> {
    let block = || separated_pair(token(dec_uint), symbol(":"), token(dec_uint));
    let timestamps = (keyword("TS"), keyword("val"), token(dec_uint), keyword("ecr"), token(dec_uint))
        .map(|((), (), value, (), echo)| TcpOption::Timestamps(Timestamps { value, echo }));
    let known = alt((
        keyword("nop").value(TcpOption::Nop),
        keyword("eol").value(TcpOption::End),
        keyword("sackOK").value(TcpOption::SackPermitted),
        preceded(keyword("mss"), cut_err(token(dec_uint))).map(TcpOption::Mss),
        preceded(keyword("wscale"), cut_err(token(dec_uint))).map(TcpOption::WindowScale),
        preceded(keyword("sack"), cut_err(repeat(1..=4, block()))).map(TcpOption::Sack),
        timestamps,
    ))
    .map(Ok);
    let unknown = take_till(1.., [',', '>', '\n']).verify(|text: &str| !text.trim().is_empty());
    alt((known, unknown.map(|text: &str| Err(format!("TCP option `{}`", text.trim()))))).parse_next(input)
}

fn call(input: &mut Input) -> Parsed<Call> {
    let name = word(input)?.to_owned();
    let arguments = delimited(symbol("("), cut_err(list), cut_err(symbol(")"))).parse_next(input)?;
    let result = opt(preceded(symbol("="), cut_err(expression))).parse_next(input)?;
    let error = match result {
        Some(_) => opt(errno).parse_next(input)?.map(str::to_owned),
        None => None,
    };
    // The note that strace would print: `(Operation now in progress)`, `(flags O_RDWR)`.
    opt((symbol("("), take_till(0.., [')', '\n']), symbol(")"))).parse_next(input)?;
    Ok(Call { name, arguments, result, error })
}

/// An error's symbol in front of its note. Not just any word: the next line may begin with a call that has no time.
fn errno<'a>(input: &mut Input<'a>) -> Parsed<&'a str> {
    word.verify(|text: &str| text.starts_with('E') && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit()))
        .parse_next(input)
}

fn list(input: &mut Input) -> Parsed<Vec<Expression>> {
    separated(0.., expression, symbol(",")).parse_next(input)
}

fn expression(input: &mut Input) -> Parsed<Expression> {
    let mut terms: Vec<Expression> = separated(1.., term, symbol("|")).parse_next(input)?;
    Ok(if terms.len() == 1 { terms.remove(0) } else { Expression::Or(terms) })
}

fn term(input: &mut Input) -> Parsed<Expression> {
    alt((
        symbol("...").value(Expression::Anything),
        integer.map(Expression::Integer),
        repeat(1.., token(text)).map(|parts: Vec<String>| Expression::Text(parts.concat())),
        delimited(symbol("["), cut_err(list), cut_err(symbol("]"))).map(Expression::List),
        delimited(symbol("{"), separated(0.., field, symbol(",")), cut_err(symbol("}"))).map(Expression::Record),
        (word, opt(delimited(symbol("("), list, symbol(")")))).map(|(name, arguments)| match arguments {
            Some(arguments) => Expression::Applied(name.to_owned(), arguments),
            None => Expression::Word(name.to_owned()),
        }),
    ))
    .context(StrContext::Label("value"))
    .parse_next(input)
}

/// `field=value` or, in a record without names, `value`.
fn field(input: &mut Input) -> Parsed<(String, Expression)> {
    // `msg_name(...)=...` names the type of what it stands for in parentheses.
    let typed = opt((symbol("("), take_till(0.., [')', '\n']), symbol(")")));
    let name = (opt('.'), word, typed).map(|(_, name, _)| name.to_owned());
    let named = separated_pair(name, alt((symbol("="), symbol(":"))), expression);
    alt((named, expression.map(|value| (String::new(), value)))).parse_next(input)
}

fn integer(input: &mut Input) -> Parsed<i64> {
    let sign = opt('-');
    let hex = preceded(alt(("0x", "0X")), hex_digit1).try_map(|text: &str| i64::from_str_radix(text, 16));
    let (sign, value): (_, i64) =
        token((sign, alt((hex, dec_uint::<_, u32, _>.map(i64::from), dec_uint::<_, u64, _>.map(|n| n as i64)))))
            .parse_next(input)?;
    Ok(if sign.is_some() { -value } else { value })
}

fn text(input: &mut Input) -> Parsed<String> {
    let character = alt((preceded('\\', any), any.verify(|c| !"\"\n".contains(*c))));
    delimited('"', repeat(0.., character), '"').parse_next(input)
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absolute(at) => write!(f, "{}", at.as_secs_f64()),
            Self::Relative(span) => write!(f, "+{}", span.as_secs_f64()),
            Self::AbsoluteRange(from, to) => write!(f, "{}~{}", from.as_secs_f64(), to.as_secs_f64()),
            Self::RelativeRange(from, to) => write!(f, "+{}~+{}", from.as_secs_f64(), to.as_secs_f64()),
            Self::Any => f.write_str("*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Event {
        let mut script = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(script.events.len(), 1, "{script:?}");
        script.events.remove(0)
    }

    fn outbound(text: &str) -> Packet {
        match one(text).action {
            Action::Outbound(packet) => packet,
            other => panic!("{other:?}"),
        }
    }

    fn call(text: &str) -> Call {
        match one(text).action {
            Action::Call(call) => call,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn times() {
        let ms = Duration::from_millis;
        let time = |text: &str| one(&format!("{text} close(3)")).time;
        assert_eq!(time("0"), Time::Absolute(ms(0)));
        assert_eq!(time("1.25"), Time::Absolute(ms(1250)));
        assert_eq!(time("+.1"), Time::Relative(ms(100)));
        assert_eq!(time("+0"), Time::Relative(ms(0)));
        assert_eq!(time("*"), Time::Any);
        assert_eq!(time("0.1~0.2"), Time::AbsoluteRange(ms(100), ms(200)));
        assert_eq!(time("+.1~+.2"), Time::RelativeRange(ms(100), ms(200)));
        assert_eq!(time(""), Time::Relative(ms(0)));
        assert_eq!(time("0.000000001"), Time::Absolute(Duration::from_nanos(1)));
        let blocking = one("+0...0.200 accept(3, ..., ...) = 4");
        assert_eq!((blocking.time, blocking.end), (Time::Relative(ms(0)), Some(Time::Absolute(ms(200)))));
        assert!(parse("0.2~0.1 close(3)").is_err(), "a range that ends before it begins");
    }

    #[test]
    fn segments() {
        let packet = outbound("+0 > [ect0] P. 1:1001(1000) ack 1 win 257 <nop,nop,TS val 100 ecr 200>");
        assert_eq!(packet.flags, Flags::PSH | Flags::ACK);
        assert_eq!((packet.seq, packet.len, packet.ack, packet.window), (1, 1000, Some(1), Some(257)));
        assert_eq!(packet.ecn, EcnSpec::Exactly(Ecn::Capable0));
        let timestamps = TcpOption::Timestamps(Timestamps { value: 100, echo: 200 });
        assert_eq!(packet.options, Some(vec![TcpOption::Nop, TcpOption::Nop, timestamps]));

        let packet = outbound("> S 0:0(0) <mss 1460,sackOK,eol,wscale 7>");
        let expected = [TcpOption::Mss(1460), TcpOption::SackPermitted, TcpOption::End, TcpOption::WindowScale(7)];
        assert_eq!(packet.options.as_deref(), Some(&expected[..]));
        assert_eq!(outbound("> . 1:1(0) ack 1 <...>").options, None);
        assert_eq!(outbound("> . 1:1(0) ack 1").options, Some(vec![]));
        assert_eq!(outbound("> R 1:1(0)").ack, None);
        assert_eq!(outbound("> - 1:1(0)").flags, Flags::default());
        assert_eq!(outbound("> SEW 0:0(0)").flags, Flags::SYN | Flags::ECE | Flags::CWR);
        assert_eq!(outbound("> . 4294967295:99(100)").seq, u32::MAX);
        let sack = outbound("> . 1:1(0) ack 1 <sack 1001:2001 3001:4001>");
        assert_eq!(sack.options, Some(vec![TcpOption::Sack(vec![(1001, 2001), (3001, 4001)])]));
        assert!(parse("+0 > . 1:1001(999) ack 1").is_err(), "an end that contradicts the length");
    }

    #[test]
    fn calls() {
        let plain = call("+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3");
        assert_eq!(plain.name, "socket");
        let word = |text: &str| Expression::Word(text.to_owned());
        assert_eq!(plain.arguments, [Expression::Anything, word("SOCK_STREAM"), word("IPPROTO_TCP")]);
        assert_eq!(plain.result, Some(Expression::Integer(3)));

        let failing = call("0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)");
        assert_eq!((failing.result, failing.error.as_deref()), (Some(Expression::Integer(-1)), Some("EINPROGRESS")));
        let flags = call("0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0x2 (flags O_RDWR)");
        assert_eq!(flags.arguments[2], Expression::Or(vec![word("O_RDWR"), word("O_NONBLOCK")]));
        assert_eq!(flags.result, Some(Expression::Integer(2)));
        let option = call(r#"0 setsockopt(3, SOL_TCP, TCP_CONGESTION, "reno", 4) = 0"#);
        assert_eq!(option.arguments[3], Expression::Text("reno".to_owned()));
        let list = call("0 setsockopt(3, SOL_SOCKET, SO_LINGER, {onoff=1, linger=0}, 8) = 0");
        let record = vec![("onoff".to_owned(), Expression::Integer(1)), ("linger".to_owned(), Expression::Integer(0))];
        assert_eq!(list.arguments[3], Expression::Record(record));
        let poll = call("0 poll([{fd=4, events=POLLIN, revents=0}], 1, 0) = 0");
        assert!(matches!(&poll.arguments[0], Expression::List(list) if matches!(list[..], [Expression::Record(_)])));
        let bind = call("0 bind(3, {sa_family = AF_INET, sin_port = htons(8080)}, ...) = 0");
        assert!(matches!(&bind.arguments[1], Expression::Record(fields) if fields.len() == 2));
    }

    #[test]
    fn a_whole_script() {
        let text = r#"#!/usr/bin/env packetdrill
// whyloss: profile=modern sack=false
--tolerance_usecs=5000
--ip_version="ipv4"
`./defaults.sh`
/* a
   comment */
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 %{ assert tcpi_snd_cwnd == 10 }%
+0 `sysctl -q x=1`
+0 < S 0:0(0) win 1000 <mss 1000,FO a1>
+0 < udp (100)
"#;
        let script = parse(text).unwrap();
        let options =
            [("tolerance_usecs".to_owned(), Some("5000".to_owned())), ("ip_version".to_owned(), Some("ipv4".to_owned()))];
        assert_eq!(script.options, options);
        assert_eq!(script.init.as_deref(), Some("./defaults.sh"));
        let directive = |key: &str, value: &str| Directive { line: 2, key: key.to_owned(), value: value.to_owned() };
        assert_eq!(script.directives, Some(vec![directive("profile", "modern"), directive("sack", "false")]));
        let lines: Vec<_> = script.events.iter().map(|event| event.line).collect();
        assert_eq!(lines, [8, 9, 10, 11, 12]);
        let actions: Vec<_> = script.events.into_iter().map(|event| event.action).collect();
        assert_eq!(actions[1], Action::Code("assert tcpi_snd_cwnd == 10".to_owned()));
        assert_eq!(actions[2], Action::Command("sysctl -q x=1".to_owned()));
        assert_eq!(actions[3], Action::Unknown("TCP option `FO a1`".to_owned()));
        assert_eq!(actions[4], Action::Unknown("udp packets".to_owned()));
    }

    #[test]
    fn a_mistake_is_found_where_it_stands() {
        let error = parse("0 socket(...) = 3\n+0 > . 1:1(0 ack 1\n").unwrap_err();
        assert_eq!(error.line, 2);
        let error = parse("0 close(3\n").unwrap_err();
        assert!(error.line <= 2, "{error}");
        assert!(parse("+0 ! nonsense").is_err());
    }
}
