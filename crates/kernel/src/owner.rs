//! Who loaded what is loaded.

use std::fmt;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// The octets that are kept of a command.
const COMMAND: usize = 256;

/// The user and the process that loaded.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Owner {
    /// The user's name; who became root by sudo is still himself.
    pub user: String,
    /// The user's number.
    pub uid: u32,
    /// The process's number, where the machine's first process or the outermost container that can be seen numbers it.
    pub process: u32,
    /// When the process began, in ticks since the machine did: with the number it names one process only.
    #[serde(skip)]
    pub began: u64,
    /// The process's command line, up to 256 octets.
    pub command: String,
    /// When it loaded, in seconds since 1970 (UTC).
    pub loaded_at: u64,
}

impl Owner {
    /// This process, now.
    pub fn this() -> Self {
        let process = fs::read_link("/proc/self").ok().and_then(|number| number.to_str()?.parse().ok());
        let process = process.unwrap_or_else(std::process::id);
        let (uid, user) = user();
        let words = fs::read("/proc/self/cmdline").unwrap_or_default();
        let words: Vec<_> = words.split(|&octet| octet == 0).map(String::from_utf8_lossy).collect();
        let command = words.join(" ");
        let ends = command.char_indices().map(|(at, letter)| at + letter.len_utf8());
        let end = ends.take_while(|&end| end <= COMMAND).last().unwrap_or(0);
        Self {
            user,
            uid,
            process,
            began: began(process).unwrap_or(0),
            command: command[..end].trim_end().to_owned(),
            loaded_at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
        }
    }

    /// Whether the process still runs.
    pub fn runs(&self) -> bool {
        began(self.process) == Some(self.began)
    }

    /// Whether it is somebody else who has to be asked: another user, or another process that still runs and may count on the controls.
    pub fn is_another(&self) -> bool {
        let this = Self::this();
        self.uid != this.uid || (self.runs() && self.process != this.process)
    }

    /// A note of it: a line for each field, the command last because it may have several.
    pub(crate) fn to_note(&self) -> String {
        let Self { user, uid, process, began, command, loaded_at } = self;
        format!("{uid}\n{process}\n{began}\n{loaded_at}\n{user}\n{command}")
    }

    /// Reads [`Owner::to_note`].
    pub(crate) fn from_note(note: &str) -> Option<Self> {
        let mut lines = note.splitn(6, '\n');
        let mut line = || lines.next();
        Some(Self {
            uid: line()?.parse().ok()?,
            process: line()?.parse().ok()?,
            began: line()?.parse().ok()?,
            loaded_at: line()?.parse().ok()?,
            user: line()?.to_owned(),
            command: line()?.to_owned(),
        })
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.runs() { "still runs" } else { "has ended" };
        let printable = |text: &str| text.replace(char::is_control, " ");
        let (user, command) = (printable(&self.user), printable(&self.command));
        write!(f, "{user} (process {}, `{command}`, {state})", self.process)
    }
}

/// The user's number and name. Those of whoever called sudo are in the environment, which root is free to change.
fn user() -> (u32, String) {
    let behind_sudo = || Some((std::env::var("SUDO_UID").ok()?.parse().ok()?, std::env::var("SUDO_USER").ok()?));
    let uid = nix::unistd::getuid();
    let name = || nix::unistd::User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name);
    let found = if uid.is_root() { behind_sudo() } else { None };
    let (uid, name) = found.unwrap_or_else(|| (uid.as_raw(), name()));
    // One line of the note, of a length that fits.
    (uid, name.lines().next().unwrap_or_default().chars().take(64).collect())
}

/// When a process began, in ticks since the machine did; `None` if it does not run any more.
fn began(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may hold anything; the state follows as field 3, and the time is field 22 (proc_pid_stat(5)).
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X");
    fields.nth(18)?.parse().ok().filter(|_| !ended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_note_survives_its_way_whatever_the_command_is() {
        let owner = Owner { command: "sh -c a\nb\n\nc".into(), user: "anna".into(), ..Owner::this() };
        assert_eq!(Owner::from_note(&owner.to_note()), Some(owner));
        assert_eq!(Owner::from_note("1\n2"), None);
        assert_eq!(Owner::from_note(""), None);
    }

    #[test]
    fn this_process_need_not_be_asked_and_another_that_runs_has_to() {
        let this = Owner::this();
        assert!(this.runs() && !this.is_another(), "{this:?}");
        assert!(Owner { uid: this.uid + 1, ..this.clone() }.is_another());

        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        let of_child = Owner { process: child.id(), began: began(child.id()).expect("it runs"), ..this.clone() };
        assert!(of_child.is_another());
        // A process that has its number by chance is not it.
        assert!(!Owner { began: of_child.began + 1, ..of_child.clone() }.is_another());
        child.kill().expect("ends");
        child.wait().expect("ends");
        assert!(!of_child.runs() && !of_child.is_another());
    }
}
