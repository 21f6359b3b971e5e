//! The system calls that set, read and wait.

use super::{integer, name_of, words, Returned, Role, Sockets};
use crate::packetdrill::script::{Call, Expression};
use whyloss_transport::tcp::Closing;
use whyloss_transport::{Duration, Instant};

impl Sockets {
    pub(super) fn fcntl(&mut self, fd: i64, call: &Call) -> Returned {
        const READ_WRITE: i64 = 2;
        const NONBLOCK: i64 = 0o4000;
        let descriptor = self.descriptors.entry(fd).or_default();
        match call.arguments.get(1).map(words).unwrap_or_default().as_slice() {
            ["F_GETFL"] => Returned::Value(READ_WRITE | if descriptor.nonblocking { NONBLOCK } else { 0 }, None),
            ["F_SETFL"] => {
                descriptor.nonblocking = call.arguments.get(2).map(words).unwrap_or_default().contains(&"O_NONBLOCK");
                Returned::OK
            }
            other => Returned::Unsupported(format!("fcntl {other:?}")),
        }
    }

    pub(super) fn ioctl(&mut self, fd: i64, call: &Call) -> Returned {
        match call.arguments.get(1).map(words).unwrap_or_default().as_slice() {
            ["SIOCINQ" | "FIONREAD"] => {
                let unread = self.connection_of(fd).map_or(0, |connection| connection.unread());
                expect_value("octets to read", call.arguments.get(2), unread as i64)
            }
            other => Returned::Unsupported(format!("ioctl {other:?}")),
        }
    }

    pub(super) fn set_option(&mut self, fd: i64, call: &Call) -> Returned {
        let name = call.arguments.get(2).map(words).unwrap_or_default().join("|");
        let value = call.arguments.get(3);
        let number = value.and_then(first_integer);
        let Some(descriptor) = self.descriptors.get_mut(&fd) else { return Returned::error("EBADF") };
        match name.as_str() {
            "SO_REUSEADDR" | "SO_REUSEPORT" | "SO_PRIORITY" | "IP_TOS" => return Returned::OK,
            "SO_LINGER" => {
                let zero = |field: &str| match value {
                    Some(Expression::Record(fields)) => {
                        fields.iter().find(|(name, _)| name.ends_with(field)).and_then(|(_, value)| integer(value)).unwrap_or(0)
                            == 0
                    }
                    _ => true,
                };
                descriptor.resets_on_close = !zero("onoff") && zero("linger");
                return Returned::OK;
            }
            _ => {}
        }
        if descriptor.role == Role::Connection {
            return Returned::Unsupported(format!("{name} on an open connection"));
        }
        let settings = descriptor.settings.get_or_insert_with(|| self.defaults.clone());
        let config = &mut settings.config;
        let seconds = number.map(|n| Duration::from_secs(n as u64));
        match (name.as_str(), number) {
            ("TCP_NODELAY", Some(on)) => config.nagle = on == 0,
            // Linux doubles what is asked for, to have room for its own book-keeping.
            ("SO_RCVBUF", Some(octets)) => config.receive_buffer = octets as u64,
            ("SO_SNDBUF", Some(octets)) => config.send_buffer = octets as u64,
            ("TCP_MAXSEG", Some(octets)) => config.mss = octets as u16,
            ("SO_KEEPALIVE", Some(on)) => {
                descriptor.keep_alive = on != 0;
                // RFC 9293, 3.8.4: not less than two hours unless the application says so.
                config.keep_alive = descriptor.keep_alive.then(|| config.keep_alive.unwrap_or(Duration::from_secs(7200)));
            }
            ("TCP_KEEPIDLE", Some(_)) => config.keep_alive = seconds.filter(|_| descriptor.keep_alive),
            ("TCP_CONGESTION", None) => {
                let Some(Expression::Text(algorithm)) = value else { return Returned::error("EINVAL") };
                if let Err(error) = settings.set("congestion", algorithm) {
                    return Returned::Unsupported(error.to_string());
                }
            }
            _ => return Returned::Unsupported(format!("socket option {name}")),
        }
        Returned::OK
    }

