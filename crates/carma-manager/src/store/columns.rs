//! Columns that hold documents or names.

use std::error::Error;
use std::fmt::Display;
use std::str::FromStr;

use carma_core::ArrayId;
use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::request::ArrayPlace;
use crate::units::{Joules, UnixMillis, UnixMinute};

/// A document, stored as JSON.
pub(super) struct Json<T>(pub(super) T);

impl<T: Serialize> ToSql for Json<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        serde_json::to_string(&self.0).map(Into::into).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
    }
}

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_str(value.as_str()?).map(Self).map_err(FromSqlError::other)
    }
}

/// A value that is stored as its name.
pub(super) struct Named<T>(pub(super) T);

impl<T: Display> ToSql for Named<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.to_string().into())
    }
}

impl<T: FromStr<Err: Error + Send + Sync + 'static>> FromSql for Named<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str()?.parse().map(Self).map_err(FromSqlError::other)
    }
}

/// The place in an array that two columns hold.
pub(super) fn array_place(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<ArrayPlace>> {
    let (array, index) = (row.get::<_, Option<u64>>(column)?, row.get::<_, Option<u32>>(column + 1)?);
    Ok(array.map(ArrayId).zip(index).map(|(array, index)| ArrayPlace { array, index }))
}

/// Units that are kept as their number.
macro_rules! kept_as_number {
    ($unit:ident) => {
        impl ToSql for $unit {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                self.0.to_sql()
            }
        }

        impl FromSql for $unit {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                FromSql::column_result(value).map(Self)
            }
        }
    };
}

kept_as_number!(UnixMillis);
kept_as_number!(UnixMinute);
kept_as_number!(Joules);
