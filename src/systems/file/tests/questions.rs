//! Systems of several agents on questions, each by scripted replies: who is asked, what each sees, when rounds end, and whose answer counts.

use crate::panel::scripted::Script;
use crate::record::{AnswerLine, CallKey, CallLine, FinishReason, Parse, Stage};
use crate::systems::SystemConfig;
use crate::systems::file::reply::ParsedReply;
use crate::systems::file::schema::Is;
use crate::systems::scripted::{answer_filled, question, settings};
use crate::systems::table::SystemEntry;

/// What a system makes of the question where `reply` says what each agent says, by its name, the purpose and the round in which that purpose
/// is asked for, from 0; the calls may not be more than the system says.
fn run(
    name: &str,
    pairs: &[&str],
    reply: impl Fn(&str, &str, u32) -> String + Send + Sync + 'static,
) -> (AnswerLine, Vec<CallLine>) {
    let config = SystemConfig::parse(name, pairs).unwrap();
    // How many steps a round has.
    let steps = match name {
        "mac" => 2,
        "colacare" => 4,
        _ => 1,
    };
    let script =
        Script::new(move |key: &CallKey, _| reply(&key.agent, &key.purpose, key.round / steps));
    let (line, calls) = answer_filled(&config, &question(5), script);
    assert!(calls.len() <= config.max_calls() as usize, "{name}");
    (line, calls)
}

/// The agents that were asked, a purpose at a time: `doctors 4, supervisor 1`.
fn course(calls: &[CallLine]) -> String {
    let of_step = calls.chunk_by(|one, next| one.round == next.round);
    let told = of_step.map(|calls| format!("{} {}", calls[0].purpose, calls.len()));
    told.collect::<Vec<_>>().join(", ")
}

/// All that the agent was told in its call number `at` of this purpose.
fn told(calls: &[CallLine], agent: &str, purpose: &str, at: usize) -> String {
    let own = |call: &&CallLine| call.agent == agent && call.purpose == purpose;
    let call = calls.iter().filter(own).nth(at).unwrap();
    let texts = call.messages.iter().map(|message| message.content.as_str());
    texts.collect::<Vec<_>>().join("\n")
}

fn assert_holds(text: &str, parts: &[&str], others: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    for other in others {
        assert!(!text.contains(other), "{other} is in {text}");
    }
}

/// The roles of the rounds, and what came of each.
fn rounds(line: &AnswerLine) -> String {
    let role = |stage: Stage| match stage {
        Stage::Initial => "initial",
        Stage::Round => "round",
        _ => "final",
    };
    let told = line.rounds.iter().map(|one| format!("{} {}", role(one.stage), one.aggregate));
    told.collect::<Vec<_>>().join(", ")
}

