//! Shell commands of scripts: those that choose what the host can choose too.

use super::World;
use crate::commands::{words, CommandFile};
use crate::fast_open::key;
use crate::offload::Offload;
use whyloss_testkit::packetdrill::apply_sysctls;

/// What the `defaults.sh` of the public scripts sets, as far as it is not the profile's anyway.
const DEFAULTS: [(&str, &str); 6] = [
    ("tcp_wmem", "4096 262144 4194304"),
    ("tcp_syn_retries", "5"),
    ("tcp_slow_start_after_idle", "0"),
    ("tcp_ecn", "0"),
    ("tcp_fastopen", "0x70403"),
    ("tcp_fastopen_key", "a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4"),
];

fn parse_mask(text: &str) -> Option<u64> {
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
}

impl World {
    /// Follows what a script has asked for since the last look. The error says what of it is not supported.
    pub fn obey_news(&mut self) -> Result<(), String> {
        match self.commands.as_mut().and_then(CommandFile::news) {
            Some(text) => self.obey(&text),
            None => Ok(()),
        }
    }

    /// Follows shell commands. The error says what of them is not supported.
    pub fn obey(&mut self, commands: &str) -> Result<(), String> {
        let commands = commands.replace("\\\n", " ");
        for line in commands.split(['\n', ';']).flat_map(|line| line.split("&&")).flat_map(|line| line.split("||")) {
            let line = line.split(" #").next().unwrap_or_default().trim();
            let words = words(line);
            let Some(program) = words.first().and_then(|path| path.rsplit('/').next()) else { continue };
            let arguments: Vec<&str> =
                words[1..].iter().map(String::as_str).filter(|word| !word.contains('>') && *word != "/dev/null").collect();
            match (program, arguments.as_slice()) {
                (comment, _) if comment.starts_with('#') => {}
                ("sysctl" | "set_sysctls.py", _) => {
                    for word in arguments.iter().filter(|word| !word.starts_with('-')) {
                        let (name, value) = word.split_once('=').ok_or_else(|| format!("shell command `{line}`"))?;
                        let name = name.trim_start_matches("/proc/sys/").replace('/', ".");
                        self.sysctl(name.trim_start_matches("net.ipv4."), value)?;
                    }
                }
                ("defaults.sh", _) => {
                    apply_sysctls(line, &mut self.defaults)?;
                    for (name, value) in DEFAULTS {
                        self.sysctl(name, value)?;
                    }
                }
                ("ip", ["tcp_metrics", "flush", "all"]) => self.stack.forget_cookies(),
                ("ethtool", ["-K", _, features @ ..]) => {
                    for feature in features.chunks(2) {
                        match feature {
                            ["tso" | "gso", state] => self.offload.on = *state == "on",
                            _ => return Err(format!("shell command `{line}`")),
                        }
                    }
                }
                _ => apply_sysctls(line, &mut self.defaults)?,
            }
        }
        Ok(())
    }

    fn sysctl(&mut self, name: &str, value: &str) -> Result<(), String> {
        let unsupported = || format!("sysctl {name}={value}");
        let number: Option<u64> = value.parse().ok();
        match name {
            "tcp_min_tso_segs" => {
                self.offload = Offload { min_segments: number.ok_or_else(unsupported)?.max(1), ..self.offload };
            }
            "tcp_fastopen" => self.fast_open = parse_mask(value).ok_or_else(unsupported)?,
            "tcp_fastopen_key" => self.stack.set_cookie_key(key(value).ok_or_else(unsupported)?),
            "tcp_fastopen_cookies" => self.stack.forget_cookies(),
            "tcp_notsent_lowat" => self.notsent_low = value.parse().map_err(|_| unsupported())?,
            // Smallest, usual and largest send buffer: buffers begin with the usual one.
            "tcp_wmem" => {
                let usual = value.split_whitespace().nth(1).and_then(|usual| usual.parse().ok());
                self.send_buffer = usual.ok_or_else(unsupported)?;
            }
            // Scripts only switch off what is not there.
            "tcp_fastopen_blackhole_timeout_sec" if number == Some(0) => {}
            // What Linux holds back in the hope for a larger packet leaves at once here.
            "tcp_tso_win_divisor" => {}
            "tcp_ecn" if number.is_some_and(|mode| mode <= 2) => {
                self.defaults.config.ecn = number != Some(0);
                self.offers_ecn = number == Some(1);
            }
            _ => apply_sysctls(&format!("sysctl {name}={value}"), &mut self.defaults)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_followed_and_the_rest_named() {
        let mut world = World::new("").unwrap();
        world.obey("sysctl -q net.ipv4.tcp_ecn=2; ethtool -K tun0 tso off gso off > /dev/null").unwrap();
        world.obey("../set_sysctls.py /proc/sys/net/ipv4/tcp_min_tso_segs=10 \\\n /proc/sys/net/ipv4/tcp_sack=0").unwrap();
        assert!(world.defaults.config.ecn && !world.offers_ecn && !world.defaults.config.sack);
        assert_eq!((world.offload.on, world.offload.min_segments), (false, 10));
        assert_eq!(world.obey("sysctl -q net.ipv4.tcp_nonsense=1").unwrap_err(), "sysctl tcp_nonsense=1");
        assert!(world.obey("tc qdisc replace dev tun0 root fq").unwrap_err().contains("tc qdisc"));
    }

    #[test]
    fn commands_given_later_are_followed_once_and_by_the_line() {
        let path = std::env::temp_dir().join(format!("whyloss-commands-{}", std::process::id()));
        std::fs::write(&path, "sysctl -q net.ipv4.tcp_sack=0\nsysctl -q net.ipv4.tcp_t").unwrap();
        let mut world = World::new(&format!("commands={}", path.display())).unwrap();
        world.obey_news().unwrap();
        assert!(!world.defaults.config.sack && world.defaults.config.timestamps);
        world.defaults.config.sack = true;
        std::fs::write(&path, "sysctl -q net.ipv4.tcp_sack=0\nsysctl -q net.ipv4.tcp_timestamps=0\n").unwrap();
        world.obey_news().unwrap();
        assert!(world.defaults.config.sack && !world.defaults.config.timestamps);
        std::fs::remove_file(&path).unwrap();
    }
}
