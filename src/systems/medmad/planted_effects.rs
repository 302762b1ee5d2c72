//! Panels whose answers have one known cause: of the controls, those that take it away find it, and no other does.

use crate::panel::scripted::Script;
use crate::systems::SystemConfig;
use crate::systems::scripted::{answer, question};

/// What the panel answers at last where B is right, the guide knows it, and the others say C until `moves` is shown to them.
fn answered(peers: &str, moves: &'static str) -> String {
    let config = SystemConfig::parse("medmad", &["t_max=1", &format!("peers={peers}")]).unwrap();
    let said = Script::new(move |key, messages| {
        let knows = key.agent == "guide" || messages[1].content.contains(moves);
        let letter = if knows { 'B' } else { 'C' };
        format!(r#"{{"cot": ["so says {}"], "answer": "{letter}", "confidence": 0.9}}"#, key.agent)
    });
    answer(&config, &question(5), said).0.answer
}

#[test]
fn each_control_takes_away_what_it_is_named_for_and_nothing_else() {
    // Moved by others' letters; by their reasons; by being asked once more; by nothing.
    for (moves, expected) in [
        ("Answer: B |", ["B", "C", "B", "C"]),
        ("so says guide", ["B", "C", "C", "C"]),
        ("Round 1 debate.", ["B", "B", "B", "B"]),
        ("no prompt says this", ["C", "C", "C", "C"]),
    ] {
        let found = ["all", "own", "noise", "none"].map(|peers| answered(peers, moves));
        assert_eq!(found, expected, "{moves}");
    }
}
