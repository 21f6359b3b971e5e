//! Configurations from words: `profile=modern sack=false ack_policy=delayed:40ms`.

use whyloss_transport::scheme::{Selection, SelectionError};
use whyloss_transport::tcp::{AckPolicy, ClosedWindow, ConfigError, FastRecovery, Granularity, ReportResponse, PROFILES};
use whyloss_transport::{Config, Duration, Parts};

/// A configuration and the algorithms, set word by word.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The configuration, before the scheme's adjustments.
    pub config: Config,
    /// Names of the algorithms.
    pub selection: Selection,
}

/// Why a word cannot be taken.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SettingError {
    /// No setting of that name.
    #[error("there is no setting `{0}`")]
    Unknown(String),
    /// The value does not fit.
    #[error("`{key}` is `{found}`; allowed is {allowed}")]
    Unfit {
        /// Name of the setting.
        key: String,
        /// The value that was given.
        found: String,
        /// The values that are allowed, in words.
        allowed: String,
    },
    /// The algorithms do not exist.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// No connection can have this configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// A kind of value that a word can stand for.
trait Value: Sized {
    const ALLOWED: &'static str;
    fn read(text: &str) -> Option<Self>;
}

impl Value for bool {
    const ALLOWED: &'static str = "true or false";
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

macro_rules! whole_numbers {
    ($($kind:ty),*) => {$(
        impl Value for $kind {
            const ALLOWED: &'static str = "a whole number";
            fn read(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        }
    )*};
}
whole_numbers!(u8, u16, u32, u64);

impl Value for Duration {
    const ALLOWED: &'static str = "a time such as 40ms, 1s or 500us";
    fn read(text: &str) -> Option<Self> {
        let units = [("ms", 1_000_000), ("us", 1_000), ("ns", 1), ("s", 1_000_000_000)];
        let (number, unit) = units.iter().find_map(|(suffix, nanos)| Some((text.strip_suffix(suffix)?, nanos)))?;
        number.parse::<u64>().ok().map(|number| Self::from_nanos(number * unit))
    }
}

impl<T: Value> Value for Option<T> {
    const ALLOWED: &'static str = "`none` or a value";
    fn read(text: &str) -> Option<Self> {
        if text == "none" {
            return Some(None);
        }
        T::read(text).map(Some)
    }
}

impl Value for AckPolicy {
    const ALLOWED: &'static str = "`immediate` or `delayed:TIME`";
    fn read(text: &str) -> Option<Self> {
        match text.split_once(':') {
            None if text == "immediate" => Some(Self::Immediate),
            Some(("delayed", time)) => Duration::read(time).map(Self::Delayed),
            _ => None,
        }
    }
}

impl Value for Granularity {
    const ALLOWED: &'static str = "`fine:TIME`, `ticks:TIME`, `net3:TIME` or `freebsd:TIME`";
    fn read(text: &str) -> Option<Self> {
        match text.split_once(':')? {
            ("fine", time) => Duration::read(time).map(Self::Fine),
            ("ticks", time) => Duration::read(time).map(Self::Ticks),
            ("net3", time) => Duration::read(time).map(Self::Net3),
            ("freebsd", time) => Duration::read(time).map(Self::FreeBsd),
            _ => None,
        }
    }
}

impl Value for FastRecovery {
    const ALLOWED: &'static str = "tahoe, reno or newreno";
    fn read(text: &str) -> Option<Self> {
        match text {
            "tahoe" => Some(Self::Tahoe),
            "reno" => Some(Self::Reno),
            "newreno" => Some(Self::NewReno),
            _ => None,
        }
    }
}

impl Value for ClosedWindow {
    const ALLOWED: &'static str = "retransmit or persist";
    fn read(text: &str) -> Option<Self> {
        match text {
            "retransmit" => Some(Self::Retransmit),
            "persist" => Some(Self::Persist),
            _ => None,
        }
    }
}

impl Value for ReportResponse {
    const ALLOWED: &'static str = "lazy or immediate";
    fn read(text: &str) -> Option<Self> {
        match text {
            "lazy" => Some(Self::Lazy),
            "immediate" => Some(Self::Immediate),
            _ => None,
        }
    }
}

fn put<T: Value>(slot: &mut T, key: &str, text: &str) -> Result<(), SettingError> {
    *slot = T::read(text).ok_or_else(|| SettingError::Unfit {
        key: key.to_owned(),
        found: text.to_owned(),
        allowed: T::ALLOWED.to_owned(),
    })?;
    Ok(())
}

macro_rules! set_field {
    ($config:expr, $key:expr, $value:expr; $($field:ident),*) => {
        match $key {
            $(stringify!($field) => put(&mut $config.$field, $key, $value),)*
            _ => Err(SettingError::Unknown($key.to_owned())),
        }
    };
}

impl Settings {
    /// The settings of a profile.
    pub fn profile(name: &str) -> Result<Self, SettingError> {
        let config = Config::profile(name).ok_or_else(|| SettingError::Unfit {
            key: "profile".to_owned(),
            found: name.to_owned(),
            allowed: PROFILES.iter().map(|profile| profile.0).collect::<Vec<_>>().join(", "),
        })?;
        Ok(Self { config, selection: Selection::default() })
    }

    /// Sets one thing. A `profile` replaces the whole configuration, so it has to come first.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        let role = match key {
            "profile" => {
                self.config = Self::profile(value)?.config;
                return Ok(());
            }
            "scheme" => &mut self.selection.scheme,
            "congestion" => &mut self.selection.congestion,
            "differentiator" => &mut self.selection.differentiator,
            "reaction" => &mut self.selection.reaction,
            "timeout" => &mut self.selection.timeout,
            "receiver" => &mut self.selection.receiver,
            _ => return self.set_field(key, value),
        };
        *role = Some(value.to_owned());
        // Says at once if there is no such thing.
        self.build().map(drop)
    }

