//! Feature negotiation options (RFC 4340, 6.1).

/// A feature by its number (RFC 4340, 6.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Feature(pub u8);

impl Feature {
    /// The congestion control of a half-connection. Server-priority, default 2.
    pub const CCID: Self = Self(1);
    /// Sequence window. Non-negotiable, default 100.
    pub const SEQUENCE_WINDOW: Self = Self(3);
    /// The endpoint cannot read ECN marks. Server-priority, default 0.
    pub const ECN_INCAPABLE: Self = Self(4);
    /// Data packets for each acknowledgement. Non-negotiable, default 2.
    pub const ACK_RATIO: Self = Self(5);
    /// The endpoint sends Ack Vectors. Server-priority, default 0.
    pub const SEND_ACK_VECTOR: Self = Self(6);
    /// The smallest checksum coverage that the endpoint accepts. Server-priority, default 0.
    pub const MINIMUM_COVERAGE: Self = Self(8);
    /// The endpoint checks Data Checksum options. Server-priority, default 0.
    pub const CHECK_DATA_CHECKSUM: Self = Self(9);

    /// Whether its owner alone decides its value (NN in RFC 4340, 6.4).
    pub const fn is_non_negotiable(self) -> bool {
        matches!(self, Self::SEQUENCE_WINDOW | Self::ACK_RATIO)
    }
}

/// A request to change a feature, or the answer to one. The values of a server-priority feature have one octet each: wishes in the
/// order of preference, or, in an answer, the new value and then the wishes of the one who answers. A non-negotiable feature has one
/// value, over all octets. An answer without a value says that the feature is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeatureOption {
    /// "I want to change my feature."
    ChangeLocal(Feature, Vec<u8>),
    /// "I have changed my feature."
    ConfirmLocal(Feature, Vec<u8>),
    /// "I want you to change your feature."
    ChangeRemote(Feature, Vec<u8>),
    /// "I know of the change of your feature."
    ConfirmRemote(Feature, Vec<u8>),
}

impl FeatureOption {
    /// Whether an option of this kind negotiates features.
    pub const fn is_kind(kind: u8) -> bool {
        matches!(kind, 32..=35)
    }

    /// The kind of the option.
    pub const fn kind(&self) -> u8 {
        match self {
            Self::ChangeLocal(..) => 32,
            Self::ConfirmLocal(..) => 33,
            Self::ChangeRemote(..) => 34,
            Self::ConfirmRemote(..) => 35,
        }
    }

    /// The feature and its values.
    pub fn parts(&self) -> (Feature, &[u8]) {
        match self {
            Self::ChangeLocal(feature, values)
            | Self::ConfirmLocal(feature, values)
            | Self::ChangeRemote(feature, values)
            | Self::ConfirmRemote(feature, values) => (*feature, values),
        }
    }

    /// The option of `kind` (32 to 35) with this data; `None` if there is not even a feature number.
    pub(super) fn read(kind: u8, data: &[u8]) -> Option<Self> {
        let (&number, values) = data.split_first()?;
        let (feature, values) = (Feature(number), values.to_vec());
        Some(match kind {
            32 => Self::ChangeLocal(feature, values),
            33 => Self::ConfirmLocal(feature, values),
            34 => Self::ChangeRemote(feature, values),
            _ => Self::ConfirmRemote(feature, values),
        })
    }
}

/// The number that the octets of a non-negotiable value make.
pub fn number(values: &[u8]) -> u64 {
    values.iter().fold(0, |value, octet| value << 8 | u64::from(*octet))
}