#[test]
fn mac_talks_until_the_supervisor_finds_consensus_and_its_answer_counts() {
    let reply = |consensus: u32| {
        move |agent: &str, _: &str, round: u32| match agent {
            "supervisor" => {
                let word = if round >= consensus { "yes" } else { "no" };
                format!(
                    r#"{{"summary": "sum {round}", "consensus_reached": "{word}", "final_answer": "C"}}"#
                )
            }
            _ => format!(r#"{{"explanation": "{agent} in {round}", "answer": "B"}}"#),
        }
    };
    let (line, calls) = run("mac", &[], reply(0));
    assert_eq!(course(&calls), "doctors 4, supervisor 1");
    assert_eq!((line.answer.as_str(), rounds(&line).as_str()), ("C", "initial B, final C"));
    let first = told(&calls, "doctor-3", "doctors", 0);
    assert_holds(&first, &["You are doctor-3", "Which one"], &["The discussion so far", "sum"]);

    let (line, calls) = run("mac", &[], reply(2));
    assert_eq!(course(&calls), ["doctors 4, supervisor 1"; 3].join(", "));
    assert_eq!(rounds(&line), "initial B, final C, round B, final C, round B, final C");
    let later = told(&calls, "doctor-2", "doctors", 2);
    // All of it, in order, and nothing of the round at hand.
    let said = "doctor-4: doctor-4 in 0 Answer: B\n\nsupervisor: sum 0 Agreed: no. Answer: C\n\ndoctor-1: doctor-1 in 1";
    assert_holds(&later, &[said, "supervisor: sum 1"], &["in 2"]);
    let led = told(&calls, "supervisor", "supervisor", 0);
    assert_holds(&led, &["doctor-1: doctor-1 in 0", "doctor-4: doctor-4 in 0"], &["in 1"]);

    // Never: five rounds, and the last answer. A reply of which consensus cannot be read finds none.
    let (line, calls) = run("mac", &[], reply(9));
    assert_eq!((line.answer.as_str(), calls.len()), ("C", 25));
    let (line, calls) = run("mac", &[], |agent, _, _| match agent {
        "supervisor" => "I cannot say.".to_owned(),
        _ => r#"{"explanation": "e", "answer": "D"}"#.to_owned(),
    });
    assert_eq!((line.answer.as_str(), calls.len()), ("D", 25));
}

#[test]
fn colacare_reviews_until_all_agree_and_the_coordinator_decides() {
    // Radiology agrees only from a round on.
    let reply = |agrees: u32| {
        move |agent: &str, purpose: &str, round: u32| {
            let word = if agent != "radiology" || round >= agrees { "yes" } else { "no" };
            match purpose {
                "review" => format!(
                    r#"{{"agree": "{word}", "reason": "{agent} reviews {round}", "answer": "D"}}"#
                ),
                _ => {
                    let letter = if purpose == "decision" { "C" } else { "B" };
                    format!(
                        r#"{{"explanation": "{agent} {purpose} {round}", "answer": "{letter}"}}"#
                    )
                }
            }
        }
    };
    let round = "analysis 3, synthesis 1, review 3, decision 1";
    let (line, calls) = run("colacare", &[], reply(0));
    assert_eq!(course(&calls), round);
    assert_eq!((line.answer.as_str(), line.correct), ("C", Some(false)));
    assert_eq!(rounds(&line), "initial B, final B, round D, final C");
    let analysed = told(&calls, "surgery", "analysis", 0);
    assert_holds(&analysed, &["yours is surgery", "Which one"], &["internal-medicine"]);
    let joined = told(&calls, "coordinator", "synthesis", 0);
    assert_holds(&joined, &["surgery: surgery analysis 0 Answer: B"], &["review"]);
    // Its own analysis and the synthesis, without the others'.
    let reviewed = told(&calls, "surgery", "review", 0);
    let parts = ["analysis:\nsurgery analysis 0 Answer: B", "synthesis:\ncoordinator synthesis 0"];
    assert_holds(&reviewed, &parts, &["radiology analysis"]);
    let decided = told(&calls, "coordinator", "decision", 0);
    let parts =
        ["coordinator synthesis 0", "radiology: radiology reviews 0 Agreed: yes. Answer: D"];
    assert_holds(&decided, &parts, &["analysis 0"]);

    let (_, calls) = run("colacare", &[], reply(1));
    assert_eq!(course(&calls), [round; 2].join(", "));
    // The same prompt again, as in MedAgentBoard; what is reviewed is new.
    assert_eq!(told(&calls, "surgery", "analysis", 1), analysed);
    let reviewed = told(&calls, "surgery", "review", 1);
    assert_holds(&reviewed, &["surgery analysis 1", "coordinator synthesis 1"], &["reviews 0"]);
    assert_holds(&told(&calls, "coordinator", "decision", 0), &["reviews 0 Agreed: no."], &[]);

    let (line, calls) = run("colacare", &[], reply(9));
    assert_eq!((calls.len(), line.answer.as_str()), (24, "C"));
    // One review that says nothing of agreeing is enough.
    let (_, calls) = run("colacare", &[], |agent, purpose, _| match (agent, purpose) {
        ("surgery", "review") => r#"{"reason": "thorough", "answer": "B"}"#.to_owned(),
        _ => r#"{"agree": true, "explanation": "e", "answer": "B"}"#.to_owned(),
    });
    assert_eq!(calls.len(), 24);
}

#[test]
fn debate_or_vote_votes_at_once_or_after_five_rounds() {
    let reply = |agent: &str, _: &str, round: u32| {
        let letter = match (agent, round) {
            ("agent-1", _) => "A",
            ("agent-2", _) | (_, 5) => "E",
            _ => "B",
        };
        format!(r#"{{"reasoning": "{agent} in {round}", "answer": "{letter}"}}"#)
    };
    let (line, calls) = run("debate-or-vote", &[], reply);
    assert_eq!((line.answer.as_str(), line.team_confidence, line.tie), ("B", Some(0.6), false));
    assert_eq!((course(&calls), rounds(&line)), ("opinion 5".to_owned(), "initial B".to_owned()));
    let prompt = told(&calls, "agent-1", "opinion", 0);
    assert!(calls.iter().all(|call| call.messages[0].content == prompt), "{prompt}");

    let (line, calls) = run("debate-or-vote", &["by=debate"], reply);
    let debated = ["debate 5"; 5].join(", ");
    assert_eq!(course(&calls), format!("opinion 5, {debated}"));
    assert_eq!((line.answer.as_str(), line.rounds.len()), ("E", 6));
    assert_eq!(rounds(&line), "initial B, round B, round B, round B, round B, round E");
    // The last round's answers, the agent's own apart.
    let said = told(&calls, "agent-2", "debate", 1);
    let parts = [
        "agent-1: agent-1 in 1 Answer: A\n\nagent-3: agent-3 in 1",
        "own last answer:\n\nagent-2 in 1 Answer: E",
    ];
    assert_holds(&said, &parts, &["agent-2: ", "in 0"]);

    // All rounds, though all agree; of equally many votes the first agent's.
    let (line, calls) = run("debate-or-vote", &["by=debate"], |_, _, _| "B".to_owned());
    assert_eq!((line.answer.as_str(), calls.len()), ("B", 30));
    let (line, _) = run("debate-or-vote", &[], |agent, _, _| match agent {
        "agent-1" | "agent-4" => "Answer: D".to_owned(),
        "agent-2" | "agent-3" => "Answer: A".to_owned(),
        _ => "hm".to_owned(),
    });
    assert_eq!((line.answer.as_str(), line.tie), ("D", true));
}

#[test]
fn one_yes_is_no_answer_and_an_agreement_at_once() {
    let mut asked = question(3);
    for (option, text) in asked.options.iter_mut().zip(["Yes", "No", "Maybe"]) {
        text.clone_into(&mut option.text);
    }
    for (system, stage) in [("mac", "supervisor"), ("colacare", "review")] {
        let file = SystemEntry::named(system).unwrap().file.unwrap();
        let stage = file.stages.iter().find(|one| one.name == stage).unwrap();
        let read = |text: &str| {
            let item = asked.clone().into();
            let (reply, parse) = stage.read(text, FinishReason::Stop, &item, &settings(&[]));
            let ParsedReply::Answer(reading) = &reply else { panic!("{system}") };
            (reading.answer.clone(), reply.agreed(), parse)
        };
        for said in ["Yes", "Yes.", "No, it does not.", "I agree.", "The answer is yes.", "Maybe"] {
            assert_eq!(read(said), (String::new(), None, Parse::Unread), "{system}: {said}");
        }
        let answer = stage.form().key(Is::Answer).unwrap();
        let agreed = stage.form().key(Is::Agreed).unwrap();
        let record = format!(r#"{{"{agreed}": "yes", "{answer}": "No"}}"#);
        assert_eq!(read(&record), ("B".to_owned(), Some(true), Parse::Repaired), "{system}");
        let lines = format!("{agreed}: no\n{answer}: B").replace('_', " ");
        assert_eq!(read(&lines), ("B".to_owned(), Some(false), Parse::Fallback), "{system}");
        // Each alone says nothing of the other.
        let half = read(&format!(r#"{{"{agreed}": "yes"}}"#));
        assert_eq!(half, (String::new(), Some(true), Parse::Unread), "{system}");
        let half = read(&format!(r#"{{"{answer}": "A"}}"#));
        assert_eq!(half, ("A".to_owned(), None, Parse::Ok), "{system}");
    }
}
