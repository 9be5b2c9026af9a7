//! The columns of metrics: one for each, in every table that keeps them.

use std::sync::LazyLock;

use carma_core::{Fraction, Metric, Utilisation};
use rusqlite::{Connection, Row};

/// The tables that have these columns.
const TABLES: [&str; 2] = ["attempts", "samples"];

/// The names of the columns, as SQL lists them.
pub(super) static COLUMNS: LazyLock<String> = LazyLock::new(|| listed(str::to_owned));

/// Something of each column, in a list.
pub(super) fn listed(of: impl Fn(&str) -> String) -> String {
    Metric::ALL.map(|metric| of(metric.facts().stored)).join(", ")
}

/// The values of the columns.
pub(super) fn values(utilisation: &Utilisation) -> [Option<f64>; Metric::COUNT] {
    Metric::ALL.map(|metric| utilisation[metric].map(Fraction::get))
}

/// Reads the columns from this number on.
pub(super) fn read(row: &Row<'_>, first: usize) -> rusqlite::Result<Utilisation> {
    Metric::ALL.into_iter().enumerate().try_fold(Utilisation::NONE, |all, (place, metric)| {
        Ok(all.with(metric, row.get::<_, Option<f64>>(first + place)?.map(Fraction::clamped)))
    })
}

/// Adds the columns of metrics that are newer than the file. An older version still reads the file.
pub(super) fn add_missing_columns(connection: &Connection) -> rusqlite::Result<()> {
    for table in TABLES {
        for metric in Metric::ALL {
            let column = metric.facts().stored;
            if !connection.column_exists(None, table, column)? {
                connection.execute_batch(&format!("ALTER TABLE {table} ADD COLUMN {column} REAL"))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_without_the_columns_gets_them_and_keeps_its_rows() {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE attempts (smact REAL); CREATE TABLE samples (smact REAL); INSERT INTO samples VALUES (0.5)")
            .unwrap();
        add_missing_columns(&connection).unwrap();
        add_missing_columns(&connection).unwrap();
        let sql = format!("SELECT {} FROM samples", *COLUMNS);
        let kept = connection.query_row(&sql, [], |row| read(row, 0)).unwrap();
        assert_eq!(kept, Utilisation::of([(Metric::Smact, 0.5)]));
    }
}
