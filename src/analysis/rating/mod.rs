//! Human evaluation (MedGuards, Appendix A.3): clinicians rate what runs proposed from 0 to 3 without knowing which run
//! proposed it; their scores become mean opinion scores, agreement and Cohen's kappa.
//!
//! ```text
//! runs → draw → sheet (blinded) → page → a rater's file
//!             → key (unblinds) + raters' files → scores → tables
//! ```

pub mod draw;
pub mod key;
pub mod marking;
pub mod rater;
pub mod scores;
pub mod sheet;

/// The best score; the worst is 0.
pub const BEST: u8 = 3;
