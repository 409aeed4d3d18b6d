//! The requirements on commands in a file of cases.

use serde::Deserialize;

/// An upper limit for a command.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "RequirementFields")]
pub struct CommandRequirement {
    /// The command, or a group of which the best counts.
    pub command: String,
    /// The limit.
    pub limit: RequirementLimit,
}

/// The limit of a requirement.
#[derive(Clone, Debug, PartialEq)]
pub enum RequirementLimit {
    /// This share of the time of another command, or of the fastest of a group.
    Time {
        /// The share.
        share: f64,
        /// The command or the group.
        than: String,
    },
    /// This share of the peak memory of another command, or of the one in a group that needs least.
    Memory {
        /// The share.
        share: f64,
        /// The command or the group.
        than: String,
    },
    /// This many seconds.
    Seconds(f64),
    /// This many bytes of peak memory.
    MemoryBytes(f64),
}

/// A requirement as a file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RequirementFields {
    command: String,
    than: Option<String>,
    time: Option<f64>,
    memory: Option<f64>,
    seconds: Option<f64>,
    memory_bytes: Option<f64>,
}

impl TryFrom<RequirementFields> for CommandRequirement {
    type Error = String;

    fn try_from(fields: RequirementFields) -> Result<Self, String> {
        let RequirementFields { command, than, time, memory, seconds, memory_bytes } = fields;
        let of = |than: Option<String>, key: &str| {
            than.ok_or_else(|| format!("'{key}' needs 'than', the other command"))
        };
        let given = [time, memory, seconds, memory_bytes].into_iter().flatten();
        if given.into_iter().any(|limit| !(limit > 0.0 && limit.is_finite())) {
            return Err("the limit must be a number above 0".to_owned());
        }
        let limit = match (time, memory, seconds, memory_bytes) {
            (Some(share), None, None, None) => RequirementLimit::Time { share, than: of(than, "time")? },
            (None, Some(share), None, None) => RequirementLimit::Memory { share, than: of(than, "memory")? },
            (None, None, Some(_), None) | (None, None, None, Some(_)) if than.is_some() => {
                return Err("'than' requires 'time' or 'memory'".to_owned());
            }
            (None, None, Some(seconds), None) => RequirementLimit::Seconds(seconds),
            (None, None, None, Some(bytes)) => RequirementLimit::MemoryBytes(bytes),
            _ => {
                return Err(
                    "expected exactly one of 'time', 'memory', 'seconds' and 'memory-bytes'".to_owned()
                );
            }
        };
        Ok(Self { command, limit })
    }
}

impl CommandRequirement {
    /// Returns the commands and groups that it names.
    pub(crate) fn names(&self) -> Vec<&str> {
        match &self.limit {
            RequirementLimit::Time { than, .. } | RequirementLimit::Memory { than, .. } => {
                vec![&self.command, than]
            }
            RequirementLimit::Seconds(_) | RequirementLimit::MemoryBytes(_) => vec![&self.command],
        }
    }

    /// Returns the requirement as a sentence.
    pub(crate) fn sentence(&self) -> String {
        let command = &self.command;
        match &self.limit {
            RequirementLimit::Time { share, than } => {
                format!("{command} takes at most {share} of the time of {than}")
            }
            RequirementLimit::Memory { share, than } => {
                format!("{command} takes at most {share} of the memory of {than}")
            }
            RequirementLimit::Seconds(seconds) => format!("{command} takes at most {seconds} s"),
            RequirementLimit::MemoryBytes(bytes) => {
                format!("{command} takes at most {} MB of memory", bytes / 1e6)
            }
        }
    }
}
