//! Hostile files are refused before they fill memory.

use std::cell::Cell;
use std::io::{self, BufReader, Read, Write};
use std::rc::Rc;

use carma_sim::trace::ReadLimits;
use carma_sim::{Catalogue, Trace};

/// A header, and then bytes without end, made on request.
struct Endless {
    header: &'static [u8],
    byte: u8,
    left: u64,
    given: Rc<Cell<u64>>,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.header.is_empty() {
            return self.header.read(buffer);
        }
        let size = buffer.len().min(usize::try_from(self.left).unwrap());
        buffer[..size].fill(self.byte);
        self.left -= size as u64;
        self.given.set(self.given.get() + size as u64);
        Ok(size)
    }
}

fn refused(name: &str, reader: impl Read, limits: &ReadLimits) -> String {
    Trace::parse(name, BufReader::new(reader), &Catalogue::shipped(), limits).unwrap_err().to_string()
}

#[test]
fn a_line_of_a_gigabyte_is_never_kept_in_memory() {
    let given = Rc::new(Cell::new(0));
    let line = Endless { header: b"submit_time_s,task\n", byte: b'x', left: 1 << 30, given: Rc::clone(&given) };
    let error = refused("long.csv", line, &ReadLimits::default());
    assert_eq!(error, "long.csv, line 2: the line has more than 1048576 bytes, which is the limit");
    assert!(given.get() < 2 << 20, "{} bytes were read", given.get());
}

#[test]
fn a_line_may_be_as_long_as_the_limit_says() {
    let limits = ReadLimits { line_bytes: 18, ..ReadLimits::default() };
    let parse = |text: &str| Trace::parse("a.csv", text.as_bytes(), &Catalogue::shipped(), &limits);
    assert!(parse("submit_time_s,task\r\n0,resnet").is_ok());
    assert!(parse("submit_time_s,task\n0,resnet__,,,,,,,,,\n").unwrap_err().to_string().starts_with("a.csv, line 2: the line has more"));
}

fn packed(byte: u8, bytes: u64) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let chunk = vec![byte; 1 << 20];
    for _ in 0..bytes >> 20 {
        packer.write_all(&chunk).unwrap();
    }
    packer.finish().unwrap()
}

#[test]
fn a_file_that_unpacks_to_too_much_is_refused_at_once() {
    let limits = ReadLimits { total_bytes: 16 << 20, line_bytes: 1 << 30, ..ReadLimits::default() };
    let bomb = packed(0, 300 << 20);
    assert!(bomb.len() < 2 << 20, "small as a file");
    let started = std::time::Instant::now();
    let error = refused("bomb.csv.gz", bomb.as_slice(), &limits);
    assert_eq!(error, "bomb.csv.gz: has more than 16777216 bytes once unpacked, which is the limit");
    assert!(started.elapsed().as_secs() < 5, "took {:?}", started.elapsed());
    // With lines of bounded length it does not even come to that.
    let error = refused("bomb.csv.gz", bomb.as_slice(), &ReadLimits::default());
    assert_eq!(error, "bomb.csv.gz, line 1: the line has more than 1048576 bytes, which is the limit");
}

#[test]
fn a_log_of_one_endless_string_is_refused() {
    let limits = ReadLimits { total_bytes: 4 << 20, ..ReadLimits::default() };
    let given = Rc::new(Cell::new(0));
    let log = Endless { header: b"[\n{\"jobid\": \"", byte: b'x', left: 1 << 30, given: Rc::clone(&given) };
    let error = refused("log.json", log, &limits);
    assert_eq!(error, "log.json, line 2: has more than 4194304 bytes once unpacked, which is the limit");
    assert!(given.get() < 8 << 20, "{} bytes were read", given.get());
}

#[test]
fn more_jobs_than_the_limit_are_refused() {
    let limits = ReadLimits { jobs: 2, ..ReadLimits::default() };
    let error = refused("jobs.csv", b"submit_time_s,task\n0,vgg\n0,vgg\n0,vgg\n".as_slice(), &limits);
    assert_eq!(error, "jobs.csv, line 4: there are more than 2 jobs, which is the limit");
}

#[test]
fn a_packed_file_that_is_cut_off_is_refused() {
    let mut whole = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    whole.write_all(b"submit_time_s,task\n0,vgg\n").unwrap();
    let whole = whole.finish().unwrap();
    let error = refused("cut.csv.gz", &whole[..whole.len() - 10], &ReadLimits::default());
    assert!(error.starts_with("cut.csv.gz") && error.contains("cannot be read: "), "{error}");
}
