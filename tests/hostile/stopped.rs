//! Work below its ceiling, beyond it, and what is told of it.

use std::thread;
use std::time::{Duration, Instant};

use wardround::ceiling::{Ceiling, CeilingError, Source};

const MIB: usize = 1 << 20;

fn small() -> Ceiling {
    Ceiling::new("work", 8 * MIB, Duration::from_secs(60))
}

fn bounded<T: Send + 'static>(
    ceiling: Ceiling,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CeilingError> {
    super::lost();
    Source::default().bounded(ceiling, work)
}

#[test]
fn work_below_its_ceiling_gives_what_it_gives() {
    let text = bounded(small(), || "x".repeat(7 * MIB)).unwrap();
    assert_eq!(text.len(), 7 * MIB);
    // What is freed is not counted.
    let again = bounded(small(), || (0..100).map(|_| vec![1_u8; 4 * MIB].len()).sum());
    assert_eq!(again, Ok(400 * MIB));
}

#[test]
fn work_that_passes_its_ceiling_is_an_error_and_the_process_goes_on() {
    let full = Err(CeilingError::Memory { what: "work", bytes: 8 * MIB });
    assert_eq!(bounded(small(), || "x".repeat(9 * MIB).len()), full);
    let doubled = || {
        let mut text = "x".to_owned();
        loop {
            text = text.clone() + &text;
        }
    };
    assert_eq!(bounded(small(), doubled), full.map(|_: usize| ()));
    let grown = || {
        let mut numbers = Vec::new();
        loop {
            numbers.push(1_u64);
        }
    };
    assert!(bounded(small(), grown).is_err());
    assert_eq!(bounded(small(), || 1), Ok(1));
}

#[test]
fn work_that_takes_too_long_is_an_error_and_stops_at_its_next_allocation() {
    let ceiling = Ceiling { time: Duration::from_millis(50), ..small() };
    let done = bounded(ceiling, || {
        loop {
            std::hint::black_box(vec![1_u8; 100]);
        }
    });
    assert_eq!(done, Err::<(), _>(CeilingError::Time { what: "work", time: ceiling.time }));
}

#[test]
fn work_that_only_waits_is_ended_by_the_clock() {
    super::lost();
    let source = Source::default();
    let ceiling = Ceiling { time: Duration::from_millis(50), ..small() };
    let waits = || thread::sleep(Duration::from_secs(600));
    let late = CeilingError::Time { what: "work", time: ceiling.time };
    let began = Instant::now();
    assert_eq!(source.bounded(ceiling, waits), Err(late.clone()));
    assert!(began.elapsed() >= ceiling.time && began.elapsed() < Duration::from_secs(60));
    assert_eq!(source.bounded(ceiling, || ()), Err(late));
}

#[test]
fn a_panic_is_an_error_and_below_the_ceiling_too() {
    let panicked = CeilingError::Panicked { what: "work" };
    let done = bounded(small(), || -> usize { panic!("it does") });
    assert_eq!(done, Err(panicked.clone()));
    let deep = bounded(small(), || bounded(small(), || panic!("it does")));
    assert_eq!(deep, Ok(Err::<(), _>(panicked)));
}

/// Otherwise nobody could write to the standard error any more.
#[test]
fn a_thread_is_not_stopped_in_the_middle_of_a_panic() {
    let done = bounded(small(), || {
        let _held = vec![1_u8; 8 * MIB - 200];
        panic!("a message that needs memory: {}", "x".repeat(10));
    });
    assert!(matches!(
        done,
        Err::<(), _>(CeilingError::Panicked { .. } | CeilingError::Memory { .. })
    ));
    eprintln!("others still write");
}

#[test]
fn work_within_work_is_under_the_outer_ceiling() {
    let large = Ceiling { bytes: usize::MAX, ..small() };
    let done = bounded(small(), move || bounded(large, || vec![1; 9 * MIB]));
    assert_eq!(done, Err(CeilingError::Memory { what: "work", bytes: 8 * MIB }));
}

#[test]
fn what_others_allocated_is_no_credit() {
    let given = vec![1_u8; 64 * MIB];
    let done = bounded(small(), move || {
        drop(given);
        "x".repeat(9 * MIB).len()
    });
    assert_eq!(done, Err(CeilingError::Memory { what: "work", bytes: 8 * MIB }));
}

#[test]
fn a_source_that_was_stopped_is_not_tried_again() {
    super::lost();
    let source = Source::default();
    assert_eq!(source.bounded(small(), || 1), Ok(1));
    let first = source.bounded(small(), || "x".repeat(9 * MIB).len()).unwrap_err();
    let again = source.bounded(small(), || panic!("it is tried again"));
    assert_eq!(again, Err::<usize, _>(first));
}
