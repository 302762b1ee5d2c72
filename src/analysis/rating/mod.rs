//! Human evaluation (MedGuards, Appendix A.3): clinicians rate what runs proposed from 0 to 3 without knowing which run
//! proposed it; their scores become mean opinion scores, agreement and Cohen's kappa.
//!
//! ```text
//! runs → draw → sheet (blinded) → page → a rater's file
//!             → key (unblinds) + raters' files → scores → tables, and ratings.json in the runs
//! ```

pub mod draw;
pub mod joined;
pub mod key;
pub mod marking;
pub mod rater;
pub mod runs;
pub mod scores;
pub mod sheet;
pub mod tables;
pub mod trial;

/// The best score; the worst is 0.
pub const BEST: u8 = 3;
