//! How jobs and GPUs are named in requests: `12`, `12_3`, `last`, `@name`; `s0/gpu3`, `gpu3`, `3`.

use std::str::FromStr;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use carma_core::{ArrayId, DeviceId, JobId, ServerId, UserId};

use super::caller::Caller;
use crate::api::{Problem, ProblemKind};
use crate::store::{JobSummary, OwnedJob, Reader};

/// The name of a job, or of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JobName {
    /// A job, or all jobs of the array of this number.
    Number(u64),
    /// The job of this index in an array.
    Member(u64, u32),
    /// The user's last submission.
    Last,
    /// The user's last submission with this name.
    Named(String),
}

impl FromStr for JobName {
    type Err = Problem;
    fn from_str(text: &str) -> Result<Self, Problem> {
        let wrong = || ProblemKind::Invalid.because(format!("{text:?} is not a job: write 12, 12_3 (index 3 of array 12), last or @name"));
        // Signs are no part of a number, and the store holds 63 bits.
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|number| plain && *number > 0 && i64::try_from(*number).is_ok()).ok_or_else(wrong)
        };
        match (text.strip_prefix('@'), text.split_once('_')) {
            (Some(""), _) => Err(wrong()),
            (Some(name), _) => Ok(Self::Named(name.to_owned())),
            (None, _) if text == "last" => Ok(Self::Last),
            (None, Some((array, index))) if index.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok(Self::Member(number(array)?, index.parse().map_err(|_| wrong())?))
            }
            (None, _) => number(text).map(Self::Number),
        }
    }
}

impl JobName {
    /// The job; for a whole array, its first job.
    pub(super) fn job(&self, reader: &Reader, caller: &Caller) -> Result<JobSummary, Problem> {
        let found = match self {
            Self::Number(number) => reader.summary(JobId(*number))?,
            Self::Member(array, index) => reader.member(ArrayId(*array), *index)?,
            Self::Last | Self::Named(_) => return self.latest(reader, caller)?.job(reader, caller),
        };
        found.ok_or_else(|| self.unknown())
    }

    /// All jobs with their owners, in order; for a whole array, all its jobs.
    pub(super) fn owned_jobs(&self, reader: &Reader, caller: &Caller) -> Result<Vec<OwnedJob>, Problem> {
        let one = || self.job(reader, caller).map(|job| vec![OwnedJob { id: job.id, owner: job.user, array: job.array }]);
        match self {
            Self::Number(number) => {
                let members = reader.members(ArrayId(*number))?;
                if members.is_empty() { one() } else { Ok(members) }
            }
            Self::Member(..) => one(),
            Self::Last | Self::Named(_) => self.latest(reader, caller)?.owned_jobs(reader, caller),
        }
    }

    /// The last submission by its number; for an array, the number of the array.
    fn latest(&self, reader: &Reader, caller: &Caller) -> Result<Self, Problem> {
        let name = if let Self::Named(name) = self { Some(name.as_str()) } else { None };
        let latest = reader.latest(UserId(caller.uid), name)?.ok_or_else(|| self.unknown())?;
        let array = reader.summary(latest)?.and_then(|job| job.array);
        Ok(Self::Number(array.map_or(latest.0, |place| place.array.0)))
    }

    fn unknown(&self) -> Problem {
        ProblemKind::NotFound.because(match self {
            Self::Number(number) => format!("job {number} does not exist: `carma queue` and `carma history` list all jobs"),
            Self::Member(array, index) => format!("array {array} has no index {index}"),
            Self::Last => "you have not submitted a job yet".to_owned(),
            Self::Named(name) => format!("you have no job named {name:?}"),
        })
    }
}

async fn path_part<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<String, Problem> {
    let part = Path::<String>::from_request_parts(parts, state).await;
    part.map(|Path(text)| text).map_err(|rejection| ProblemKind::Invalid.because(rejection.body_text()))
}

/// The `{job}` of a path.
impl<S: Send + Sync> FromRequestParts<S> for JobName {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        path_part(parts, state).await?.parse()
    }
}

/// The last part of a path, as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathPart(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for PathPart {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        path_part(parts, state).await.map(Self)
    }
}

/// The `{gpu}` of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GpuName(pub(super) DeviceId);

impl FromStr for GpuName {
    type Err = Problem;
    fn from_str(text: &str) -> Result<Self, Problem> {
        let by_number = || text.parse().ok().map(|ordinal| DeviceId::gpu(ServerId(0), ordinal));
        let whole = text.parse::<DeviceId>().or_else(|error| format!("s0/{text}").parse().map_err(|_| error));
        whole.or_else(|error| by_number().ok_or(error)).map(Self).map_err(|error| ProblemKind::Invalid.because(error.to_string()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for GpuName {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        path_part(parts, state).await?.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_named_by_number_index_and_name() {
        let read = |text: &str| text.parse::<JobName>().unwrap();
        assert_eq!(read("12"), JobName::Number(12));
        assert_eq!(read("12_0"), JobName::Member(12, 0));
        assert_eq!(read("last"), JobName::Last);
        assert_eq!(read("@last_12"), JobName::Named("last_12".to_owned()));
        for wrong in ["", "0", "-1", "+1", "1.5", "12_", "_3", "12_-3", "@", "latest", "18446744073709551615", "12_4294967296", "１２"] {
            assert_eq!(wrong.parse::<JobName>().unwrap_err().kind, ProblemKind::Invalid, "{wrong}");
        }
    }

    #[test]
    fn gpus_of_the_one_server_have_short_names() {
        let gpu = DeviceId::gpu(ServerId(0), 3);
        for (text, device) in
            [("s0/gpu3", gpu), ("gpu3", gpu), ("3", gpu), ("gpu3/mig1", gpu.instance(1)), ("s2/gpu0", DeviceId::gpu(ServerId(2), 0))]
        {
            assert_eq!(text.parse::<GpuName>().unwrap().0, device, "{text}");
        }
        assert!("gpux".parse::<GpuName>().unwrap_err().message.contains("s0/gpu3"));
    }
}
