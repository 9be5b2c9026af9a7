//! Sums over periods are what adding up every row gives, whatever ends, goes back or is deleted.

use carma_core::*;
use carma_manager::store::*;
use rusqlite::{Connection, params};

use super::lab::*;

const HOUR: u64 = 3_600_000;

/// Numbers that look random.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Jobs of two users over some days, with attempts of a second to weeks on one or two GPUs. Some still run, some are deleted, and one is back in the queue.
fn history(store: &Store, draws: &mut Draws) {
    for place in 0..120 {
        let id = store.next_jobs(1);
        let owner = if draws.below(3) == 0 { bob() } else { alice() };
        let launched = NOW.0 + draws.below(72 * HOUR);
        let length = [1_000, HOUR / 2, 20 * HOUR, 200 * HOUR, 1_600 * HOUR][draws.below(5) as usize];
        let at = UnixMillis(launched + draws.below(length));
        let attempt = AttemptId { job: id, number: 1 };
        let gpus = (0..=draws.below(2) as u16).map(|ordinal| DeviceId::gpu(ServerId(0), ordinal));
        let granted = gpus.map(|device| Granted { device, reserved: MiB(4_000), limits: Limits::Streams });
        let placement = Placement { server: ServerId(0), devices: granted.collect() };
        store
            .write([
                Change::JobAccepted(Box::new(stored(id, owner, None))),
                Change::AttemptStarted { attempt, placement, at: UnixMillis(launched) },
            ])
            .wait()
            .unwrap();
        if place % 10 > 0 {
            let outcome = [Outcome::Succeeded, Outcome::OutOfMemory, Outcome::Cancelled][draws.below(3) as usize].clone();
            store.write([attempt_ended(id, 1, at, draws.below(1_000) as f64), finished(id, outcome, at)]).wait().unwrap();
        }
        match place % 40 {
            7 | 13 => store.write([Change::JobsDeleted(vec![id])]).wait().unwrap(),
            15 => store.write([Change::JobChanged { job: Box::new(core_job(id, |_| {})), at }]).wait().unwrap(),
            _ => {}
        }
    }
}

/// User, jobs, milliseconds on GPUs and energy by adding up rows.
fn added_up(connection: &Connection, since: u64, until: u64) -> Vec<(u32, u64, i64, f64)> {
    let sql = "SELECT uid,
            (SELECT count(*) FROM jobs WHERE uid = users.uid AND (ended IS NULL OR ended BETWEEN ?1 AND ?2)) AS jobs,
            (SELECT ifnull(sum(min(ifnull(stays.ended, ?2), ?2) - max(stays.launched, ?1)), 0) FROM stays JOIN jobs ON id = job
             WHERE uid = users.uid AND stays.launched < ?2 AND (stays.ended IS NULL OR stays.ended > ?1)),
            (SELECT ifnull(sum(joules), 0) FROM attempts JOIN jobs ON id = job
             WHERE uid = users.uid AND attempts.ended >= ?1 AND attempts.ended < ?2)
        FROM (SELECT DISTINCT uid FROM jobs) AS users WHERE jobs > 0 ORDER BY uid";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map(params![since, until], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

#[test]
fn users_have_in_any_period_what_their_rows_add_up_to() {
    let lab = Lab::new();
    let (store, mut draws) = (lab.open(), Draws(24));
    history(&store, &mut draws);
    let (reader, connection) = (store.reader().unwrap(), Connection::open(lab.path()).unwrap());
    let quarter = 900_000;
    let mut periods = vec![(NOW.0, NOW.0 + 1), (NOW.0 / quarter * quarter, (NOW.0 / quarter + 9) * quarter), (NOW.0, NOW.0 + 3_000 * HOUR)];
    periods.extend((0..60).map(|_| {
        let since = NOW.0 + draws.below(300 * HOUR);
        (since, since + [HOUR / 7, 5 * HOUR, 90 * HOUR, 2_000 * HOUR][draws.below(4) as usize])
    }));
    for (since, until) in periods {
        let span = Span { since: Some(UnixMillis(since)), until: Some(UnixMillis(until)) };
        let found = reader.users(None, span, UnixMillis(u64::MAX / 4)).unwrap().into_iter().map(|summary| {
            let JobCounts { waiting, held, running, succeeded, failed, out_of_memory, stopped } = summary.jobs;
            let jobs = waiting + held + running + succeeded + failed + out_of_memory + stopped;
            (summary.user.0, jobs, (summary.gpu_time.get() * 1000.0).round() as i64, summary.energy.0)
        });
        assert_eq!(found.collect::<Vec<_>>(), added_up(&connection, since, until), "{since} to {until}");
    }
}

#[test]
fn days_have_their_energy_in_every_time_zone() {
    let lab = Lab::new();
    let (store, mut draws) = (lab.open(), Draws(7));
    history(&store, &mut draws);
    let (reader, connection) = (store.reader().unwrap(), Connection::open(lab.path()).unwrap());
    // Whole hours, Nepal, and the local time of Amsterdam before 1937.
    for ahead in [0, 60, -480, 345, 20] {
        let sql = "SELECT (attempts.ended + ?1 * 60000) / 86400000, sum(joules), count(*) FROM attempts JOIN jobs ON id = job
            WHERE joules IS NOT NULL AND uid = 1000 GROUP BY 1 ORDER BY 1";
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([ahead], |row| Ok((EnergyOf::Day(row.get(0)?), row.get::<_, f64>(1)?, row.get::<_, u64>(2)?)));
        let expected: Vec<_> = rows.unwrap().map(Result::unwrap).collect();
        let found = reader.energy(EnergyKind::Day, ahead, Some(UserId(1000)), Span::default()).unwrap();
        assert_eq!(found.into_iter().map(|sum| (sum.of, sum.energy.0, sum.attempts)).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn nothing_is_left_of_sums_of_deleted_jobs() {
    let lab = Lab::new();
    let (store, mut draws) = (lab.open(), Draws(3));
    history(&store, &mut draws);
    for id in all_jobs(&store) {
        store
            .write([
                attempt_ended(id, 1, UnixMillis(NOW.0 + 80 * HOUR), 1.0),
                finished(id, Outcome::Succeeded, UnixMillis(NOW.0 + 80 * HOUR)),
                Change::JobsDeleted(vec![id]),
            ])
            .wait()
            .ok();
        store.write([finished(id, Outcome::Succeeded, NOW), Change::JobsDeleted(vec![id])]).wait().ok();
    }
    let connection = Connection::open(lab.path()).unwrap();
    let left = "SELECT (SELECT count(*) FROM ended_jobs), (SELECT count(*) FROM ended_attempts), (SELECT count(*) FROM job_names)";
    let left = connection.query_row(left, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    assert_eq!((all_jobs(&store).len(), left.unwrap()), (0, (0, 0, 0)));
}
