//! The shell commands that scripts begin with, as far as they only choose what the engine can choose too.

use crate::settings::Settings;

/// Applies the shell commands that scripts begin with; the error says what of it is not supported.
pub fn apply(command: &str, settings: &mut Settings) -> Result<(), String> {
    let command = command.replace("\\\n", " ");
    let commands = command.split(['\n', ';']).flat_map(|line| line.split("&&")).map(str::trim);
    for command in commands.filter(|command| !command.is_empty() && !command.starts_with('#')) {
        let mut words = command.split_whitespace();
        let program = words.next().and_then(|path| path.rsplit('/').next());
        match program {
            // The public collections begin every script with one that restores Linux's defaults, with buffers of 15 MiB at most.
            Some("defaults.sh") => settings.config.receive_buffer = 15 << 20,
            // Puts the values back at the end.
            Some(script) if script.starts_with("sysctl_restore_") => {}
            Some("sysctl" | "set_sysctls.py") => {
                for word in words.filter(|word| !word.starts_with('-')) {
                    let (name, value) = word.split_once('=').ok_or_else(|| format!("shell command `{command}`"))?;
                    let name = name.trim_start_matches("/proc/sys/").replace('/', ".");
                    sysctl(&name, value.trim_matches(['"', '\'']), settings)?;
                }
            }
            _ => return Err(format!("shell command `{command}`")),
        }
    }
    Ok(())
}

fn sysctl(name: &str, value: &str, settings: &mut Settings) -> Result<(), String> {
    let unsupported = || format!("sysctl {name}={value}");
    let number: Option<u32> = value.parse().ok();
    let config = &mut settings.config;
    let on = number.map(|number| number != 0).ok_or_else(unsupported);
    match name.trim_start_matches("net.ipv4.") {
        "tcp_sack" => config.sack = on?,
        "tcp_dsack" => config.dsack = on?,
        "tcp_timestamps" => config.timestamps = on?,
        "tcp_window_scaling" => config.window_scaling = on?,
        // 2 answers an offer without making one, which the engine does not distinguish.
        "tcp_ecn" if matches!(number, Some(0 | 1)) => config.ecn = on?,
        "tcp_recovery" => config.rack = number.ok_or_else(unsupported)? & 1 == 1,
        "tcp_early_retrans" => config.tlp = number.ok_or_else(unsupported)? >= 3,
        "tcp_frto" => settings.selection.timeout = Some(if on? { "f-rto" } else { "standard" }.to_owned()),
        "tcp_slow_start_after_idle" => config.slow_start_after_idle = on?,
        "tcp_congestion_control" => settings.set("congestion", value).map_err(|_| unsupported())?,
        "tcp_reordering" => config.dup_threshold = number.ok_or_else(unsupported)?,
        "tcp_retries2" => config.max_retransmissions = Some(number.ok_or_else(unsupported)?),
        "tcp_syn_retries" => config.max_syn_retransmissions = Some(number.ok_or_else(unsupported)?),
        "tcp_challenge_ack_limit" => config.challenge_ack_limit = number.ok_or_else(unsupported)?,
        _ => return Err(unsupported()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_switches_are_set_and_unknown_ones_named() {
        let mut settings = Settings::profile("linux").unwrap();
        apply("../common/defaults.sh\nsysctl -q net.ipv4.tcp_sack=0 net.ipv4.tcp_ecn=1", &mut settings).unwrap();
        assert!(!settings.config.sack && settings.config.ecn);
        apply("../set_sysctls.py /proc/sys/net/ipv4/tcp_timestamps=0 \\\n  /proc/sys/net/ipv4/tcp_dsack=0", &mut settings)
            .unwrap();
        assert!(!settings.config.timestamps && !settings.config.dsack);
        let error = apply("sysctl -q net.ipv4.tcp_fastopen=1", &mut settings).unwrap_err();
        assert_eq!(error, "sysctl net.ipv4.tcp_fastopen=1");
        assert!(apply("ip route add default", &mut settings).unwrap_err().contains("ip route"));
    }
}