    fn set_field(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        whyloss_transport::with_config_fields!(set_field!(self.config, key, value))
    }

    /// The configuration after the scheme's adjustments, and the algorithms.
    pub fn build(&self) -> Result<(Config, Parts), SettingError> {
        let mut config = self.config.clone();
        let parts = self.selection.build(&mut config)?;
        config.check()?;
        Ok((config, parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_settings() {
        let mut settings = Settings::profile("modern").unwrap();
        let words = [
            ("profile", "freebsd45"),
            ("sack", "true"),
            ("ack_policy", "delayed:40ms"),
            ("granularity", "fine:1ms"),
            ("keep_alive", "7200s"),
            ("max_retransmissions", "none"),
            ("recovery", "tahoe"),
            ("impatient", "false"),
            ("congestion", "reno"),
        ];
        for (key, value) in words {
            settings.set(key, value).unwrap();
        }
        let config = &settings.config;
        assert!(config.sack && !config.rack && !config.impatient, "{config:?}");
        assert_eq!(config.ack_policy, AckPolicy::Delayed(Duration::from_millis(40)));
        assert_eq!(config.keep_alive, Some(Duration::from_secs(7200)));
        assert_eq!((config.max_retransmissions, config.recovery), (None, FastRecovery::Tahoe));
    }

    #[test]
    fn a_wrong_word_is_named() {
        let mut settings = Settings::profile("modern").unwrap();
        let error = |settings: &mut Settings, key, value| settings.set(key, value).unwrap_err().to_string();
        assert_eq!(error(&mut settings, "sacks", "true"), "there is no setting `sacks`");
        assert_eq!(error(&mut settings, "sack", "maybe"), "`sack` is `maybe`; allowed is true or false");
        assert!(error(&mut settings, "profile", "solaris").contains("modern, linux"));
        assert!(error(&mut settings, "congestion", "ren0").contains("did you mean `reno`"));
        assert!(error(&mut settings, "min_rto", "5 parsecs").contains("such as 40ms"));
    }
}