    pub(super) fn get_option(&mut self, fd: i64, call: &Call) -> Returned {
        let name = call.arguments.get(2).map(words).unwrap_or_default().join("|");
        let expected = call.arguments.get(3);
        let config = self.descriptors.get(&fd).and_then(|d| d.settings.as_ref()).map_or(&self.defaults.config, |own| &own.config);
        let (nagle, mss) = (config.nagle, i64::from(config.mss));
        let connection = self.connection_of(fd);
        match name.as_str() {
            "SO_ERROR" => {
                let error = connection.and_then(|connection| {
                    let how = connection.over.filter(|how| *how != Closing::Normal)?;
                    (!std::mem::replace(&mut connection.reported, true)).then(|| name_of(how))
                });
                if let Some(Expression::List(list)) = expected {
                    if let [Expression::Word(word)] = list.as_slice() {
                        let got = error.unwrap_or("0");
                        return if word == got { Returned::OK } else { Returned::Wrong(word.clone(), got.to_owned()) };
                    }
                }
                expect_value("SO_ERROR", expected, error.map_or(0, number_of))
            }
            "TCP_MAXSEG" => {
                let mss = connection.map_or(mss, |connection| i64::from(connection.endpoint.path().mss));
                expect_value("TCP_MAXSEG", expected, mss)
            }
            "TCP_NODELAY" => {
                let nagle = connection.map_or(nagle, |connection| connection.endpoint.config().nagle);
                expect_value("TCP_NODELAY", expected, i64::from(!nagle))
            }
            other => Returned::Unsupported(format!("reading socket option {other}")),
        }
    }

    /// `poll([{fd=4, events=POLLIN, revents=POLLIN}], 1, 0) = 1`.
    pub(super) fn poll(&mut self, now: Instant, call: &Call) -> Returned {
        let Some(Expression::List(list)) = call.arguments.first() else {
            return Returned::Unsupported("poll without a list".to_owned());
        };
        let mut ready = 0;
        let mut mismatch = None;
        for entry in list {
            let Expression::Record(fields) = entry else {
                return Returned::Unsupported("poll of something that is no record".to_owned());
            };
            let field = |name: &str| fields.iter().find(|(field, _)| field == name).map(|(_, value)| value);
            let fd = field("fd").and_then(integer).unwrap_or(-1);
            let asked = field("events").map(words).unwrap_or_default();
            let mut found: Vec<&str> = self.readiness(fd);
            found.retain(|event| asked.contains(event) || ["POLLERR", "POLLHUP"].contains(event));
            ready += i64::from(!found.is_empty());
            let mut expected = field("revents").map(words).unwrap_or_default();
            expected.sort_unstable();
            found.sort_unstable();
            if expected != found {
                mismatch = Some((format!("revents {}", expected.join("|")), found.join("|")));
            }
        }
        let timeout = call.arguments.get(2).and_then(integer).unwrap_or(0);
        if ready == 0 && timeout != 0 {
            let deadline = *self.deadline.get_or_insert_with(|| match u64::try_from(timeout) {
                Ok(millis) => now + Duration::from_millis(millis),
                Err(_) => Instant::MAX,
            });
            if now < deadline {
                return Returned::Blocks;
            }
        }
        match mismatch {
            Some((expected, got)) => Returned::Wrong(expected, format!("revents {got}")),
            None => Returned::Value(ready, None),
        }
    }

    fn readiness(&self, fd: i64) -> Vec<&'static str> {
        let Some(connection) = &self.connection else { return Vec::new() };
        if self.descriptors.get(&fd).is_some_and(|d| d.role == Role::Listener) {
            let ready = connection.connected && !connection.accepted && self.owner.is_none();
            return if ready { vec!["POLLIN"] } else { Vec::new() };
        }
        if self.owner != Some(fd) {
            return Vec::new();
        }
        let mut events = Vec::new();
        let over = connection.over.is_some();
        if connection.unread() > 0 || connection.peer_closed || over {
            events.push("POLLIN");
        }
        if over || (connection.connected && !connection.shut && connection.endpoint.send_space() > 0) {
            events.push("POLLOUT");
        }
        if connection.peer_closed {
            events.push("POLLRDHUP");
        }
        if connection.over.is_some_and(|how| how != Closing::Normal) && !connection.reported {
            events.push("POLLERR");
        }
        if over || (connection.peer_closed && connection.shut) {
            events.push("POLLHUP");
        }
        events
    }
}

/// The number in `5`, `[5]` or `[5, …]`.
fn first_integer(expression: &Expression) -> Option<i64> {
    match expression {
        Expression::List(list) => list.first().and_then(integer),
        other => integer(other),
    }
}

fn expect_value(what: &str, expected: Option<&Expression>, got: i64) -> Returned {
    match expected.and_then(first_integer) {
        Some(expected) if expected != got => Returned::Wrong(format!("{what} {expected}"), got.to_string()),
        _ => Returned::OK,
    }
}

/// Linux's number of an error.
fn number_of(name: &str) -> i64 {
    match name {
        "ECONNABORTED" => 103,
        "ECONNRESET" => 104,
        "ETIMEDOUT" => 110,
        "ECONNREFUSED" => 111,
        _ => 0,
    }
}
